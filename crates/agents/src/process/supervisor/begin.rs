//! The second stage: takes everything upon itself that the work is to be under, and becomes the work.
//!
//! In: a `Work` on standard input. Out: the work, in this very process; or a `Refusal` on the same socket.
//! Not here: who watches over it (`watch`).

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::signal::SigSet;
use rustix::fs::{MemfdFlags, Mode, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Signal, set_parent_process_death_signal, setsid, umask};
use rustix::thread::set_no_new_privs;

use super::super::protocol::{READY, Refusal, Work};

/// How much sooner than the server the kernel should choose the work when memory is short, from 0 to 1000.
const OOM_SCORE: &str = "500";

/// The exit code of a second stage that could not become the work. The `Refusal` says why; the code is for people.
const NOT_BEGUN: u8 = 127;

/// The second stage, from its start to the start of the work.
pub(super) fn main() -> ExitCode {
    // A first stage that says nothing, or that cannot be told, is dead.
    if let Ok((work, mut socket)) = hear() {
        // Returning means that this stage did not become the work.
        let refusal = begin(&work, &mut socket);
        drop(serde_json::to_writer(&socket, &refusal));
    }
    ExitCode::from(NOT_BEGUN)
}

/// Reads what is to be done, on a descriptor that the work does not inherit.
fn hear() -> io::Result<(Work, UnixStream)> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut text = Vec::new();
    socket.read_to_end(&mut text)?;
    Ok((serde_json::from_slice(&text)?, socket))
}

/// Becomes the work, or returns why not.
fn begin(work: &Work, socket: &mut UnixStream) -> Refusal {
    match prepare(work) {
        Err(refusal) => refusal,
        Ok(mut command) => {
            // Also the proof that the first stage lives: had it died before the death signal was set, this fails.
            if let Err(error) = socket.write_all(READY.as_bytes()) {
                return Refusal::new("reach the supervisor", error);
            }
            if let Err(error) = work.limits.take_on() {
                return Refusal::new("set the limits of the run", error);
            }
            let error = command.exec();
            Refusal::new(format!("start the command {:?}", work.command[0]), error)
        }
    }
}

fn prepare(work: &Work) -> Result<Command, Refusal> {
    // The first stage holds some back to wait for them, and a new program inherits that.
    SigSet::all().thread_unblock().map_err(|error| Refusal::new("let signals through", error))?;
    // Away from the supervisor's session and group: what the work sends to its own group stays below it.
    setsid().map_err(|error| Refusal::new("open a session for the command", error))?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Refusal::new("tie the command to its supervisor", error))?;
    set_no_new_privs(true).map_err(|error| Refusal::new("give up the right to new privileges", error))?;
    umask(Mode::RWXG | Mode::RWXO);
    // Not every kernel and container has it, and `protections` says so; nothing depends on it.
    drop(std::fs::write("/proc/self/oom_score_adj", OOM_SCORE));
    if let Some(folder) = &work.folder {
        std::env::set_current_dir(folder)
            .map_err(|error| Refusal::new(format!("enter the working directory {folder:?}"), error))?;
    }
    let context = sealed(&work.context).map_err(|error| Refusal::new("write down the run context", error))?;
    let mut command = Command::new(&work.command[0]);
    command.args(&work.command[1..]).env_clear().envs(work.env.iter().cloned()).stdin(context);
    Ok(command)
}

/// A file that exists only in memory, holds this text and cannot be changed any more.
///
/// As standard input it needs nobody to feed it: work that never reads, or that ends in the middle, blocks no one.
fn sealed(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("run-context", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}
