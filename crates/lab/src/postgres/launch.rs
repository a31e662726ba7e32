//! Starting the server's process, and hearing when it is ready.
//!
//! Nothing asks again and again: the server's log comes through a pipe, and says when it accepts connections, or why it
//! does not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, bail};

/// The server says so in its log when it is there.
const READY: &str = "database system is ready to accept connections";

/// It takes a second; only a machine that is very busy needs more.
const READY_AFTER_MAX: Duration = Duration::from_secs(60);

/// How much of the log is shown when the server does not start.
const LOG_LINES_SHOWN: usize = 30;

/// A server's process, until it is over.
pub(super) type Process = JoinHandle<io::Result<ExitStatus>>;

/// Starts the server and waits for its word that it is ready. Nothing comes back if another program took its port.
///
/// Ending it is the keeper's part, also when it does not become ready.
pub(super) fn launch(postgres: &mut Command, log: &Path) -> anyhow::Result<Option<Process>> {
    let log_file = File::create(log).context("creating the log of the server")?;
    // In a group of its own: Ctrl-C is for this process and its command, and the server ends after them.
    let process = postgres.process_group(0).stderr(Stdio::piped()).spawn().context("starting postgres")?;
    let (sender, ready) = channel();
    let process = std::thread::spawn(move || follow(process, log_file, &sender));
    let what = match ready.recv_timeout(READY_AFTER_MAX) {
        Ok(()) => return Ok(Some(process)),
        Err(RecvTimeoutError::Disconnected) => "ended at once".to_owned(),
        Err(RecvTimeoutError::Timeout) => format!("was not ready after {READY_AFTER_MAX:?}"),
    };
    let end = end_of(log);
    if end.contains("Address already in use") {
        return Ok(None);
    }
    bail!("PostgreSQL {what}:\n{end}")
}

/// Writes what the server says into its log, and tells when it is ready, until it is over and buried.
fn follow(mut process: Child, mut log: File, ready: &Sender<()>) -> io::Result<ExitStatus> {
    let said = process.stderr.take().expect("its standard error is ours");
    for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
        // The pipe is emptied whatever happens to the log: a server that cannot speak stands still.
        let _ = log.write_all(&[&line[..], b"\n"].concat());
        if String::from_utf8_lossy(&line).contains(READY) {
            let _ = ready.send(());
        }
    }
    process.wait()
}

/// The last lines of a log.
pub(super) fn end_of(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}
