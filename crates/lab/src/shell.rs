//! Running other programs, loudly.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Prints a command, runs it, and fails if it does.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let envs: String = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={} ", name.to_str()?, value?.to_str()?)))
        .collect();
    let words: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    let line = format!("{envs}{} {}", command.get_program().to_string_lossy(), words.join(" "));
    println!("\n$ {line}");
    let status = command.status().with_context(|| format!("starting {line}"))?;
    if !status.success() {
        bail!("{line} ended with {status}");
    }
    Ok(())
}

/// Whether a program answers; its output is not shown.
pub fn answers(program: &str, args: &[&str]) -> bool {
    let quiet = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// What a program answers, without the space around it; nothing if it fails or is not there.
pub fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    said("id", &["-u"]).is_some_and(|id| id == "0")
}
