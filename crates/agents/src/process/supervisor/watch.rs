//! The first stage: watches over the work, ends the whole tree below it, and tells the server how it went.
//!
//! In: orders, the end of processes, signals. Out: one `Told`, after the last process of the run.
//! Invariant: returns only when nothing of the run lives, except for what the kernel itself cannot end.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, setsid, wait};

use super::super::protocol::{Ended, Exit, READY, Refusal, Told, Work};
use super::control::{Control, Order};
use super::{ARG0, BEGIN, SUBCOMMAND, THIS_PROGRAM, tree};

/// What the work left behind when it ended by itself has this long to follow.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// What outlives the server has this long to end: another node may already be about to do the same work.
const SERVER_LOST_GRACE: Duration = Duration::from_secs(2);
/// How often the children are killed until none is left. The end of each of them comes sooner and is heard of.
const KILL_EVERY: Duration = Duration::from_millis(5);
/// When to give up killing. Only a process that is stuck in the kernel survives that long.
const KILL_MAX: Duration = Duration::from_secs(5);
/// How long the second stage may take to listen.
const BEGIN_MAX: Duration = Duration::from_secs(30);

/// The first stage, from its start to its end.
pub(super) fn main() -> ExitCode {
    close_inherited();
    let mut control = match Control::from_stdin() {
        Ok(control) => control,
        Err(error) => {
            eprintln!("error: the supervisor has no server: {error}");
            return ExitCode::FAILURE;
        }
    };
    let told = match Watch::begin(&mut control) {
        Ok(watch) => watch.until_all_are_gone(&mut control),
        Err(refusal) => Told::NotStarted(refusal),
    };
    control.tell(&told);
    ExitCode::SUCCESS
}

/// Closes what the server had inherited from whoever started it. Its own descriptors are closed by starting us.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| 2 < *descriptor) {
        // One of them was the listing itself, and is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}

/// A work under way.
#[derive(Debug)]
struct Watch {
    main: Pid,
    /// How `main` ended, once it has.
    exit: Option<Exit>,
    /// Says whether `main` ever became the work.
    second_stage: UnixStream,
    signals: SignalFd,
    grace: Duration,
    stopping: Stopping,
    was_stopped: bool,
}

/// How far the end of the tree has come. Only ever moves down this list.
#[derive(Debug, Clone, Copy)]
enum Stopping {
    /// Nobody wants it.
    No,
    /// All have been asked to end, and have until then.
    Asked { until: Instant },
    /// All are being killed, until this is given up.
    Killing { until: Instant },
}

impl Watch {
    /// Gets ready, hears what is to be done, and starts the second stage.
    fn begin(control: &mut Control) -> Result<Watch, Refusal> {
        setsid().map_err(|error| Refusal::new("open a session for the supervisor", error))?;
        set_child_subreaper(Some(getpid())).map_err(|error| Refusal::new("collect the orphans of the run", error))?;
        let signals = signals().map_err(|error| Refusal::new("listen to signals", error))?;
        let start = control.start().map_err(|error| Refusal::new("read what to run", error))?;
        let (main, second_stage) =
            second_stage(&start.work).map_err(|error| Refusal::new("start the supervisor's second stage", error))?;
        Ok(Watch {
            main,
            exit: None,
            second_stage,
            signals,
            grace: Duration::from_millis(start.grace_ms),
            stopping: Stopping::No,
            was_stopped: false,
        })
    }

    /// Watches until nothing of the run lives.
    fn until_all_are_gone(mut self, control: &mut Control) -> Told {
        let mut is_server_there = true;
        while self.reap() {
            let now = now();
            match self.stopping {
                Stopping::No if self.exit.is_some() => self.ask(now, LEFTOVER_GRACE),
                Stopping::Asked { until } if until <= now => self.kill(now),
                Stopping::Killing { until } if until <= now => return self.told(tree::count()),
                _ => {}
            }
            if let Stopping::Killing { .. } = self.stopping {
                tree::kill_children();
            }
            self.wait(is_server_there.then_some(&*control), now);
            if self.is_told_to_end() {
                self.stop(Order::Term);
            }
            while is_server_there && let Some(order) = control.order() {
                is_server_there = order != Order::Gone;
                self.stop(order);
            }
        }
        self.told(0)
    }

