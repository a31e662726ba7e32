//! The store as a process sees it: the kernel and the log behind a line that is slow, breaks, loses answers, and kills.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use punctual_kernel::transaction::{Needs, Transaction};
use punctual_store::memory::MemoryStore;
use punctual_store::{NodeRecord, Renewal, Result, Sign, StoreError};

use crate::faults::{CallFate, CallKind, Doubt};
use crate::hearing::Hearing;
use crate::sim::{Sim, locked};
use crate::timeline::Group;
use crate::writer::{Attempts, Break, Failed, Owned, Writer};

/// How long a command is tried before its caller is told that it does not work.
const TRY_FOR: Duration = Duration::from_secs(4);

/// How long a process rests before it tries a command for the second time. Each time it is twice as long.
const REST: Duration = Duration::from_millis(20);

/// The store of one process.
pub(crate) struct FaultyStore {
    pub(crate) sim: Arc<Sim>,
    pub(crate) group: Group,
    pub(crate) hearing: Hearing,
    /// One command of a process writes at a time.
    writer: tokio::sync::Mutex<Writer>,
    /// Who owns what, as far as the process knows it to be committed.
    owned: Arc<Mutex<Owned>>,
}

impl FaultyStore {
    /// Opens the store for a process, which hears its time if it has one.
    pub(crate) fn open(sim: &Arc<Sim>, group: Group) -> FaultyStore {
        let hearing = Hearing::default();
        if !sim.setup.is_exclusive {
            hearing.hear(sim, group, sim.timeline.boot(), sim.timeline.now());
        }
        let owned = Arc::default();
        let writer = tokio::sync::Mutex::new(Writer::new(Arc::clone(&owned)));
        FaultyStore { sim: Arc::clone(sim), group, hearing, writer, owned }
    }

    /// The rows, which reads are answered from.
    pub(crate) fn rows(&self) -> &MemoryStore {
        &self.sim.log.rows
    }

    /// The store has taken in now that a node lives, when its own clock showed `at`. Until when the node may believe so.
    pub(crate) fn lease(&self, sent_at: Duration, sign: &Sign, at: Timestamp) -> Duration {
        let Sim { timeline, setup, .. } = &*self.sim;
        // A lease that a clock behind the store's has given is so much shorter.
        let behind = Duration::try_from(at.duration_since(sign.now)).unwrap_or_default();
        let valid_until = timeline.boot().saturating_sub(behind).min(sent_at) + setup.lease;
        self.sim.ledger().nodes.leased(sign.node, valid_until);
        valid_until
    }

    /// Renews the row of a node, and follows the journal, unless a command of the process is being tried: others may have
    /// called runs off.
    ///
    /// With the answer goes until when the node may believe that it lives.
    pub(crate) async fn renew_row(&self, sent_at: Duration, sign: &Sign) -> Result<(Renewal, Duration)> {
        let sim = &self.sim;
        let lease_until = sign.now + sign.lease.duration();
        let others = self.rows().change(|rows| {
            let record = rows.nodes.get_mut(&sign.node)?;
            (record.lease_until, record.lease) = (lease_until, sign.lease);
            record.agents.clone_from(&sign.agents);
            record.about.clone_from(&sign.about);
            rows.agents_seen.extend(sign.agents.iter().map(|agent| (agent.clone(), sign.now)));
            Some(rows.nodes.values().filter(|node| node.id != sign.node).map(NodeRecord::lease).collect())
        });
        let others = others.ok_or(StoreError::LeaseEnded)?;
        let at = sim.store_time().unwrap_or(sign.now);
        let valid_until = self.lease(sent_at, sign, at);
        if self.writer.try_lock().is_ok() {
            self.carry_out("renew", Needs::default(), |_| Ok(()), None, |()| ()).await.ok();
        }
        let owned = locked(&self.owned).get(&sign.node).cloned().unwrap_or_default();
        let cancelling = owned.iter().filter(|(.., is_cancelling)| *is_cancelling).map(|(id, ..)| *id).collect();
        let owned = owned.iter().map(|(id, epoch, _)| (*id, *epoch)).collect();
        Ok((Renewal { at, lease_until, cancelling, owned, others }, valid_until))
    }

