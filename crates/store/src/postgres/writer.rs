//! The writer: commands that wait together are one transaction, and one transaction writes at a time.
//!
//! Whoever writes holds the pen, a row that all nodes lock first. So the mirror, once it has caught up with the journal, is
//! what the rows say until the commit; the order of entries is the order of commits; and a transaction is two round trips,
//! one to take the pen and catch up, one to write. When something is in doubt, the mirror is thrown away and the rows
//! are read again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::Client;
use tracing::{info, warn};

use super::connect::Connections;
use super::fault::{Done, Fault};
use super::listen::notification;
use super::load::{self, Loaded};
use super::ownership::Ownership;
use super::partitions;
use super::pen;
use super::save;
use super::values::day_of;
use crate::command::Command;
use crate::panics::panic_text;
use crate::requests::Head;
use punctual_kernel::state::State as Mirror;
use punctual_kernel::state::Undo;
use punctual_kernel::transaction::{Found, Needs, Transaction};

/// The most commands in one transaction.
const BATCH_MAX: usize = 256;

/// How long a batch is tried before its callers are told that it does not work: a node that waits for a claim renews its
/// lease only behind it.
const TRY_FOR: Duration = Duration::from_secs(4);

/// How long one attempt may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(8);

/// How long one may take that reads everything.
const LONG_ATTEMPT_MAX: Duration = Duration::from_secs(300);

/// Writes for one process.
pub(super) struct Writer {
    pub(super) connections: Connections,
    pub(super) ownership: Ownership,
    pub(super) state: Option<State>,
    /// What the last mirror that was thrown away had seen of the journal.
    pub(super) seen: Option<Seen>,
    /// What this process had seen when the journal turned out to be another than it was: commits are lost that nodes know of.
    pub(super) lost: Option<Seen>,
}

/// How far a mirror had come: an older copy of the server has not, whether it comes while somebody writes or while nobody can.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    head: Head,
    epoch_floor: u64,
}

/// What is known between two transactions.
pub(super) struct State {
    pub(super) mirror: Mirror,
    pub(super) head: Head,
    /// The day of the last entry; none before the first.
    pub(super) day: Option<i32>,
    /// How to take back what has been decided and is not known to be committed.
    undo: Option<Undo>,
}

/// What a transaction sent last, so that it can be known again.
struct Sent {
    head: Head,
    has_lines: bool,
}

