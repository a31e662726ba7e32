//! The writer of one process: the shipped kernel on the log.
//!
//! A command takes the lock, follows what others have written, decides, and commits. What the process knows of the log is its
//! state and the last entry in it; with any doubt the state is thrown away and opened anew. Time passes only between attempts:
//! while somebody holds the lock, nobody else writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use punctual_core::{NodeId, RunId};
use punctual_kernel::transaction::{Found, Needs, Transaction};
use punctual_store::{Head, StoreError};

use crate::invariants::{Violation, ensure};
use crate::log::{Following, Opened};
use crate::sim::{Sim, locked};
use crate::timeline::Group;

/// The state is compared with the rows once in so many commits of a process.
const COMPARE_EVERY: u64 = 32;

/// What a process knows of the log.
pub(crate) struct Writer {
    opened: Option<Opened>,
    /// How far the last state came that was thrown away.
    seen: Option<Seen>,
    /// How far this process had come when the log turned out to be another than it was.
    lost: Option<Seen>,
    /// Who owns what, as far as it is committed: who renews a lease asks while somebody writes.
    owned: Arc<Mutex<Owned>>,
    commits: u64,
}

/// The runs of nodes, each with its epoch and whether somebody has called it off.
pub(crate) type Owned = BTreeMap<NodeId, Vec<(RunId, u64, bool)>>;

/// How far a state had come.
#[derive(Debug, Clone, Copy)]
struct Seen {
    head: Head,
    epoch_floor: u64,
}

/// What goes wrong with a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// It is refused, and that is known.
    Refused,
    /// The line breaks before it is carried out.
    Before,
    /// The line breaks behind it.
    After,
}

/// Why an attempt has to be made again.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The commit was refused, and that is known: what was decided is taken back, and the state is what it was.
    Refused,
    /// Nobody is to blame but the moment.
    Again,
    /// Something is not as it must be.
    Violated(Violation),
}

impl From<Violation> for Failed {
    fn from(violation: Violation) -> Failed {
        Failed::Violated(violation)
    }
}

/// One command on its way: what it came to, and what it may have written.
pub(crate) struct Attempts<T> {
    pub(crate) group: Group,
    pub(crate) needs: Needs,
    /// What it came to when it was last decided.
    pub(crate) reply: Option<Result<T, StoreError>>,
    /// The last entry of a commit of which nobody knows what became of it.
    sent: Option<Head>,
    /// The last entry of a commit that was carried out. Only the rules look at it.
    written: Option<Head>,
}

impl<T> Attempts<T> {
    pub(crate) fn new(group: Group, needs: Needs) -> Attempts<T> {
        Attempts { group, needs, reply: None, sent: None, written: None }
    }

    /// Whether it is not known whether a commit was carried out.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.sent.is_some()
    }
}

impl Writer {
    /// A process that knows nothing yet, and tells `owned` who owns what.
    pub(crate) fn new(owned: Arc<Mutex<Owned>>) -> Writer {
        Writer { opened: None, seen: None, lost: None, owned, commits: 0 }
    }

    /// Follows the log without the lock, as far as it goes: what is left to follow under it is less.
    pub(crate) fn follow_behind(&mut self, sim: &Sim) {
        let Some(opened) = &mut self.opened else { return };
        match sim.log.follow(opened) {
            Ok(Following::UpToDate) => self.note_owned(),
            Ok(Following::OpenAgain) => self.throw_away(),
            // Whoever takes the lock next sees to it.
            Ok(Following::Lost) => {}
            Err(violation) => sim.check(Err(violation)),
        }
    }

    /// One transaction. After an error the state has to be thrown away.
    pub(crate) fn attempt<T>(
        &mut self,
        sim: &Sim,
        attempts: &mut Attempts<T>,
        decide: &mut impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T>,
        breaks: Option<Break>,
        committed: &impl Fn(&T),
    ) -> Result<(), Failed> {
        self.open(sim)?;
        if let Some(seen) = self.lost {
            self.begin_anew(sim, seen)?;
        }
        self.follow(sim)?;
        let opened = self.opened.as_mut().expect("it was just opened");
        if let Some(sent) = attempts.sent.take()
            && sim.log.has(sent) == Some(true)
        {
            sim.tell(format_args!("p{} finds its commit #{}", attempts.group, sent.seq));
            self.note_owned();
            return Ok(());
        }
        let found = sim.log.find(&opened.state, &attempts.needs);
        let cluster = sim.log.cluster(sim.store_time());
        let mut transaction = Transaction::new(&mut opened.state, opened.head, cluster, found);
        let reply = decide(&mut transaction);
        let Transaction { head, changes, undo, .. } = transaction;
        attempts.reply = Some(reply.map_err(StoreError::from));
        if changes.is_empty() {
            self.note_owned();
            if let Some(Ok(reply)) = &attempts.reply {
                committed(reply);
            }
            return Ok(());
        }
        let last = changes.lines.last().map(|_| head);
        match breaks {
            Some(Break::Refused) => {
                opened.state.undo(undo);
                self.compare(sim)?;
                return Err(Failed::Refused);
            }
            Some(Break::Before) => {
                attempts.sent = last;
                return Err(Failed::Again);
            }
            Some(Break::After) | None => {}
        }
        // A commit that was carried out is not carried out again, whoever lost the reply.
        let is_second = last.is_some() && attempts.written.is_some_and(|written| sim.log.has(written) == Some(true));
        ensure("once", !is_second, || format!("p{} commits a second time for one command", attempts.group))?;
        attempts.written = last.or(attempts.written);
        sim.log.commit(&changes, &opened.state)?;
        if let Some(Ok(reply)) = &attempts.reply {
            committed(reply);
        }
        if breaks == Some(Break::After) {
            attempts.sent = last;
            return Err(Failed::Again);
        }
        opened.head = head;
        self.save_now_and_then(sim)?;
        self.note_owned();
        self.commits += 1;
        if self.commits.is_multiple_of(COMPARE_EVERY) { self.compare(sim) } else { Ok(()) }
    }

