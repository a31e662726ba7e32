//! The server's folder, and a process that ends the server and removes the folder when its time has come.
//!
//! A killed process cannot clean up after itself, and one that is interrupted needs unsafe code for it. So a shell waits
//! at a pipe whose other end only this process holds: it closes when the server is dropped, and just as well when this
//! process dies. There is one way to end a server, and it is taken every time.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use super::account::{self, Account};
use super::programs::Programs;

/// What the shell does, with the programs' folder and the server's. A program that was cut short may still write a last
/// file into the folder, so it is removed until it is gone.
const SCRIPT: &str = r#"
cat
test -e "$2/data/postmaster.pid" && "$1/pg_ctl" stop --pgdata "$2/data" --mode immediate --timeout 30
for _ in 1 2 3 4 5; do rm -rf "$2" && exit 0; sleep 1; done
"#;

/// A folder, and who removes it.
pub(super) struct Keeper {
    folder: PathBuf,
    shell: Child,
}

impl Keeper {
    /// Makes a new folder, of the account's and in which only it can look, and has it kept.
    pub(super) fn make_folder(programs: &Programs, account: Option<Account>) -> anyhow::Result<Keeper> {
        let folder = new_folder(account)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "keeper"]).arg(&programs.folder).arg(&folder);
        account::run_as(&mut shell, account);
        // Out of the reach of Ctrl-C, which is one of the moments it is for; and silent.
        shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = shell.current_dir("/").spawn().context("starting a shell that cleans up after PostgreSQL")?;
        Ok(Keeper { folder, shell })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the server keeps its data.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Where a copy of it is.
    pub(super) fn copy(&self) -> PathBuf {
        self.folder.join("copy")
    }

    /// What the server says.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Keeper {
    /// Ends the server, removes the folder, and waits for both.
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Makes a new folder as the account: who may make it may also remove it.
fn new_folder(account: Option<Account>) -> anyhow::Result<PathBuf> {
    let mut mktemp = Command::new("mktemp");
    mktemp.arg("-d").arg(std::env::temp_dir().join("punctual-postgres-XXXXXX"));
    account::run_as(&mut mktemp, account);
    let made = mktemp.output().context("starting mktemp")?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        bail!("{}\nset TMPDIR to a folder in which every user may make others", said.trim());
    }
    Ok(PathBuf::from(String::from_utf8(made.stdout)?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_ends_with_its_keeper() {
        let programs = Programs { folder: PathBuf::from("/nowhere"), version: 17 };
        let keeper = Keeper::make_folder(&programs, Account::for_programs().unwrap()).unwrap();
        let folder = keeper.folder().to_owned();
        std::fs::create_dir(keeper.data()).unwrap();
        assert!(folder.exists());
        drop(keeper);
        assert!(!folder.exists());
    }
}
