//! The writer: commands that wait together are one transaction, and one transaction writes at a time.
//!
//! Whoever writes holds the pen, a row that all nodes lock first. So the state, once it has caught up with the journal, is
//! the latest until the commit; the order of entries is the order of commits; and a transaction is two round trips, one to take
//! the pen and catch up, one to append. Who only looks waits for no pen: the state catches up without it. When something is in
//! doubt, the state is thrown away and opened again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use punctual_kernel::transaction::{Cluster, Found, Needs, Transaction};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::Client;
use tracing::{info, warn};

use super::connect::Connections;
use super::fault::{Done, Fault};
use super::listen::notification;
use super::load::{self, Loaded};
use super::look::{Look, Question};
use super::ownership::Ownership;
use super::pen;
use super::save;
use super::saver::Saver;
use super::statement::send;
use super::tail::{self, Known, ROWS_MAX_WITH_PEN, Tail};
use crate::command::Command;
use crate::panics::panic_text;
use crate::requests::Head;

/// The most commands in one transaction.
const BATCH_MAX: usize = 256;

/// How long a batch is tried before its callers are told that it does not work: a node that waits for a claim renews its
/// lease only behind it.
const TRY_FOR: Duration = Duration::from_secs(4);

/// How long one attempt may take. Opening the state takes as long as it takes.
const ATTEMPT_MAX: Duration = Duration::from_secs(8);

/// How often the state catches up while a command waits for the pen.
const CATCH_UP_EVERY: Duration = Duration::from_millis(10);

/// How often a look has the state opened again when it is in doubt.
const DOUBTS_MAX: usize = 3;

/// Writes for one process, and answers whoever looks.
pub(super) struct Writer {
    connections: Connections,
    ownership: Ownership,
    known: Option<Known>,
    /// Who brings the snapshot further; nobody, in a process that only reads.
    saver: Option<Saver>,
    questions: mpsc::UnboundedReceiver<Question>,
    /// Those who look and wait for the state to catch up.
    waiting: Vec<Box<dyn Look>>,
    /// What the last state that was thrown away had seen of the journal.
    seen: Option<Seen>,
    /// What this process had seen when the journal turned out to be another than it was: commits are lost that nodes know of.
    lost: Option<Seen>,
}

/// How far a state had come: an older copy of the server has not, whether it comes while somebody writes or while nobody can.
#[derive(Debug, Clone, Copy)]
struct Seen {
    head: Head,
    epoch_floor: u64,
}

/// What a transaction sent last, so that it can be known again.
struct Sent {
    head: Head,
    has_lines: bool,
}

impl Writer {
    /// `only_reads` if the process is there to look, and not to work.
    pub(super) fn new(
        connections: Connections,
        ownership: Ownership,
        questions: mpsc::UnboundedReceiver<Question>,
        only_reads: bool,
    ) -> Writer {
        let saver = (!only_reads).then(|| Saver::new(connections.clone()));
        Writer { connections, ownership, known: None, saver, questions, waiting: vec![], seen: None, lost: None }
    }

