//! Faults: which there are, when they strike, and how often each has struck.

use std::time::Duration;

use jiff::SignedDuration;

use crate::random::Random;
use crate::timeline::Group;
use crate::writer::Break;

/// A piece of the snapshot is written once in so many commits.
const SAVED_ONCE_IN: u64 = 40;

/// Everything that can go wrong. A class that never struck over a sample of seeds was never tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The process dies before its call reaches the store.
    CrashBefore,
    /// The process dies after its call has been carried out.
    CrashAfter,
    /// The call is carried out, and its answer gets lost.
    ReplyLost,
    /// The line breaks before the commit is carried out, and the process does not know whether it was.
    CommitUnsent,
    /// The line breaks behind the commit, and the process does not know whether it was carried out.
    CommitUnheard,
    /// The commit is refused.
    CommitRefused,
    /// The process dies before it has found out what became of its commit.
    CrashInDoubt,
    /// A process does not follow the journal for a while.
    Lag,
    /// A process opens its state from an older snapshot.
    OldSnapshot,
    /// A process dies in the middle of writing a piece of the snapshot: nothing of it counts.
    SnapshotUnsaved,
    /// The call fails and has no effect.
    Transient,
    /// Nothing can be written for a while.
    DiskFull,
    /// One call takes its time on the way to the store.
    SlowBefore,
    /// One answer takes its time on the way back.
    SlowAfter,
    /// A process cannot reach the store for a while.
    Cut,
    /// A process dies where it stands.
    Kill,
    /// A process freezes, and goes on when its lease is long over or not.
    Freeze,
    /// A process is asked to stop, and drains.
    Stop,
    /// Every process is down for a while.
    Outage,
    /// The clock is set forwards, by less than a day.
    ClockForwards,
    /// The clock is set backwards.
    ClockBackwards,
    /// The clock is set forwards so far that it is doubted.
    ClockHeld,
    /// A process hears the store's time wrongly: its clock is ahead or behind.
    ClockSkew,
    /// Every process is replaced by one with other zone data.
    ZoneData,
    /// A standby that has missed commits takes the place of the store.
    Promotion,
    /// A run kills the process that it runs in.
    Poison,
}

impl Fault {
    /// Every class.
    pub const ALL: [Fault; 26] = [
        Fault::CrashBefore,
        Fault::CrashAfter,
        Fault::ReplyLost,
        Fault::CommitUnsent,
        Fault::CommitUnheard,
        Fault::CommitRefused,
        Fault::CrashInDoubt,
        Fault::Lag,
        Fault::OldSnapshot,
        Fault::SnapshotUnsaved,
        Fault::Transient,
        Fault::DiskFull,
        Fault::SlowBefore,
        Fault::SlowAfter,
        Fault::Cut,
        Fault::Kill,
        Fault::Freeze,
        Fault::Stop,
        Fault::Outage,
        Fault::ClockForwards,
        Fault::ClockBackwards,
        Fault::ClockHeld,
        Fault::ClockSkew,
        Fault::ZoneData,
        Fault::Promotion,
        Fault::Poison,
    ];
}

/// How often each class has struck.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; Fault::ALL.len()]);

impl FaultCounts {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How often this class.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// These and others.
    pub fn merge(&mut self, other: &FaultCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}

/// Decides what happens to calls of the store.
pub(crate) struct StoreFaults {
    random: Random,
    skews: Random,
    doubts: Random,
    is_on: bool,
    /// Calls until the next fault, weighted by how much they change.
    left: u64,
    rarity: u64,
    lease: Duration,
    disk_full_until: Duration,
    cuts: Vec<(Group, Duration)>,
    lags: Vec<(Group, Duration)>,
    pub(crate) counts: FaultCounts,
}

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFate {
    /// It is carried out, with these delays before and behind.
    Works(Duration, Duration),
    /// The same, and the answer gets lost.
    ReplyLost(Duration),
    /// It fails without an effect after a while.
    Fails(Duration),
    DiskFull,
    CrashBefore,
    CrashAfter,
    /// Its first commit fails.
    Breaks(Break),
}

/// What becomes of a process whose commit failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It dies before it finds out.
    Dies,
    /// It tries again, after so much of its rest for each millisecond of it, and meets this.
    TriesAgain { rest: Duration, breaks: Option<Break> },
}

/// How much a call means to the history: what changes a run is hit more often than what looks around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Read,
    /// Writes rows of its own, past the journal.
    Row,
    /// Writes at most a little of its own.
    Upkeep,
    Write,
}

impl StoreFaults {
    pub(crate) fn new(seed: u64, lease: Duration) -> StoreFaults {
        let mut random = Random::new(seed, "store faults");
        let rarity = *random.pick(&[300, 800, 2_000]);
        StoreFaults {
            left: random.below(rarity),
            random,
            skews: Random::new(seed, "skews"),
            doubts: Random::new(seed, "doubts"),
            is_on: true,
            rarity,
            lease,
            disk_full_until: Duration::ZERO,
            cuts: vec![],
            lags: vec![],
            counts: FaultCounts::default(),
        }
    }