impl Writer {
    /// Carries out commands until nobody can send any more.
    pub(super) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Box<dyn Command>>) {
        let mut next = commands.recv().await;
        while let Some(first) = next.take() {
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX
                && !batch[0].needs().is_alone()
                && let Ok(command) = commands.try_recv()
            {
                if command.needs().is_alone() {
                    next = Some(command);
                    break;
                }
                batch.push(command);
            }
            self.carry_out(batch).await;
            if next.is_none() {
                next = commands.recv().await;
            }
        }
    }

    async fn carry_out(&mut self, mut batch: Vec<Box<dyn Command>>) {
        let began = Instant::now();
        let mut sent: Option<Sent> = None;
        let mut rest = Duration::from_millis(20);
        loop {
            let is_long = batch.iter().any(|command| command.needs().checkpoint_until.is_some());
            let max = if is_long { LONG_ATTEMPT_MAX } else { ATTEMPT_MAX };
            let done = match tokio::time::timeout(max, self.attempt(&mut batch, &mut sent)).await {
                Ok(done) => done,
                Err(_) => Err(Fault::Slow(max.as_secs())),
            };
            let Err(fault) = done else {
                batch.into_iter().for_each(|command| command.answer(Ok(())));
                return;
            };
            if fault.is_about_state() {
                self.throw_away();
            } else {
                self.take_back();
            }
            let doing = batch[0].doing();
            if !fault.is_passing() || TRY_FOR <= began.elapsed() {
                // One that cannot be written must not take the others with it.
                if 1 < batch.len() && !fault.is_passing() {
                    for command in batch {
                        Box::pin(self.carry_out(vec![command])).await;
                    }
                    return;
                }
                let reason = fault.to_string();
                let mut fault = Some(fault);
                for command in batch {
                    let doing = command.doing();
                    let again = || Fault::Shared(reason.clone());
                    command.answer(Err(fault.take().unwrap_or_else(again).while_doing(doing)));
                }
                return;
            }
            warn!("the database failed while {doing}, it is tried again: {fault}");
            tokio::time::sleep(with_jitter(rest)).await;
            rest = (rest * 2).min(Duration::from_secs(2));
        }
    }

    /// One transaction. On an error nothing is written, unless it is unclear: then `sent` says what to look for.
    async fn attempt(&mut self, batch: &mut [Box<dyn Command>], sent: &mut Option<Sent>) -> Done<()> {
        let connection = self.connections.get().await?;
        self.load(&connection).await?;
        if let Some(seen) = self.lost {
            self.begin_anew(&connection, seen).await?;
        }
        self.transaction(&connection, batch, sent).await?;
        connection.give_back();
        Ok(())
    }

    /// Reads everything, unless it is here.
    async fn load(&mut self, client: &Client) -> Done<()> {
        if self.state.is_none() {
            let Loaded { mirror, head, day, first_seq } = load::load(client).await?;
            // What retention has let go since cannot be looked for.
            if let Some(seen) = self.seen.filter(|seen| first_seq <= seen.head.seq)
                && !load::has_entry(client, seen.head).await?
            {
                self.lost = Some(seen);
            }
            self.seen = None;
            self.ownership.replace(&mirror);
            self.state = Some(State { mirror, head, day, undo: None });
        }
        Ok(())
    }

    /// What was decided is not committed, as far as is known. If it was after all, it comes back with the journal.
    fn take_back(&mut self) {
        if let Some(state) = &mut self.state
            && let Some(undo) = state.undo.take()
        {
            state.mirror.undo(undo);
        }
    }

    /// The mirror cannot be trusted any more.
    fn throw_away(&mut self) {
        if let Some(State { mirror, head, .. }) = self.state.take()
            && self.lost.is_none()
        {
            self.seen = Some(Seen { head, epoch_floor: mirror.epoch_floor() });
        }
    }

    /// A server without commits that nodes know of has come in the place of the one before: every epoch is raised above all
    /// that were given, so that nobody who holds a run by one of them is heard any more.
    async fn begin_anew(&mut self, client: &Client, seen: Seen) -> Done<()> {
        let state = self.state.as_mut().expect("it was just read");
        if seen.epoch_floor < state.mirror.epoch_floor() {
            // Another node was faster. What is claimed since is not taken away once more.
            self.lost = None;
            return Ok(());
        }
        let (cluster, _) = pen::take(client, state, false).await?;
        let now = cluster.now.expect("the database has a clock");
        let mut writing = Transaction::new(&mut state.mirror, state.head, cluster, Found::default());
        writing.begin_anew(now, seen.epoch_floor).map_err(|error| Fault::Differs(error.to_string()))?;
        let day = state.day.map_or(day_of(now), |day| day.max(day_of(now)));
        let seen = Seen { head: writing.head, epoch_floor: writing.changes.epoch_floor.unwrap_or(seen.epoch_floor) };
        let (first_seq, changes) = (state.head.seq + 1, writing.changes);
        if state.day != Some(day) {
            partitions::add(client, day, first_seq).await?;
        }
        // Raised epochs cannot be taken back: whatever happens now, everything is read again.
        let statements = save::statements(&changes, day);
        self.state = None;
        save::send(client, &statements, "COMMIT").await?;
        warn!("the database has lost commits, as after the failover to a standby: every run has a new epoch");
        (self.seen, self.lost) = (Some(seen), None);
        self.load(client).await
    }

    async fn transaction(
        &mut self,
        client: &Client,
        batch: &mut [Box<dyn Command>],
        sent: &mut Option<Sent>,
    ) -> Done<()> {
        let needs = Needs::of_all(batch.iter().map(|command| command.needs()));
        let state = self.state.as_mut().expect("it was just read");
        let taken = pen::take(client, state, needs.locks_nodes).await;
        if matches!(taken, Err(Fault::Lost(_))) {
            self.lost = Some(Seen { head: state.head, epoch_floor: state.mirror.epoch_floor() });
        }
        let (cluster, first) = taken?;
        if let Some(last) = sent.as_ref().filter(|sent| sent.has_lines) {
            let is_written = load::has_entry(client, last.head).await?;
            // Not before it is known: whoever asks in vain has to ask again.
            *sent = None;
            if is_written {
                info!("the commit whose answer was lost had been written");
                client.batch_execute("ROLLBACK").await?;
                self.ownership.follow(&mut state.mirror);
                return Ok(());
            }
        }
        let found = load::find(client, &state.mirror, &needs, first).await?;
        let head_before = state.head;
        let mut writing = Transaction::new(&mut state.mirror, state.head, cluster, found);
        let decide = || batch.iter_mut().for_each(|command| command.work(&mut writing));
        // The mirror is thrown away after a panic, so nobody sees what is half changed.
        catch_unwind(AssertUnwindSafe(decide)).map_err(|panic| Fault::Panicked(panic_text(panic.as_ref())))?;
        let Transaction { head, changes, undo, .. } = writing;
        // Whatever interrupts this, it can be taken back.
        state.undo = Some(undo);
        if changes.is_empty() {
            state.undo = None;
            client.batch_execute("ROLLBACK").await?;
            self.ownership.follow(&mut state.mirror);
            return Ok(());
        }
        let last_at = changes.lines.last().map(|line| line.at);
        let day = last_at.map_or(state.day, |at| Some(state.day.map_or(day_of(at), |day| day.max(day_of(at)))));
        if day != state.day {
            partitions::add(client, day.expect("an entry has a day"), head_before.seq + 1).await?;
        }
        let statements = save::statements(&changes, day.unwrap_or_default());
        // One word to the others at most, with the commit.
        let last = notification(&changes).map_or("COMMIT".to_owned(), |said| format!("{said}; COMMIT"));
        let has_lines = !changes.lines.is_empty();
        // Whatever interrupts this, it is known afterwards what to look for.
        *sent = Some(Sent { head, has_lines });
        if let Err(fault) = save::send(client, &statements, &last).await {
            *sent = sent.take().filter(|_| fault.is_unclear());
            return Err(fault);
        }
        (state.head, state.day, state.undo) = (head, day, None);
        self.ownership.follow(&mut state.mirror);
        Ok(())
    }
}

/// A rest of about so long, different each time and on each node: the random end of a new id will do.
fn with_jitter(rest: Duration) -> Duration {
    let dice = uuid::Uuid::now_v7().as_u128() as u16;
    rest / 2 + rest.mul_f64(f64::from(dice) / f64::from(u16::MAX))
}