    /// Carries out commands until nobody can send any more.
    pub(super) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Box<dyn Command>>) {
        if self.saver.is_some()
            && let Err(fault) = self.open().await
        {
            warn!("the state is not open yet: {fault}");
        }
        loop {
            let unsaved = self.known.as_ref().map_or(0, |known| known.state.unsaved());
            let saver = self.saver.as_mut().filter(|_| self.known.is_some());
            let save = async {
                match saver {
                    Some(saver) => saver.due(unsaved).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                command = commands.recv() => {
                    let Some(first) = command else { break };
                    let mut batch = vec![first];
                    while batch.len() < BATCH_MAX && let Ok(command) = commands.try_recv() {
                        batch.push(command);
                    }
                    self.carry_out(batch).await;
                }
                question = self.questions.recv() => {
                    let Some(question) = question else { break };
                    self.note(question);
                    self.answer_looks().await;
                }
                outcome = save => {
                    if let Some((saver, known)) = self.saver.as_mut().zip(self.known.as_mut()) {
                        saver.go_on(outcome, known);
                    }
                }
            }
        }
        // The next start has less to fold.
        if let Some((saver, known)) = self.saver.as_mut().zip(self.known.as_mut()) {
            saver.finish(known).await;
        }
    }

    async fn carry_out(&mut self, mut batch: Vec<Box<dyn Command>>) {
        let mut began = Instant::now();
        let mut sent: Option<Sent> = None;
        let mut rest = Duration::from_millis(20);
        loop {
            let was_open = self.known.is_some();
            let ready = self.prepare().await;
            if !was_open && ready.is_ok() {
                began = Instant::now();
            }
            let done = match ready {
                Ok(()) => match tokio::time::timeout(ATTEMPT_MAX, self.attempt(&mut batch, &mut sent)).await {
                    Ok(done) => done,
                    Err(_) => Err(Fault::Slow(ATTEMPT_MAX.as_secs())),
                },
                Err(fault) => Err(fault),
            };
            let done = match done {
                // However far it is: others write meanwhile, and none of them waits for this node.
                Err(Fault::Lags(_)) => match self.catch_up().await {
                    Ok(()) => {
                        began = Instant::now();
                        continue;
                    }
                    failed => failed,
                },
                done => done,
            };
            let Err(fault) = done else {
                batch.into_iter().for_each(|command| command.answer(Ok(())));
                return;
            };
            self.doubt(&fault);
            self.answer_looks().await;
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

    /// What a fault means for the state.
    fn doubt(&mut self, fault: &Fault) {
        if let Some(known) = self.known.as_mut() {
            known.take_back();
        }
        if !fault.is_about_state() {
            return;
        }
        let Some(Known { state, head, .. }) = self.known.take() else { return };
        let seen = Seen { head, epoch_floor: state.epoch_floor() };
        match fault {
            Fault::Lost(_) => self.lost = self.lost.or(Some(seen)),
            _ if self.lost.is_none() => self.seen = Some(seen),
            _ => {}
        }
    }

    /// Opens the state, unless it is there, and begins anew where commits are lost.
    async fn prepare(&mut self) -> Done<()> {
        loop {
            if self.known.is_none() {
                self.open().await?;
            }
            // Who only reads leaves that to those who work.
            let Some(lost) = self.lost.filter(|_| self.saver.is_some()) else { return Ok(()) };
            let slow = |_| Err(Fault::Slow(ATTEMPT_MAX.as_secs()));
            tokio::time::timeout(ATTEMPT_MAX, self.begin_anew(lost)).await.unwrap_or_else(slow)?;
        }
    }

    /// Reads the snapshot, and follows the journal.
    async fn open(&mut self) -> Done<()> {
        let Loaded { known, snapshot } = load::load(&self.connections).await?;
        if let Some(seen) = self.seen {
            let checked =
                self.connections.with(async |client: &Client| tail::check_entry(client, seen.head).await).await;
            match checked {
                // What retention has let go since cannot be looked for.
                Ok(()) | Err(Fault::Behind(_)) => {}
                Err(Fault::Lost(_)) => self.lost = Some(seen),
                Err(fault) => return Err(fault),
            }
            self.seen = None;
        }
        self.ownership.replace(&known.state);
        if let Some(saver) = &mut self.saver {
            saver.begin_at(snapshot);
        }
        self.known = Some(known);
        Ok(())
    }

    /// A server without commits that nodes know of has come in the place of the one before: every epoch is raised above all
    /// that were given, so that nobody who holds a run by one of them is heard any more.
    async fn begin_anew(&mut self, lost: Seen) -> Done<()> {
        let known = self.known.as_mut().expect("it was just opened");
        if lost.epoch_floor < known.state.epoch_floor() {
            // Another node was faster. What is claimed since is not taken away once more.
            self.lost = None;
            return Ok(());
        }
        let connection = self.connections.get().await?;
        let (tail, cluster) = pen::take(&connection, known.head, false).await?;
        self.take_in_with_pen(&connection, &tail).await?;
        let known = self.known.as_mut().expect("it was just opened");
        if lost.epoch_floor < known.state.epoch_floor() {
            connection.batch_execute("ROLLBACK").await?;
            connection.give_back();
            self.lost = None;
            return Ok(());
        }
        let now = cluster.now.expect("the database has a clock");
        let mut writing = Transaction::new(&mut known.state, known.head, cluster, Found::default());
        writing.begin_anew(now, lost.epoch_floor).map_err(|error| Fault::Differs(error.to_string()))?;
        let Transaction { head, changes, .. } = writing;
        let seen = Seen { head, epoch_floor: known.state.epoch_floor() };
        // Raised epochs cannot be taken back: whatever happens now, everything is read again.
        self.known = None;
        send(&connection, &save::statements(&changes)?, "COMMIT").await?;
        connection.give_back();
        warn!("the database has lost commits, as after the failover to a standby: every run has a new epoch");
        (self.seen, self.lost) = (Some(seen), None);
        Ok(())
    }

    /// One transaction. On an error nothing is written, unless it is unclear: then `sent` says what to look for.
    async fn attempt(&mut self, batch: &mut [Box<dyn Command>], sent: &mut Option<Sent>) -> Done<()> {
        let connection = self.connections.get().await?;
        self.transaction(&connection, batch, sent).await?;
        connection.give_back();
        Ok(())
    }

    async fn transaction(
        &mut self,
        client: &Client,
        batch: &mut [Box<dyn Command>],
        sent: &mut Option<Sent>,
    ) -> Done<()> {
        let needs = Needs::of_all(batch.iter().map(|command| command.needs()));
        let cluster = self.take_pen(client, needs.locks_nodes).await?;
        if let Some(last) = sent.as_ref().filter(|sent| sent.has_lines) {
            let checked = tail::check_entry(client, last.head).await;
            let is_written = match checked {
                Ok(()) => true,
                Err(Fault::Lost(_) | Fault::Behind(_)) => false,
                // Whoever asks in vain has to ask again.
                Err(fault) => return Err(fault),
            };
            *sent = None;
            if is_written {
                info!("the commit whose answer was lost had been written");
                return self.end(client).await;
            }
        }
        let known = self.known.as_mut().expect("it was just opened");
        let found = load::find(client, &known.state, &needs).await?;
        let mut writing = Transaction::new(&mut known.state, known.head, cluster, found);
        let decide = || batch.iter_mut().for_each(|command| command.work(&mut writing));
        // The state is thrown away after a panic, so nobody sees what is half changed.
        catch_unwind(AssertUnwindSafe(decide)).map_err(|panic| Fault::Panicked(panic_text(panic.as_ref())))?;
        let Transaction { head, changes, undo, .. } = writing;
        if changes.is_empty() {
            return self.end(client).await;
        }
        // Whatever interrupts this, it can be taken back.
        known.undo = Some(undo);
        // One word to the others at most, with the commit.
        let last = notification(&changes).map_or("COMMIT".to_owned(), |said| format!("{said}; COMMIT"));
        let statements = save::statements(&changes)?;
        // As long as the pen is here, nobody else writes: whoever looks now sees everything when this is committed.
        self.gather_looks();
        // Whatever interrupts this, it is known afterwards what to look for.
        *sent = Some(Sent { head, has_lines: !changes.lines.is_empty() });
        if let Err(fault) = send(client, &statements, &last).await {
            *sent = sent.take().filter(|_| fault.is_unclear());
            return Err(fault);
        }
        let known = self.known.as_mut().expect("it was just opened");
        (known.head, known.undo) = (head, None);
        self.show();
        Ok(())
    }

    /// Ends a transaction that has nothing to write.
    async fn end(&mut self, client: &Client) -> Done<()> {
        self.gather_looks();
        client.batch_execute("ROLLBACK").await?;
        self.show();
        Ok(())
    }

    /// Waits for the pen. What others write meanwhile is taken in beside that, so that little is left to read while they wait, and
    /// looks are answered.
    async fn take_pen(&mut self, client: &Client, locks_nodes: bool) -> Done<Cluster> {
        let head = self.known.as_ref().expect("it was just opened").head;
        let taking = pen::take(client, head, locks_nodes);
        tokio::pin!(taking);
        loop {
            // Following is not interrupted: its connection would be lost.
            match tokio::time::timeout(CATCH_UP_EVERY, &mut taking).await {
                Ok(taken) => {
                    let (tail, cluster) = taken?;
                    return self.take_in_with_pen(client, &tail).await.map(|()| cluster);
                }
                Err(_) => self.catch_up_while_waiting().await?,
            }
        }
    }

    /// Takes in what is left, if that is not too much to be read while others wait: else the pen goes to them.
    async fn take_in_with_pen(&mut self, client: &Client, tail: &Tail) -> Done<()> {
        let known = self.known.as_mut().expect("it was just opened");
        known.take_in(tail)?;
        if tail.is_whole {
            return Ok(());
        }
        // It begins where the wait began: most of it was known by now.
        let rest = tail::read_rows(client, known.head, ROWS_MAX_WITH_PEN).await?;
        known.take_in(&rest)?;
        if rest.is_whole {
            return Ok(());
        }
        client.batch_execute("ROLLBACK").await?;
        Err(Fault::Lags(known.head.seq))
    }

    async fn catch_up_while_waiting(&mut self) -> Done<()> {
        self.gather_looks();
        match self.catch_up().await {
            Ok(()) => self.show(),
            Err(fault) if fault.is_about_state() => return Err(fault),
            Err(fault) => self.fail_looks(&fault),
        }
        Ok(())
    }

    /// Brings the state to the end of the journal, without the pen.
    async fn catch_up(&mut self) -> Done<()> {
        let known = self.known.as_mut().expect("it was just opened");
        loop {
            let tail = load::follow(&self.connections, known.head).await?;
            known.take_in(&tail)?;
            if tail.is_whole {
                return Ok(());
            }
        }
    }

    /// The same, with a state that is opened if it is not there or in doubt.
    async fn open_and_catch_up(&mut self) -> Done<()> {
        let mut doubts = 0;
        loop {
            self.prepare().await?;
            let Err(fault) = self.catch_up().await else { return Ok(()) };
            self.doubt(&fault);
            doubts += 1;
            if !fault.is_about_state() || doubts == DOUBTS_MAX {
                return Err(fault);
            }
        }
    }

    /// Answers those who look, and whoever asks first.
    async fn answer_looks(&mut self) {
        self.gather_looks();
        if self.waiting.is_empty() {
            return;
        }
        match self.open_and_catch_up().await {
            Ok(()) => self.show(),
            Err(fault) => self.fail_looks(&fault),
        }
    }

    /// Takes in everything that is asked by now.
    fn gather_looks(&mut self) {
        while let Ok(question) = self.questions.try_recv() {
            self.note(question);
        }
    }

    fn note(&mut self, question: Question) {
        match question {
            Question::Look(look) => self.waiting.push(look),
            Question::Save(reply) => {
                // Where nobody writes the snapshot, whoever asks for it hears that from the end of this.
                if let (Some(saver), Some(known)) = (&mut self.saver, &self.known) {
                    saver.ask(known, reply);
                }
            }
        }
    }

    /// Shows the state, as it is committed, to those who wait for it.
    fn show(&mut self) {
        let known = self.known.as_mut().expect("it was just opened");
        self.ownership.follow(&mut known.state);
        self.waiting.drain(..).for_each(|look| look.look(&known.state));
    }

    fn fail_looks(&mut self, fault: &Fault) {
        self.waiting.drain(..).for_each(|look| look.fail(fault.again()));
    }
}

/// A rest of about so long, different each time and on each node: the random end of a new id will do.
fn with_jitter(rest: Duration) -> Duration {
    let dice = uuid::Uuid::now_v7().as_u128() as u16;
    rest / 2 + rest.mul_f64(f64::from(dice) / f64::from(u16::MAX))
}