    /// Follows the journal, as a process does all the time that does not lag.
    fn follow(&self) {
        let sim = &self.sim;
        if !sim.faults().lags(self.group, sim.timeline.boot())
            && let Ok(mut writer) = self.writer.try_lock()
        {
            writer.follow_behind(sim);
        }
    }

    /// Lets a command decide and commit, and answers its caller.
    pub(crate) async fn write<T: Send>(
        &self,
        name: &str,
        kind: CallKind,
        needs: Needs,
        decide: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send,
    ) -> Result<T> {
        self.write_and(name, kind, needs, decide, |_| ()).await
    }

    /// The same; `committed` looks at each commit before anybody else does.
    pub(crate) async fn write_and<T: Send>(
        &self,
        name: &str,
        kind: CallKind,
        needs: Needs,
        decide: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send,
        committed: impl Fn(&T) + Send + Sync,
    ) -> Result<T> {
        let fate = self.fate(name, kind);
        let breaks = match fate {
            CallFate::Breaks(breaks) => Some(breaks),
            _ => None,
        };
        self.meets(fate, self.carry_out(name, needs, decide, breaks, committed)).await
    }

    /// Tries a command until it is committed, or for as long as its caller waits.
    async fn carry_out<T: Send>(
        &self,
        name: &str,
        needs: Needs,
        mut decide: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send,
        mut breaks: Option<Break>,
        committed: impl Fn(&T) + Send + Sync,
    ) -> Result<T> {
        let sim = &self.sim;
        let mut attempts = Attempts::new(self.group, needs);
        let mut writer = self.writer.lock().await;
        let (began, mut rest) = (sim.timeline.boot(), REST);
        loop {
            let done = writer.attempt(sim, &mut attempts, &mut decide, breaks, &committed);
            sim.observe_call(self.group, name);
            let Err(failed) = done else {
                return attempts.reply.unwrap_or_else(|| Err(broken()));
            };
            match failed {
                Failed::Violated(violation) => {
                    sim.check(Err(violation));
                    return Err(broken());
                }
                Failed::Again => writer.throw_away(),
                Failed::Refused => {}
            }
            if began + TRY_FOR <= sim.timeline.boot() {
                return Err(broken());
            }
            let doubt = sim.faults().doubt(attempts.is_in_doubt());
            match doubt {
                Doubt::Dies => {
                    sim.tell(format_args!("p{} does not know what became of its commit", self.group));
                    return self.crash().await;
                }
                Doubt::TriesAgain { rest: part, breaks: next } => {
                    sim.wait(rest.as_millis() as u32 * part).await;
                    (rest, breaks) = (rest * 2, next);
                }
            }
        }
    }

    /// Lets a call that decides nothing meet its fate.
    pub(crate) async fn call<T: Send>(
        &self,
        name: &str,
        kind: CallKind,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let fate = self.fate(name, kind);
        self.meets(fate, call).await
    }

    /// What happens to a call that is made now.
    fn fate(&self, name: &str, kind: CallKind) -> CallFate {
        let sim = &self.sim;
        self.follow();
        let fate = sim.faults().fate(self.group, kind, sim.timeline.boot());
        if !matches!(fate, CallFate::Works(before, after) if before.max(after) < Duration::from_secs(1)) {
            sim.tell(format_args!("p{} {name}: {fate:?}", self.group));
        }
        fate
    }

    async fn meets<T: Send>(&self, fate: CallFate, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let sim = &self.sim;
        match fate {
            CallFate::Works(before, after) => {
                sim.wait(before).await;
                let answer = call.await;
                sim.observe(self.group);
                sim.wait(after).await;
                answer
            }
            CallFate::Breaks(_) => call.await,
            CallFate::ReplyLost(after) => {
                call.await?;
                sim.observe(self.group);
                sim.wait(after).await;
                Err(broken())
            }
            CallFate::Fails(after) => {
                sim.wait(after).await;
                Err(broken())
            }
            CallFate::DiskFull => Err(StoreError::DiskFull),
            CallFate::CrashBefore => self.crash().await,
            CallFate::CrashAfter => {
                call.await?;
                sim.observe(self.group);
                self.crash().await
            }
        }
    }

    async fn crash<T>(&self) -> T {
        crate::cluster::crash(&self.sim, self.group);
        std::future::pending().await
    }
}

/// What a process hears when the line breaks.
fn broken() -> StoreError {
    StoreError::Unavailable { doing: "simulating", source: "the line broke".into() }
}
