//! Installing packages where nobody has to be asked: as root, on a system with `apt-get`, which is what CI mostly is.

use std::process::Command;

use crate::shell::{answers, is_root, run};

/// Whether packages can be installed without asking anybody.
pub(crate) fn is_possible() -> bool {
    is_root() && answers("apt-get", &["--version"])
}

/// Installs packages, without those that they merely recommend.
pub(crate) fn install(packages: &[&str]) -> anyhow::Result<()> {
    let apt = |args: &[&str]| {
        // Somebody else may be installing something; and nobody is there to answer questions.
        let mut apt = Command::new("apt-get");
        apt.args(["--option", "DPkg::Lock::Timeout=120", "--quiet"])
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("UCF_FORCE_CONFFOLD", "1");
        run(&mut apt)
    };
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}
