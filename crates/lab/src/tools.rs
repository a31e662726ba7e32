//! Small programs that examples and tests call, as their readers do.

use anyhow::bail;

use crate::apt;
use crate::shell::answers;

const TOOLS: [&str; 2] = ["curl", "jq"];

const ADVICE: &str =
    "Install them with your package manager: apt-get install curl jq, dnf install curl jq, brew install jq";

/// Finds them, or installs those that are missing.
pub fn find_or_install() -> anyhow::Result<()> {
    let missing = || -> Vec<&str> { TOOLS.into_iter().filter(|tool| !answers(tool, &["--version"])).collect() };
    if !missing().is_empty() && apt::is_possible() {
        println!("\nNot here and installed: {}.", missing().join(", "));
        apt::install(&missing())?;
    }
    let missing = missing();
    if !missing.is_empty() {
        bail!("this machine has no {}.\n{ADVICE}", missing.join(", "));
    }
    Ok(())
}
