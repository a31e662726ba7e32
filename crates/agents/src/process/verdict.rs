//! The verdict: from how the work ended and what it printed to what the engine is told. Pure.

use punctual_core::run::{FailureCode, Report, ReportedError};
use punctual_engine::runner::{Ending, Finish};
use rustix::io::Errno;
use rustix::process::Signal;

use super::limits::Limits;
use super::protocol::{Ended, Exit, Refusal};
use super::reported::{ERROR_MESSAGE_MAX, Reported, WorkError};
use super::tail::Tail;
use crate::text::{cut, without_nul};

/// How much of the last line of stderr goes into the message of an error, in bytes.
const COMPLAINT_MAX: usize = 500;

/// What shells add to the number of a signal when they report the end of a command of theirs.
const SHELL_SIGNAL_BASE: i32 = 128;

/// How an attempt came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The work never began.
    NotStarted(Refusal),
    /// It ended, and all that came of it.
    Ended(Ended),
    /// Its supervisor is gone, and with it the knowledge of how it ended.
    SupervisorLost,
}

/// Why the runner told the work to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The engine pulled `stop`.
    Stop,
    /// The time of the run was over.
    Timeout,
}

/// What the work printed.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) stdout: Tail,
    pub(super) stderr: Tail,
    /// How much of each is shown.
    pub(super) max: usize,
}

/// Says how the attempt ended.
pub(super) fn verdict(end: &End, cause: Option<Cause>, printed: &Printed, limits: &Limits) -> Finish {
    let line = if let End::Ended(_) = end { printed.stdout.last_line() } else { None };
    let mut reported = Reported::read(line.unwrap_or_default());
    let (ending, error) = judge(end, cause, reported.error.take(), printed, limits);
    if let End::Ended(Ended { left: left @ 1.., .. }) = end {
        reported.notes.push(format!("{left} processes of the run could not be ended"));
    }
    let report = Report {
        summary: reported.summary,
        refs: reported.refs,
        llm: reported.llm,
        tools: reported.tools,
        facts: reported.facts,
        next_run_at: reported.next_run_at,
        next_run: None,
        error,
        exit_code: match end {
            End::Ended(Ended { exit: Exit::Code(code), .. }) => Some(*code),
            _ => None,
        },
        output: output(printed, ending == Ending::Succeeded, &reported.notes),
        output_bytes: printed.stdout.total() + printed.stderr.total(),
    };
    Finish { ending, report }
}

fn judge(
    end: &End,
    cause: Option<Cause>,
    reported: Option<WorkError>,
    printed: &Printed,
    limits: &Limits,
) -> (Ending, Option<ReportedError>) {
    let was_stopped = match end {
        End::NotStarted(_) => false,
        End::Ended(ended) => ended.was_stopped,
        End::SupervisorLost => true,
    };
    match (end, cause) {
        (_, Some(Cause::Stop)) if was_stopped => return (Ending::Stopped, reported.map(shown)),
        (_, Some(Cause::Timeout)) if was_stopped => {
            return (failed(FailureCode::TimedOut, true), Some(error("timed_out", "the work ran longer than it may")));
        }
        (End::NotStarted(refusal), _) => {
            let message = format!("could not {}: {}", refusal.doing, refusal.cause);
            return (failed(FailureCode::NotStarted, may_go_away(refusal)), Some(error("not_started", message)));
        }
        (End::SupervisorLost, _) => {
            let message = "the supervisor of the work was killed, so how the work ended is not known";
            return (failed(FailureCode::Error, true), Some(error("supervisor_lost", message)));
        }
        (End::Ended(_), _) => {}
    }
    let End::Ended(Ended { exit, .. }) = end else { unreachable!("every other end has been answered above") };
    if let (Exit::Code(0), None) = (exit, &reported) {
        return (Ending::Succeeded, None);
    }
    let is_retryable = reported.as_ref().is_none_or(|error| error.is_retryable);
    if let Some((signal, limit)) = limit_of(*exit, limits) {
        let message = format!("{signal}: the work used more {limit} than it may");
        return (failed(FailureCode::ResourceLimit, is_retryable), Some(error("resource_limit", message)));
    }
    let error = reported.map(shown).unwrap_or_else(|| complaint(*exit, &printed.stderr));
    (failed(FailureCode::Error, is_retryable), Some(error))
}

