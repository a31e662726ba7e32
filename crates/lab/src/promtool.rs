//! Prometheus' own tool, which says whether metrics are what Prometheus reads.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::shell::{answers, run};

/// Finds it, or takes it out of Debian's package without installing that: into `folder`, which keeps it for the next time.
pub fn find(folder: &Path) -> anyhow::Result<PathBuf> {
    if answers("promtool", &["--version"]) {
        return Ok("promtool".into());
    }
    let tool = folder.join("usr/bin/promtool");
    if tool.exists() {
        return Ok(tool);
    }
    anyhow::ensure!(
        answers("apt-get", &["--version"]) && answers("dpkg", &["--version"]),
        "promtool is not here: put it into PATH; it is in the package prometheus of most systems"
    );
    // Others may be doing the same: each has a folder of its own until it is done.
    let part = folder.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&part).with_context(|| format!("making {}", part.display()))?;
    run(Command::new("apt-get").args(["download", "prometheus"]).current_dir(&part))?;
    let package = std::fs::read_dir(&part)?.flatten().map(|file| file.path());
    let package = package.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = package.context("apt-get has downloaded nothing")?;
    run(Command::new("dpkg").arg("-x").arg(&package).arg(&part))?;
    std::fs::remove_file(&package)?;
    if std::fs::rename(&part, folder).is_err() {
        // Somebody was faster.
        std::fs::remove_dir_all(&part).ok();
    }
    Ok(tool)
}