    /// From now on everything works.
    pub(crate) fn end(&mut self) {
        self.is_on = false;
        self.disk_full_until = Duration::ZERO;
        self.cuts.clear();
        self.lags.clear();
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn fill_disk(&mut self, until: Duration) {
        self.counts.add(Fault::DiskFull);
        self.disk_full_until = until;
    }

    pub(crate) fn cut(&mut self, group: Group, until: Duration) {
        self.counts.add(Fault::Cut);
        self.cuts.push((group, until));
    }

    /// By how much a process is mistaken from now on that hears the store's time; `None` if as before.
    pub(crate) fn skew(&mut self, is_first: bool) -> Option<SignedDuration> {
        if !self.is_on {
            return Some(SignedDuration::ZERO);
        }
        if !is_first && !self.skews.chance(1) {
            return None;
        }
        let max = self.skews.weighted(&[(5, 50), (4, 1_000), (1, 10_000)]);
        Some(SignedDuration::from_millis(self.skews.between(0, 2 * max).cast_signed() - max.cast_signed()))
    }

    /// How often a clock was set.
    pub(crate) fn clocks_set(&self) -> u64 {
        [Fault::ClockForwards, Fault::ClockBackwards, Fault::ClockHeld].iter().map(|fault| self.counts.of(*fault)).sum()
    }

    /// Whether a process writes a piece of the snapshot behind its commit, and then whether it dies in the middle of it.
    pub(crate) fn saves_snapshot(&mut self) -> Option<bool> {
        if 0 < self.doubts.below(SAVED_ONCE_IN) {
            return None;
        }
        let dies = self.is_on && self.doubts.chance(20);
        if dies {
            self.counts.add(Fault::SnapshotUnsaved);
        }
        Some(dies)
    }

    /// Which snapshot a process opens its state from, the first the latest; none if it is the latest.
    pub(crate) fn opens_old_snapshot(&mut self) -> Option<usize> {
        let is_old = self.is_on && self.doubts.chance(50);
        is_old.then(|| {
            self.counts.add(Fault::OldSnapshot);
            self.doubts.below(3) as usize
        })
    }

    /// Whether a process does not follow the journal now, unless it has to.
    pub(crate) fn lags(&mut self, group: Group, boot: Duration) -> bool {
        self.lags.retain(|(_, until)| boot < *until);
        if self.is_on && self.doubts.below(1_000) == 0 {
            self.counts.add(Fault::Lag);
            let time = self.doubts.stretch(Duration::from_secs(1), self.lease);
            self.lags.push((group, boot + time));
        }
        self.lags.iter().any(|(its, _)| *its == group)
    }

    /// What a process meets that tries again after its commit failed.
    pub(crate) fn doubt(&mut self, is_in_doubt: bool) -> Doubt {
        let rest = Duration::from_micros(self.doubts.between(500, 2_000));
        if !self.is_on {
            return Doubt::TriesAgain { rest, breaks: None };
        }
        if is_in_doubt && self.doubts.chance(10) {
            self.counts.add(Fault::CrashInDoubt);
            return Doubt::Dies;
        }
        let breaks = self.doubts.weighted(&[
            (80, None),
            (7, Some((Fault::CommitRefused, Break::Refused))),
            (7, Some((Fault::CommitUnsent, Break::Before))),
            (6, Some((Fault::CommitUnheard, Break::After))),
        ]);
        breaks.into_iter().for_each(|(fault, _)| self.counts.add(fault));
        Doubt::TriesAgain { rest, breaks: breaks.map(|(_, breaks)| breaks) }
    }

    /// What happens to a call that a process makes now.
    pub(crate) fn fate(&mut self, group: Group, kind: CallKind, boot: Duration) -> CallFate {
        let latency = match self.random.below(100) {
            0..70 => Duration::ZERO,
            _ => Duration::from_micros(self.random.between(100, 20_000)),
        };
        if !self.is_on {
            return CallFate::Works(latency, Duration::ZERO);
        }
        if self.cuts.iter().any(|(cut, until)| *cut == group && boot < *until) {
            return CallFate::Fails(self.random.stretch(Duration::from_millis(1), Duration::from_secs(30)));
        }
        if boot < self.disk_full_until && kind != CallKind::Read {
            return CallFate::DiskFull;
        }
        let weight = match kind {
            CallKind::Read | CallKind::Row | CallKind::Upkeep => 1,
            CallKind::Write => 10,
        };
        if weight <= self.left {
            self.left -= weight;
            // Now and then the other half of the way.
            return if self.random.chance(80) {
                CallFate::Works(latency, Duration::ZERO)
            } else {
                CallFate::Works(Duration::ZERO, latency)
            };
        }
        self.left = self.random.between(1, self.rarity);
        let commits = if matches!(kind, CallKind::Read | CallKind::Row) { 0 } else { 3 };
        let fault = self.random.weighted(&[
            (commits, Fault::CommitUnsent),
            (commits, Fault::CommitUnheard),
            (commits, Fault::CommitRefused),
            (3, Fault::CrashBefore),
            (3, Fault::CrashAfter),
            (4, Fault::ReplyLost),
            (3, Fault::Transient),
            (2, Fault::SlowBefore),
            (2, Fault::SlowAfter),
        ]);
        self.counts.add(fault);
        let long = self.random.stretch(Duration::from_secs(1), self.lease * 2);
        match fault {
            Fault::CrashBefore => CallFate::CrashBefore,
            Fault::CrashAfter => CallFate::CrashAfter,
            Fault::ReplyLost => CallFate::ReplyLost(latency),
            Fault::CommitUnsent => CallFate::Breaks(Break::Before),
            Fault::CommitUnheard => CallFate::Breaks(Break::After),
            Fault::CommitRefused => CallFate::Breaks(Break::Refused),
            Fault::SlowBefore => CallFate::Works(long, Duration::ZERO),
            Fault::SlowAfter => CallFate::Works(Duration::ZERO, long),
            _ => CallFate::Fails(latency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_place() {
        for (index, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, index);
        }
    }
}
