//! What a measurement finds: runs that somebody asked for, schedules of several kinds. All of it through the editor, as users do it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use punctual_core::run::Terms;
use punctual_core::schedule::{At, Crons, Overlap, Schedule, Trigger, Work};
use punctual_core::time::Cron;
use punctual_core::{ScheduleId, Shared};
use punctual_engine::edit::Editor;

use crate::node::Node;

/// How many requests are under way at once when the database is filled.
pub(crate) const CALLERS: usize = 500;

/// A schedule of an agent that may have any number of runs at work.
pub(crate) fn schedule(agent: &str, trigger: Trigger, now: Timestamp) -> Schedule {
    let work = Work::Agent {
        agent: agent.into(),
        prompt: "What changed since yesterday?".into(),
        inputs: serde_json::Map::default(),
        inputs_policy: Shared::default(),
    };
    let mut schedule = Schedule::draft(work, trigger, "UTC", now);
    schedule.policy.max_concurrent = NonZeroU32::MAX;
    schedule.policy.overlap = Overlap::Allow;
    schedule
}

/// A trigger that fires once.
pub(crate) fn once(at: Timestamp) -> Trigger {
    Trigger::At(At(at))
}

/// A trigger that fires every day at this second of it, in UTC.
pub(crate) fn daily(second_of_day: u32) -> anyhow::Result<Trigger> {
    let (hour, minute, second) = (second_of_day / 3_600 % 24, second_of_day / 60 % 60, second_of_day % 60);
    let cron = Cron::parse(&format!("{second} {minute} {hour} * * *"), None).context("a daily cron")?;
    Ok(Trigger::Cron(Crons::one(cron)))
}

/// Schedules among which runs that somebody asks for are spread, where that matters.
pub(crate) const SCHEDULES: usize = 1_000;

/// The project of the schedule of a number: there are ten.
pub(crate) fn project(number: usize) -> String {
    format!("project-{}", number % 10)
}

/// Creates [`SCHEDULES`] schedules that fire in a year, and asks for runs of each in turn. They are due at once.
pub(crate) async fn ask_for_runs_of_schedules(node: &Node, agent: &str, count: usize) -> anyhow::Result<()> {
    let now = node.now();
    let next_year = once(now + SignedDuration::from_hours(365 * 24));
    let mut ids = vec![];
    for number in 0..SCHEDULES.min(count) {
        let project = Some(project(number)).into();
        let schedule = Schedule { project, ..schedule(agent, next_year.clone(), now) };
        let editor = node.editor.clone();
        ids.push(tokio::spawn(async move { editor.create(schedule, now).await }));
    }
    let mut schedules = vec![];
    for id in ids {
        schedules.push(id.await.context("a caller")??.id);
    }
    let schedules: Arc<[ScheduleId]> = schedules.into();
    together(
        count,
        CALLERS,
        move |editor: Editor, number| {
            let schedule = schedules[number % schedules.len()];
            async move { Ok(editor.trigger(schedule, now).await.map(|_| ())?) }
        },
        &node.editor,
    )
    .await
}

/// Asks for runs of an agent, many callers at once. They are due at once; nobody is told.
pub(crate) async fn ask_for_runs(node: &Node, agent: &str, count: usize) -> anyhow::Result<()> {
    let terms = Terms::of(&schedule(agent, once(node.now()), node.now()));
    let now = node.now();
    together(
        count,
        CALLERS,
        move |editor: Editor, _| {
            let terms = terms.clone();
            async move { Ok(editor.run_agent(terms, now).await.map(|_| ())?) }
        },
        &node.editor,
    )
    .await
}

/// Creates schedules, many callers at once: `each` says what the one of a number is.
pub(crate) async fn create(
    node: &Node,
    count: usize,
    callers: usize,
    each: impl Fn(usize) -> Schedule + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let clock = Arc::clone(&node.clock);
    together(
        count,
        callers,
        move |editor: Editor, number| {
            let (schedule, now) = (each(number), clock.now());
            async move { Ok(editor.create(schedule, now).await.map(|_| ())?) }
        },
        &node.editor,
    )
    .await
}

/// Does something for each number below `count`, so many at once.
async fn together<F>(
    count: usize,
    callers: usize,
    request: impl Fn(Editor, usize) -> F + Clone + Send + 'static,
    editor: &Editor,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = vec![];
    for _ in 0..callers.min(count) {
        let (next, request, editor) = (Arc::clone(&next), request.clone(), editor.clone());
        tasks.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if count <= number {
                    return anyhow::Ok(());
                }
                request(editor.clone(), number).await?;
            }
        }));
    }
    for task in tasks {
        task.await.context("a caller")??;
    }
    Ok(())
}
