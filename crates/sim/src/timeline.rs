//! The time line: tasks, and the order in which they go on.
//!
//! One thread polls one task at a time. Time stands still while it does, and then leaps to the next wake-up; of those at
//! one instant the seed decides which comes first. Tasks belong to groups: a group is a process that can be ended or
//! frozen whole, at any point at which one of its tasks waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_engine::spawn::Task;

use crate::random::Random;

/// A process, or the world around all of them.
pub(crate) type Group = u32;

/// The group of what is no process: people, chaos, and what watches them.
pub(crate) const WORLD: Group = 0;

type TaskId = u64;

/// Time, and what happens when. Shared by everything that waits.
pub(crate) struct Timeline(Mutex<State>);

struct State {
    boot: u64,
    start: Timestamp,
    set_by: SignedDuration,
    /// How often the clock of a process has come to show something else.
    sets: BTreeMap<Group, u64>,
    /// Tasks that sleep by the clock of their process.
    sleepers: BTreeMap<TaskId, Group>,
    wakeups: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    ties: Random,
    current: TaskId,
    next_task: TaskId,
    spawned: Vec<(TaskId, Group, Task)>,
    ended: Vec<Group>,
    frozen: BTreeMap<Group, Vec<TaskId>>,
}

impl Timeline {
    /// A time line that starts when the clock shows `start`.
    pub(crate) fn new(seed: u64, start: Timestamp) -> Arc<Timeline> {
        Arc::new(Timeline(Mutex::new(State {
            // A machine that has been up for a while, so that a lease can reach into the past.
            boot: 3_600_000_000,
            start,
            set_by: SignedDuration::ZERO,
            sets: BTreeMap::new(),
            sleepers: BTreeMap::new(),
            wakeups: BinaryHeap::new(),
            ties: Random::new(seed, "ties"),
            current: 0,
            next_task: 1,
            spawned: vec![],
            ended: vec![],
            frozen: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time that nobody can set.
    pub(crate) fn boot(&self) -> Duration {
        Duration::from_micros(self.state().boot)
    }

    /// What the clock on the wall shows.
    pub(crate) fn now(&self) -> Timestamp {
        let state = self.state();
        state.start + SignedDuration::from_micros((state.boot - 3_600_000_000) as i64) + state.set_by
    }

    /// Sets the clock on the wall.
    pub(crate) fn set_clock(&self, by: SignedDuration) {
        self.state().set_by += by;
    }

    /// The clock of a process shows something else: who sleeps by it notices within `slice`.
    pub(crate) fn clock_is_set(&self, group: Group, slice: Duration) {
        let mut state = self.state();
        *state.sets.entry(group).or_default() += 1;
        let sleepers: Vec<TaskId> = state.sleepers.extract_if(.., |_, its| *its == group).map(|(id, _)| id).collect();
        for task in sleepers {
            let wait = state.ties.below(slice.as_micros() as u64);
            let at = state.boot + wait;
            state.wake(task, at);
        }
    }

    /// Lets a task run in a group.
    pub(crate) fn spawn(&self, group: Group, task: Task) {
        let mut state = self.state();
        let id = state.next_task;
        state.next_task += 1;
        state.spawned.push((id, group, task));
        let now = state.boot;
        state.wake(id, now);
    }

    /// Ends a process: what it was doing is never gone on with.
    pub(crate) fn end(&self, group: Group) {
        let mut state = self.state();
        state.ended.push(group);
        state.frozen.remove(&group);
    }

    /// Lets go of everything that has not begun.
    pub(crate) fn clear(&self) {
        let spawned = std::mem::take(&mut self.state().spawned);
        drop(spawned);
    }

    /// Freezes a process where it stands.
    pub(crate) fn freeze(&self, group: Group) {
        self.state().frozen.entry(group).or_default();
    }

    /// Lets a frozen process go on: everything that it missed happens now, in any order.
    pub(crate) fn thaw(&self, group: Group) {
        let mut state = self.state();
        let now = state.boot;
        for task in state.frozen.remove(&group).unwrap_or_default() {
            state.wake(task, now);
        }
    }

    /// Waits for a while, by the clock that nobody can set.
    pub(crate) fn sleep(self: &Arc<Timeline>, time: Duration) -> Sleep {
        let until = self.state().boot + time.as_micros() as u64;
        Sleep { timeline: Arc::clone(self), until, sets: None, is_registered: false }
    }

    /// Waits until the clock of a process shows `at` that shows `now`, or until shortly after it has been set.
    pub(crate) fn sleep_until(self: &Arc<Timeline>, group: Group, now: Timestamp, at: Timestamp) -> Sleep {
        let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
        // No loop can go round without time passing.
        let sleep = self.sleep(left.max(Duration::from_millis(1)));
        Sleep { sets: Some((group, self.state().sets_of(group))), ..sleep }
    }
}

impl State {
    fn sets_of(&self, group: Group) -> u64 {
        self.sets.get(&group).copied().unwrap_or(0)
    }

    fn wake(&mut self, task: TaskId, at: u64) {
        let tie = self.ties.next();
        self.wakeups.push(Reverse((at, tie, task)));
    }
}

/// Waiting.
pub(crate) struct Sleep {
    timeline: Arc<Timeline>,
    until: u64,
    /// Whose clock it sleeps by, for those that do, and how often that had been set before.
    sets: Option<(Group, u64)>,
    is_registered: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let timeline = Arc::clone(&self.timeline);
        let mut state = timeline.state();
        if self.until <= state.boot || self.sets.is_some_and(|(group, sets)| sets != state.sets_of(group)) {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut self.is_registered, true) {
            let task = state.current;
            state.wake(task, self.until);
            if let Some((group, _)) = self.sets {
                state.sleepers.insert(task, group);
            }
        }
        Poll::Pending
    }
}

struct TaskWaker {
    task: TaskId,
    timeline: Arc<Timeline>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.timeline.state();
        let now = state.boot;
        state.wake(self.task, now);
    }
}

/// Polls tasks in the order of the time line.
pub(crate) struct Executor {
    timeline: Arc<Timeline>,
    tasks: BTreeMap<TaskId, (Group, Task, Waker)>,
}

impl Executor {
    pub(crate) fn new(timeline: Arc<Timeline>) -> Executor {
        Executor { timeline, tasks: BTreeMap::new() }
    }

    /// Goes on to the next wake-up and polls its task. Whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let mut state = self.timeline.state();
        let Some(Reverse((at, _, id))) = state.wakeups.pop() else { return false };
        state.boot = state.boot.max(at);
        state.current = id;
        drop(state);
        self.take_spawned();
        let Some((group, task, waker)) = self.tasks.get_mut(&id) else { return true };
        if let Some(missed) = self.timeline.state().frozen.get_mut(group) {
            missed.push(id);
            return true;
        }
        let is_done = task.as_mut().poll(&mut Context::from_waker(waker)).is_ready();
        if is_done {
            self.tasks.remove(&id);
            self.timeline.state().sleepers.remove(&id);
        }
        self.take_spawned();
        self.end_groups();
        true
    }

    fn take_spawned(&mut self) {
        let spawned = std::mem::take(&mut self.timeline.state().spawned);
        for (id, group, task) in spawned {
            let waker = Waker::from(Arc::new(TaskWaker { task: id, timeline: Arc::clone(&self.timeline) }));
            self.tasks.insert(id, (group, task, waker));
        }
    }

    fn end_groups(&mut self) {
        let ended = std::mem::take(&mut self.timeline.state().ended);
        if !ended.is_empty() {
            // Dropping a task may wake others: the time line must not be locked here.
            self.tasks.retain(|_, (group, ..)| !ended.contains(group));
        }
    }
}
