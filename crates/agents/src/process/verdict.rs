//! The verdict: from how the work ended and what it printed to what the engine is told. Pure.

use punctual_core::run::{FailureCode, Report, ReportedError};
use punctual_engine::runner::{Ending, Finish};
use rustix::io::Errno;
use rustix::process::Signal;

use super::agent::ProcessAgent;
use super::limits::Limits;
use super::protocol::{Ended, Exit, Refusal};
use super::tail::Tail;
use crate::result::{AgentResult, ERROR_MESSAGE_MAX, WorkError};
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
pub(super) fn verdict(end: &End, cause: Option<Cause>, printed: &Printed, agent: &ProcessAgent) -> Finish {
    let mut result = match end {
        End::Ended(Ended { exit, .. }) => {
            let mut result = AgentResult::read(printed.stdout.kept());
            // Some tools print there what is wrong, in the same shape.
            if result.error.is_none() && *exit != Exit::Code(0) {
                result.error = AgentResult::read(printed.stderr.kept()).error;
            }
            result
        }
        _ => AgentResult::default(),
    };
    let (ending, error) = judge(end, cause, result.error.take(), printed, &agent.limits);
    if let End::Ended(Ended { left: left @ 1.., .. }) = end {
        result.warnings.push(format!("{left} processes of the run could not be ended"));
    }
    if let Some(model) = &agent.model
        && !result.llm.is_empty()
    {
        result.llm.entry("model").or_insert_with(|| model.clone().into());
    }
    let mut report = Report {
        summary: result.summary,
        refs: result.refs,
        llm: result.llm,
        tools: result.tools,
        facts: result.facts,
        session_id: result.session_id,
        next_run_at: result.next_run_at,
        next_run: None,
        error,
        warnings: vec![],
        exit_code: match end {
            End::Ended(Ended { exit: Exit::Code(code), .. }) => Some(*code),
            _ => None,
        },
        output: output(printed, ending == Ending::Succeeded),
        output_bytes: printed.stdout.total() + printed.stderr.total(),
    };
    result.warnings.iter().for_each(|warning| report.warn(warning));
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
fn output(printed: &Printed, has_succeeded: bool) -> String {
    let mut output = printed.stdout.text(printed.max);
    if !has_succeeded && 0 < printed.stderr.total() {
        begin_line(&mut output);
        output += "[stderr]\n";
        output += &printed.stderr.text(printed.max);
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
        let agent = ProcessAgent { limits: limits.clone(), ..ProcessAgent::new(["true"]) };
        let finish = verdict(end, cause, &printed(stdout, "oops\n"), &agent);
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
            verdict(&end, None, &printed("out", "err"), &ProcessAgent::new(["true"])).report.output
        };
        assert_eq!(output(0), "out");
        assert_eq!(output(1), "out\n[stderr]\nerr");
    }

    #[test]
    fn what_is_not_understood_is_a_warning() {
        let end = End::Ended(Ended { exit: Exit::Code(0), was_stopped: false, left: 2 });
        let finish = verdict(&end, None, &printed("{\"refs\":1}\n", ""), &ProcessAgent::new(["true"]));
        assert_eq!(finish.report.output, "{\"refs\":1}\n");
        assert_eq!(
            finish.report.warnings,
            ["result: refs is a number, not an object: ignored", "2 processes of the run could not be ended"]
        );
    }

    #[test]
    fn a_tool_may_say_on_stderr_what_is_wrong() {
        let agent = ProcessAgent::new(["true"]);
        let said = "{\n  \"error\": {\n    \"type\": \"FatalAuthenticationError\",\n    \"message\": \"no key\",\n    \"code\": 41\n  }\n}\n";
        let end = |code| verdict(&ended(Exit::Code(code), false), None, &printed("", said), &agent);
        let error = end(41).report.error.unwrap();
        assert_eq!((error.code.as_str(), error.message.as_str()), ("41", "no key"));
        assert_eq!(end(0).ending, Ending::Succeeded);
    }

    #[test]
    fn the_agent_names_the_model_where_its_result_does_not() {
        let agent = ProcessAgent { model: Some("m".to_owned()), ..ProcessAgent::new(["true"]) };
        let model = |stdout| {
            let finish = verdict(&ended(Exit::Code(0), false), None, &printed(stdout, ""), &agent);
            finish.report.llm.get("model").cloned()
        };
        assert_eq!(model(r#"{"usage":{"input_tokens":1}}"#), Some("m".into()));
        assert_eq!(model(r#"{"llm":{"model":"other"}}"#), Some("other".into()));
        assert_eq!(model(r#"{"summary":"x"}"#), None);
    }
}