    /// Collects the dead. Returns whether any child is left, dead or alive: without one, nothing of the run lives.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => {
                    self.exit = exit(status);
                    // The rest has been asked as well; with the head gone there is less to wait for.
                    if let Stopping::Asked { until } = &mut self.stopping {
                        *until = (*until).min(now() + LEFTOVER_GRACE);
                    }
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn stop(&mut self, order: Order) {
        self.was_stopped |= self.exit.is_none();
        match order {
            Order::Term => self.ask(now(), self.grace),
            Order::Gone => self.ask(now(), SERVER_LOST_GRACE),
            Order::Kill => self.kill(now()),
        }
    }

    /// Asks all to end, once, and sees to it that nobody has longer than `grace` from now.
    fn ask(&mut self, now: Instant, grace: Duration) {
        match &mut self.stopping {
            Stopping::No => {
                tree::ask_all();
                self.stopping = Stopping::Asked { until: now + grace };
            }
            Stopping::Asked { until } => *until = (*until).min(now + grace),
            Stopping::Killing { .. } => {}
        }
    }

    fn kill(&mut self, now: Instant) {
        if !matches!(self.stopping, Stopping::Killing { .. }) {
            self.stopping = Stopping::Killing { until: now + KILL_MAX };
        }
    }

    /// Waits for an order, for the end of a child, or until it is time to go further.
    fn wait(&self, control: Option<&Control>, now: Instant) {
        let timeout = match self.stopping {
            Stopping::No => None,
            Stopping::Asked { until } => Some(until.saturating_duration_since(now)),
            Stopping::Killing { .. } => Some(KILL_EVERY),
        };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut events = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        events.extend(control.map(|control| PollFd::new(control, PollFlags::IN)));
        // Whatever it returns, the next turn looks at everything.
        let _ = poll(&mut events, timeout.as_ref());
    }

    /// Whether the supervisor itself got a signal to end, as from a service manager that stops every process it sees.
    fn is_told_to_end(&self) -> bool {
        let mut is_told = false;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            is_told |= signal.ssi_signo != Signal::SIGCHLD as u32;
        }
        is_told
    }

    fn told(mut self, left: usize) -> Told {
        // Without an exit it was killed, and ends of that as soon as the kernel lets go of it.
        let exit = self.exit.unwrap_or(Exit::Signal(Signal::SIGKILL as i32));
        let mut said = String::new();
        // The other end is closed, by becoming the work or by ending; what was said before that is still there.
        drop(self.second_stage.read_to_string(&mut said));
        let ended = Told::Ended(Ended { exit, was_stopped: self.was_stopped, left });
        match said.strip_prefix(READY) {
            _ if self.was_stopped => ended,
            Some("") => ended,
            Some(refusal) => Told::NotStarted(understood(refusal, exit)),
            None => Told::NotStarted(understood(&said, exit)),
        }
    }
}

/// What the second stage said when it could not become the work, or what is known if it said nothing.
fn understood(said: &str, exit: Exit) -> Refusal {
    serde_json::from_str(said).unwrap_or_else(|_| Refusal {
        doing: "become the command".to_owned(),
        cause: format!("the supervisor's second stage ended with {exit:?}"),
        errno: None,
    })
}

/// Starts the second stage and hands it the work.
fn second_stage(work: &Work) -> io::Result<(Pid, UnixStream)> {
    let text = serde_json::to_vec(work)?;
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.set_write_timeout(Some(BEGIN_MAX))?;
    let child = Command::new(THIS_PROGRAM)
        .arg0(ARG0)
        .args([SUBCOMMAND, BEGIN])
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .spawn()?;
    // A second stage that ends before it has heard everything is a child that ended, and is seen as one.
    drop(ours.write_all(&text));
    drop(ours.shutdown(Shutdown::Write));
    drop(ours.set_nonblocking(true));
    Ok((Pid::from_child(&child), ours))
}

/// The end of children, and the signals that would end the supervisor before its work. They are held back, to be waited
/// for together with orders; the second stage lets them through again.
fn signals() -> nix::Result<SignalFd> {
    let mut wanted = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        wanted.add(signal);
    }
    wanted.thread_block()?;
    SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

fn exit(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

#[expect(clippy::disallowed_methods, reason = "the supervisor is a program of its own, and measures only its graces")]
fn now() -> Instant {
    Instant::now()
}
