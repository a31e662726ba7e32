//! Running other programs, loudly.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, bail};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies in the workspace").to_owned()
}

/// A command at the workspace's root.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Prints a command, runs it, and fails if it does.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
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
pub(crate) fn answers(program: &str, args: &[&str]) -> bool {
    let quiet = command(program, args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// What a program answers, without the space around it; nothing if it fails or is not there.
pub(crate) fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = command(program, args).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Ends as another program did. One that was killed has no code of its own, and failed.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