fn failed(code: FailureCode, is_retryable: bool) -> Ending {
    Ending::Failed { code, is_retryable, retry_after: None }
}

fn error(code: &str, message: impl Into<String>) -> ReportedError {
    ReportedError { code: code.to_owned(), message: cut(without_nul(message.into()), ERROR_MESSAGE_MAX) }
}

fn shown(error: WorkError) -> ReportedError {
    ReportedError { code: error.code, message: error.message }
}

/// Whether the same try may succeed later. A command that is missing stays missing until somebody does something; a
/// machine that is short of processes or memory gets over it.
fn may_go_away(refusal: &Refusal) -> bool {
    let lasting = [
        Errno::NOENT,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::NOEXEC,
        Errno::LOOP,
        Errno::NAMETOOLONG,
        Errno::INVAL,
        Errno::TOOBIG,
    ];
    !refusal.errno.is_some_and(|errno| lasting.contains(&Errno::from_raw_os_error(errno)))
}

/// The limit that ended the work, with the signal's name.
///
/// A shell whose command was ended so says it with its exit code. Where the limit is set, that is what the code means.
fn limit_of(exit: Exit, limits: &Limits) -> Option<(&'static str, &'static str)> {
    let ended_by = |signal: Signal, is_limited: bool| {
        exit == Exit::Signal(signal.as_raw()) || is_limited && exit == Exit::Code(SHELL_SIGNAL_BASE + signal.as_raw())
    };
    if ended_by(Signal::XCPU, limits.cpu_seconds.is_some()) {
        Some(("SIGXCPU", "processor time"))
    } else if ended_by(Signal::XFSZ, limits.file_size_bytes.is_some()) {
        Some(("SIGXFSZ", "disk space for one file"))
    } else {
        None
    }
}

/// What is wrong, of work that did not say it itself.
fn complaint(exit: Exit, stderr: &Tail) -> ReportedError {
    let (code, mut message) = match exit {
        Exit::Code(code) => ("exit_code", format!("the command ended with exit code {code}")),
        Exit::Signal(signal) if signal == Signal::KILL.as_raw() => (
            "signal",
            "the command was killed (signal 9): by somebody else, for want of memory, or at a limit".to_owned(),
        ),
        Exit::Signal(signal) => ("signal", format!("the command was ended by signal {signal}")),
    };
    if let Some(line) = stderr.last_line() {
        message += ": ";
        message += &cut(String::from_utf8_lossy(line).into_owned(), COMPLAINT_MAX);
    }
    error(code, message)
}

/// The end of what was printed; of stderr only when something is wrong, as most programs say there why.
fn output(printed: &Printed, has_succeeded: bool, notes: &[String]) -> String {
    let mut output = printed.stdout.text(printed.max);
    if !has_succeeded && 0 < printed.stderr.total() {
        begin_line(&mut output);
        output += "[stderr]\n";
        output += &printed.stderr.text(printed.max);
    }
    for note in notes {
        begin_line(&mut output);
        output += &format!("[{note}]\n");
    }
    output
}

