//! The runner: starts a supervisor for each attempt, hands it the work, and waits for the end of both.

use std::io::Write as _;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use punctual_core::run::Report;
use punctual_engine::output::Stream;
use punctual_engine::runner::{Assignment, Ending, Finish, RunContext, Runner, Stop, StopLevel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::agent::{AgentError, ProcessAgent, Stdin};
use super::environment::environment;
use super::leftovers;
use super::protocol::{KILL, Refusal, START_MAX, Start, TERM, TOLD_MAX, Told, Work};
use super::secrets;
use super::supervisor::{ARG0, SUBCOMMAND, THIS_PROGRAM, WATCH};
use super::tail::Tail;
use super::verdict::{Cause, End, Printed, verdict};
use crate::result::RESULT_TAIL;

/// How much longer than it should the supervisor may take to end a tree before it counts as lost. It gives up by itself
/// before that.
const SUPERVISOR_LATE: Duration = Duration::from_secs(8);

/// How long the output may stay open after the last process of the run. Only a process that is not of the run, and was
/// handed the pipe, can hold it; what the run itself printed is in the pipe by then.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// How much of the end of stderr is kept at least, where an error is looked for.
const ERROR_TAIL: usize = 64 * 1024;

/// Runs the command of one agent.
#[derive(Debug)]
pub struct ProcessRunner {
    agent: ProcessAgent,
    supervisor: Supervisor,
}

/// The program that becomes the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor(PathBuf);

impl Supervisor {
    /// The program that is running now. Its `main` must call [`supervise_if_asked`](super::supervise_if_asked).
    pub fn this_program() -> Supervisor {
        Supervisor(THIS_PROGRAM.into())
    }

    /// Another program of the same version that does so: for tests, whose own `main` is not theirs.
    pub fn at(program: impl Into<PathBuf>) -> Supervisor {
        Supervisor(program.into())
    }
}

impl ProcessRunner {
    /// A runner of this agent, if its settings are in order.
    pub fn new(agent: ProcessAgent, supervisor: Supervisor) -> Result<ProcessRunner, AgentError> {
        agent.check()?;
        Ok(ProcessRunner { agent, supervisor })
    }

    /// Starts the supervisor, which waits to be told what to do.
    fn spawn(&self, context: &RunContext, stop: &Stop) -> std::io::Result<(Child, UnixStream, Arc<DirectLine>)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let direct = Arc::new(DirectLine { control: ours.try_clone()?, is_started: AtomicBool::new(false) });
        // It does not hold the socket open: that ends with the attempt.
        let line = Arc::downgrade(&direct);
        stop.call_directly(move |level| line.upgrade().into_iter().for_each(|line| line.order(level)));
        let ours = UnixStream::from_std(ours)?;
        let child = Command::new(&self.supervisor.0)
            .arg0(ARG0)
            // The id is for those who look at a list of processes.
            .args([SUBCOMMAND, WATCH, &context.run_id.to_string()])
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok((child, ours, direct))
    }

    /// What the supervisor is told, as one line.
    fn start_line(&self, context: &RunContext, secrets: &[(String, String)]) -> Result<Vec<u8>, Refusal> {
        let unwritable = |error: serde_json::Error| Refusal::new("write down the run context", error);
        let start = Start {
            grace_ms: self.agent.grace.as_millis().try_into().unwrap_or(u64::MAX),
            work: Work {
                command: self.agent.command.clone(),
                folder: self.agent.folder.clone().map(Into::into),
                env: environment(&self.agent, secrets, context, std::env::vars_os()),
                limits: self.agent.limits.clone(),
                context: match self.agent.stdin {
                    Stdin::Context => serde_json::to_string(context).map_err(unwritable)?,
                    Stdin::Prompt => context.prompt.clone(),
                },
            },
        };
        let mut line = serde_json::to_vec(&start).map_err(unwritable)?;
        line.push(b'\n');
        if START_MAX < line.len() {
            return Err(Refusal::new("pass on the run context", rustix::io::Errno::TOOBIG));
        }
        Ok(line)
    }

    /// Carries out the attempt, and says how it came to its end.
    async fn attend(&self, assignment: &Assignment, mut stop: Stop, printed: &mut Printed) -> (End, Option<Cause>) {
        let started = secrets::read(&self.agent).and_then(|(values, secrets)| {
            let line = self.start_line(&assignment.context, &values)?;
            let spawned = self.spawn(&assignment.context, &stop);
            spawned.map(|spawned| (line, secrets, spawned)).map_err(|error| Refusal::new("start the supervisor", error))
        });
        let (line, secrets, (mut child, mut control, direct)) = match started {
            Ok(started) => started,
            Err(refusal) => return (End::NotStarted(refusal), None),
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = stdout.zip(stderr).expect("both were asked for");
        let mut cause = None;
        let told = {
            let time = Duration::from_millis(assignment.timeout.milliseconds().unsigned_abs());
            let mut talking = pin!(talk(&mut control, &direct, &line, self.agent.grace, time, &mut stop, &mut cause));
            let printer = &assignment.printer;
            let mut reading = pin!(async {
                tokio::join!(
                    printed.stdout.fill(stdout, &secrets, |bytes| printer.print(Stream::Stdout, bytes)),
                    printed.stderr.fill(stderr, &secrets, |bytes| printer.print(Stream::Stderr, bytes)),
                )
            });
            tokio::select! {
                told = &mut talking => {
                    dismiss(&mut child, told.is_some(), &assignment.context).await;
                    drop(timeout(DRAIN_MAX, reading).await);
                    told
                }
                // Nobody holds the output any more, so nobody is left but a supervisor that is about to tell.
                _ = &mut reading => {
                    let told = talking.await;
                    dismiss(&mut child, told.is_some(), &assignment.context).await;
                    told
                }
            }
        };
        let end = match told {
            Some(Told::NotStarted(refusal)) => End::NotStarted(refusal),
            Some(Told::Ended(ended)) => {
                if 0 < ended.left {
                    let run_id = assignment.context.run_id;
                    tracing::error!(run.id = %run_id, left = ended.left, "processes of run {run_id} cannot be killed");
                }
                End::Ended(ended)
            }
            None => End::SupervisorLost,
        };
        (end, cause)
    }
}

#[async_trait]
impl Runner for ProcessRunner {
    /// Dropping the future closes the supervisor's socket, which ends the work like the death of the server does.
    async fn run(&self, assignment: Assignment, stop: Stop) -> Finish {
        if StopLevel::Ask <= stop.level() {
            return Finish { ending: Ending::Stopped, report: Report::default() };
        }
        let keep = self.agent.output_max.max(RESULT_TAIL);
        let (stdout, stderr) = (Tail::new(keep), Tail::new(self.agent.output_max.max(ERROR_TAIL)));
        let mut printed = Printed { stdout, stderr, max: self.agent.output_max };
        let (end, cause) = self.attend(&assignment, stop, &mut printed).await;
        verdict(&end, cause, &printed, &self.agent)
    }
}

/// The way to the supervisor for orders that cannot wait for a thread of the runtime: whoever pulls the stop gives them itself.
/// The task that attends to the run gives them again, which changes nothing.
#[derive(Debug)]
struct DirectLine {
    control: StdUnixStream,
    /// Whether the supervisor has been told what to do: before that it reads nothing else.
    is_started: AtomicBool,
}

impl DirectLine {
    /// Gives an order, without waiting for anything.
    fn order(&self, level: StopLevel) {
        let order = match level {
            StopLevel::GoOn => return,
            StopLevel::Ask => TERM,
            StopLevel::Now => KILL,
        };
        let is_given = self.is_started.load(Ordering::Acquire)
            && (&self.control).write_all(format!("{order}\n").as_bytes()).is_ok();
        if !is_given && level == StopLevel::Now {
            // A supervisor that hears nothing more takes the server for dead, and ends everything.
            drop(self.control.shutdown(Shutdown::Write));
        }
    }
}

/// Waits for the end of the supervisor. One that has not told how it went is killed, and so is what it left behind.
async fn dismiss(child: &mut Child, has_told: bool, context: &RunContext) {
    if !has_told || timeout(SUPERVISOR_LATE, child.wait()).await.is_err() {
        drop(child.kill().await);
        leftovers::end(context).await;
    }
}

/// Tells the supervisor what to do and when to stop, and returns what it says; `None` if it is lost.
async fn talk(
    control: &mut UnixStream,
    direct: &DirectLine,
    start: &[u8],
    grace: Duration,
    time: Duration,
    stop: &mut Stop,
    cause: &mut Option<Cause>,
) -> Option<Told> {
    let (hearing, mut orders) = control.split();
    let mut said = Vec::new();
    let is_said = {
        let mut hearing = hearing.take(TOLD_MAX);
        tokio::select! {
            result = hearing.read_to_end(&mut said) => result.is_ok(),
            () = order(&mut orders, direct, start, grace, time, stop, cause) => false,
        }
    };
    // The order may have been given directly, and carried out before this task saw it.
    if cause.is_none() && StopLevel::Ask <= stop.level() {
        *cause = Some(Cause::Stop);
    }
    if is_said { serde_json::from_slice(&said).ok() } else { None }
}

/// Gives the orders, each in its time. Returns when the supervisor should long have ended.
///
/// Orders that cannot be given are not missed: the supervisor is gone then, and its silence is heard.
async fn order(
    orders: &mut (impl AsyncWriteExt + Unpin),
    direct: &DirectLine,
    start: &[u8],
    grace: Duration,
    time: Duration,
    stop: &mut Stop,
    cause: &mut Option<Cause>,
) {
    let mut timer = pin!(sleep(time));
    tokio::select! {
        _ = orders.write_all(start) => direct.is_started.store(true, Ordering::Release),
        () = &mut timer => { *cause = Some(Cause::Timeout); return }
        () = stop.reached(StopLevel::Now) => { *cause = Some(Cause::Stop); return }
    }
    *cause = Some(tokio::select! {
        () = stop.reached(StopLevel::Ask) => Cause::Stop,
        () = &mut timer => Cause::Timeout,
    });
    if stop.level() < StopLevel::Now {
        drop(orders.write_all(format!("{TERM}\n").as_bytes()).await);
        // The supervisor kills by itself when the grace is over: this wait is for a harder stop in between.
        drop(timeout(grace, stop.reached(StopLevel::Now)).await);
    }
    drop(orders.write_all(format!("{KILL}\n").as_bytes()).await);
    sleep(SUPERVISOR_LATE).await;
}
