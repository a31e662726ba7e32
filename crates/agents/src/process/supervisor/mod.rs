//! The supervisor: the same program once more, in another role, without a runtime and with one thread.
//!
//! In: a `Start` and orders on standard input. Out: one `Told` on the same socket, when nothing of the run lives.

mod begin;
mod control;
mod tree;
mod watch;

use std::process::ExitCode;

/// The hidden subcommand under which the server starts its supervisors.
pub const SUBCOMMAND: &str = "supervise";

/// The first stage: stays until the work is over.
pub(super) const WATCH: &str = "watch";
/// The second stage: becomes the work.
const BEGIN: &str = "begin";

/// The program that is running, whatever has become of its file: after an upgrade in place, the path of a server that
/// still runs leads to another version of it, or nowhere.
pub(super) const THIS_PROGRAM: &str = "/proc/self/exe";

/// What a supervisor is called in a list of processes, where the link above would tell nobody anything.
pub(super) const ARG0: &str = "punctual";

/// Acts as the supervisor if this process was started as one, and returns the exit code to end with.
///
/// It must be the first thing that `main` does: before arguments are parsed, threads start or descriptors open.
pub fn supervise_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != SUBCOMMAND {
        return None;
    }
    let stage = arguments.next().unwrap_or_default();
    Some(match stage.to_str() {
        Some(WATCH) => watch::main(),
        Some(BEGIN) => begin::main(),
        _ => {
            eprintln!("error: `{SUBCOMMAND}` is for the server, which starts one for each run of a process agent");
            ExitCode::from(2)
        }
    })
}