fn begin_line(output: &mut String) {
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(stdout: &str, stderr: &str) -> Printed {
        let mut printed = Printed { stdout: Tail::new(1000), stderr: Tail::new(1000), max: 1000 };
        printed.stdout.push(stdout.as_bytes());
        printed.stderr.push(stderr.as_bytes());
        printed
    }

    fn ended(exit: Exit, was_stopped: bool) -> End {
        End::Ended(Ended { exit, was_stopped, left: 0 })
    }

    /// The ending in one line, and the message of the error.
    fn say(end: &End, cause: Option<Cause>, stdout: &str, limits: &Limits) -> String {
        let finish = verdict(end, cause, &printed(stdout, "oops\n"), limits);
        let ending = match finish.ending {
            Ending::Succeeded => "succeeded".to_owned(),
            Ending::Stopped => "stopped".to_owned(),
            Ending::Failed { code, is_retryable, .. } => {
                format!("{code:?}{}", if is_retryable { "" } else { " for good" })
            }
        };
        match finish.report.error {
            Some(error) => format!("{ending}, {}: {}", error.code, error.message),
            None => ending,
        }
    }

    #[track_caller]
    fn check(exit: Exit, stdout: &str, expected: &str) {
        assert_eq!(say(&ended(exit, false), None, stdout, &Limits::default()), expected);
    }

    #[test]
    fn exit_code_and_report_together_decide() {
        check(Exit::Code(0), "", "succeeded");
        check(Exit::Code(0), "{\"error\":null}", "succeeded");
        check(Exit::Code(0), r#"{"error":{"code":"a","message":"b"}}"#, "Error, a: b");
        check(Exit::Code(3), r#"{"error":{"code":"a","message":"b","retryable":false}}"#, "Error for good, a: b");
        check(Exit::Code(3), "{}", "Error, exit_code: the command ended with exit code 3: oops");
        check(Exit::Signal(15), "", "Error, signal: the command was ended by signal 15: oops");
        check(
            Exit::Signal(9),
            "",
            "Error, signal: the command was killed (signal 9): by somebody else, for want of memory, or at a limit: oops",
        );
    }

    #[test]
    fn signals_of_limits_are_limits() {
        check(
            Exit::Signal(24),
            "",
            "ResourceLimit, resource_limit: SIGXCPU: the work used more processor time than it may",
        );
        check(
            Exit::Signal(25),
            "",
            "ResourceLimit, resource_limit: SIGXFSZ: the work used more disk space for one file than it may",
        );
        check(Exit::Code(153), "", "Error, exit_code: the command ended with exit code 153: oops");
        let limits = Limits { file_size_bytes: Some(1), ..Limits::default() };
        assert!(say(&ended(Exit::Code(153), false), None, "", &limits).starts_with("ResourceLimit"));
    }

    #[test]
    fn only_what_ended_because_of_it_is_stopped_or_timed_out() {
        let limits = Limits::default();
        let stop = |was_stopped, cause| say(&ended(Exit::Code(0), was_stopped), Some(cause), "", &limits);
        assert_eq!(stop(true, Cause::Stop), "stopped");
        assert_eq!(stop(false, Cause::Stop), "succeeded");
        assert_eq!(stop(true, Cause::Timeout), "TimedOut, timed_out: the work ran longer than it may");
        assert_eq!(stop(false, Cause::Timeout), "succeeded");
        assert_eq!(say(&End::SupervisorLost, Some(Cause::Stop), "", &limits), "stopped");
        assert!(say(&End::SupervisorLost, Some(Cause::Timeout), "", &limits).starts_with("TimedOut"));
        assert!(say(&End::SupervisorLost, None, "", &limits).starts_with("Error, supervisor_lost"));
    }

    #[test]
    fn a_missing_command_is_final_and_a_full_machine_is_not() {
        let say = |errno: Errno| {
            let refusal = Refusal::new("start the command \"x\"", errno);
            say(&End::NotStarted(refusal), None, "", &Limits::default())
        };
        assert_eq!(
            say(Errno::NOENT),
            "NotStarted for good, not_started: could not start the command \"x\": No such file or directory (os error 2)"
        );
        assert!(say(Errno::ACCESS).starts_with("NotStarted for good"));
        assert!(say(Errno::AGAIN).starts_with("NotStarted, "));
        assert!(say(Errno::NOMEM).starts_with("NotStarted, "));
    }

    #[test]
    fn stderr_is_shown_when_something_is_wrong() {
        let output = |code| {
            let end = ended(Exit::Code(code), false);
            verdict(&end, None, &printed("out", "err"), &Limits::default()).report.output
        };
        assert_eq!(output(0), "out");
        assert_eq!(output(1), "out\n[stderr]\nerr");
    }

    #[test]
    fn notes_stand_below_the_output() {
        let end = End::Ended(Ended { exit: Exit::Code(0), was_stopped: false, left: 2 });
        let finish = verdict(&end, None, &printed("{\"refs\":1}\n", ""), &Limits::default());
        assert_eq!(
            finish.report.output,
            "{\"refs\":1}\n[the reported `refs` is a number, not an object: ignored]\n\
             [2 processes of the run could not be ended]\n"
        );
    }
}