    /// The state cannot be trusted any more.
    pub(crate) fn throw_away(&mut self) {
        if let Some(Opened { state, head, .. }) = self.opened.take()
            && self.lost.is_none()
        {
            self.seen = Some(Seen { head, epoch_floor: state.epoch_floor() });
        }
    }

    /// Brings the snapshot to where the state is, sometimes.
    fn save_now_and_then(&mut self, sim: &Sim) -> Result<(), Failed> {
        if let Some(dies) = sim.faults().saves_snapshot() {
            let opened = self.opened.as_mut().expect("it has just committed");
            let seq = opened.head.seq;
            if sim.log.save(opened, dies)? {
                sim.tell(format_args!("the snapshot is at #{seq}"));
            }
        }
        Ok(())
    }

    /// Opens the state, unless it is open: from the snapshot, or from an older one, and what was written since.
    fn open(&mut self, sim: &Sim) -> Result<(), Failed> {
        if self.opened.is_some() {
            return Ok(());
        }
        let snapshot = sim.faults().opens_old_snapshot();
        self.opened = Some(sim.log.open(snapshot.unwrap_or(0))?);
        if let Some(seen) = self.seen.take()
            && sim.log.has(seen.head) == Some(false)
        {
            self.lost = Some(seen);
        }
        self.note_all_owned();
        Ok(())
    }

    /// Brings the state up to date under the lock, and notices if what it has seen is gone.
    fn follow(&mut self, sim: &Sim) -> Result<(), Failed> {
        let opened = self.opened.as_mut().expect("it was just opened");
        match sim.log.follow(opened)? {
            Following::UpToDate => Ok(()),
            Following::OpenAgain => Err(Failed::Again),
            Following::Lost => {
                self.lost = Some(Seen { head: opened.head, epoch_floor: opened.state.epoch_floor() });
                Err(Failed::Again)
            }
        }
    }

    /// Commits are lost that this process knows of: every epoch is raised above all that were given, unless somebody was faster.
    fn begin_anew(&mut self, sim: &Sim, seen: Seen) -> Result<(), Failed> {
        let opened = self.opened.as_mut().expect("it was just opened");
        if seen.epoch_floor < opened.state.epoch_floor() {
            self.lost = None;
            return Ok(());
        }
        self.follow(sim)?;
        let opened = self.opened.as_mut().expect("it was just opened");
        let cluster = sim.log.cluster(sim.store_time());
        let mut transaction = Transaction::new(&mut opened.state, opened.head, cluster, Found::default());
        transaction
            .begin_anew(sim.timeline.now(), seen.epoch_floor)
            .map_err(|error| Violation { rule: "state", what: format!("the epochs cannot be raised: {error}") })?;
        let Transaction { head, changes, .. } = transaction;
        sim.log.commit(&changes, &opened.state)?;
        let epoch_floor = opened.state.epoch_floor();
        (self.opened, self.lost) = (None, None);
        self.seen = Some(Seen { head, epoch_floor });
        self.open(sim)
    }

    /// The state of this process is what the log says, derived data included.
    pub(crate) fn compare(&mut self, sim: &Sim) -> Result<(), Failed> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        let differences = sim.log.look(|rows| opened.state.differences(&rows.world));
        ensure("state", differences.is_empty(), || differences.join("; "))?;
        let head = sim.log.head();
        ensure("state", opened.head == head, || format!("a process is at {:?}, the log at {head:?}", opened.head))?;
        Ok(())
    }

    /// Notes who owns what, if that has changed.
    fn note_owned(&mut self) {
        if self.opened.as_mut().is_some_and(|opened| !opened.state.take_touched().is_empty()) {
            self.note_all_owned();
        }
    }

    fn note_all_owned(&mut self) {
        let mut owned = locked(&self.owned);
        owned.clear();
        for run in self.opened.iter().flat_map(|opened| opened.state.all_owned()) {
            let owner = run.owner().expect("somebody has it");
            owned.entry(owner).or_default().push((run.id, run.epoch(), run.is_cancelling));
        }
    }
}
