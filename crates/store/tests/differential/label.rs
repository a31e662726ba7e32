//! What a step has reached: every answer and every arrow of a run's life has a name, and a sample must reach them all.

use punctual_core::journal::{Body, Entry, World};
use punctual_store::{Cancellation, RunWritten, Written};

use super::names::run_id;
use super::play::Answer;
use super::step::{Op, Step};

/// The names of what a step has reached. `world` is the world behind the entries; what is over is not in it.
pub(crate) fn labels(step: &Step, answer: &Answer, entries: &[Entry], world: &World) -> Vec<String> {
    let mut labels = answers(step, answer);
    if let (Op::Finish(finished), Answer::Runs(written)) = (&step.op, answer) {
        let is_told = |run| entries.iter().any(|entry| entry.body.run() == Some(run));
        let of_over = |run| !is_told(run) && !world.runs.contains_key(&run);
        let done = finished.iter().zip(written).filter(|(_, it)| matches!(it, RunWritten::Done(_)));
        let again = done.filter(|(finished, _)| of_over(run_id(finished.run)));
        labels.extend(again.map(|_| "Finish: again, of a run that is over".to_owned()));
    }
    for entry in entries {
        let kind = entry.body.kind();
        let live = || entry.body.run().and_then(|run| world.runs.get(&run)).map(|run| run.state.name());
        let run = entry.body.ended().map(|(_, state)| state.name()).or_else(live);
        labels.push(match &entry.body {
            Body::RunChanged(change) => format!("{kind}: {} → {}", change.event.name(), run.unwrap_or("gone")),
            Body::AttemptEnded(attempt) => format!("{kind}: {} → {}", attempt.event.name(), run.unwrap_or("gone")),
            Body::Planned(plan) => {
                let has = |what: &str, is: bool| if is { format!(" {what}") } else { String::new() };
                let (runs, moved) = (has("new", !plan.runs.is_empty()), has("moved", !plan.moved.is_empty()));
                format!("{kind}:{runs}{moved}{}", has("withdrawn", !plan.withdrawn.is_empty()))
            }
            Body::PlannerTaken { outage, .. } => {
                format!("{kind}: {}", if outage.is_some() { "after an outage" } else { "at once" })
            }
            Body::NodeLeft { is_lost, .. } => format!("{kind}: {}", if *is_lost { "lost" } else { "left" }),
            _ => kind.to_owned(),
        });
    }
    labels
}

fn answers(step: &Step, answer: &Answer) -> Vec<String> {
    let verb = format!("{:?}", step.op);
    let verb = verb.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    let one = |what: &str| vec![format!("{verb}: {what}")];
    match (&step.op, answer) {
        (Op::Read(question), _) => {
            let question = format!("{question:?}");
            vec![format!("Read {}", question.split([' ', '(', '{']).next().unwrap_or_default())]
        }
        (_, Answer::Failed(error)) => one(error.split([' ', '(', '{']).next().unwrap_or_default()),
        (_, Answer::Yes(is)) => one(if *is { "yes" } else { "no" }),
        (_, Answer::Number(count)) => one(if *count == 0 { "none" } else { "some" }),
        (_, Answer::Writes(written)) => written
            .iter()
            .map(|it| format!("{verb}: {}", if *it == Written::Done { "done" } else { "conflict" }))
            .collect(),
        (_, Answer::Runs(written)) => written
            .iter()
            .map(|it| match it {
                RunWritten::Done(state) => format!("{verb}: {}", state.name()),
                RunWritten::Stale => format!("{verb}: stale"),
            })
            .collect(),
        (_, Answer::Cancelled(cancelled)) => one(match cancelled {
            Cancellation::Done => "done",
            Cancellation::Asked => "asked",
            Cancellation::Over(_) => "over",
        }),
        (_, Answer::Claimed(claimed)) => {
            let mut labels = one(if claimed.runs.is_empty() { "nothing" } else { "some" });
            labels.extend((1 < claimed.runs.len()).then(|| format!("{verb}: several")));
            labels.extend((0 < claimed.swept).then(|| format!("{verb}: swept")));
            labels.extend(claimed.runs.iter().filter(|it| it.is_busy).map(|_| format!("{verb}: busy")));
            labels.extend(claimed.runs.iter().filter(|it| it.schedule.is_none()).map(|_| format!("{verb}: orphan")));
            labels.push(format!("{verb}: comes again {}", if claimed.next_at.is_some() { "then" } else { "never" }));
            labels
        }
        (_, Answer::Started(started)) => {
            let mut labels = one(if started.runs.is_empty() { "nothing" } else { "some" });
            labels.extend(started.claimed.awaits_planning.then(|| format!("{verb}: awaits planning")));
            let is_slot = |it: &punctual_store::StartedRun| it.run.id.slot_id().is_some();
            labels.extend(started.runs.iter().any(is_slot).then(|| format!("{verb}: a slot")));
            labels
        }
        (_, Answer::Planner(lease)) => one(match (lease.is_held, lease.outage) {
            (false, _) => "another's",
            (true, None) => "held",
            (true, Some(_)) => "after an outage",
        }),
        _ => one("done"),
    }
}

/// What a sample has to reach on a store that nodes share.
pub(crate) const REACHED: &[&str] = &[
    "Plan: done",
    "Plan: conflict",
    "Ask: yes",
    "Ask: no",
    "Ask: Journal",
    "Cancel: done",
    "Cancel: asked",
    "Cancel: over",
    "Cancel: NotFound",
    "Resume: planned",
    "Resume: stale",
    "Claim: nothing",
    "Claim: some",
    "Claim: several",
    "Claim: swept",
    "Claim: busy",
    "Claim: orphan",
    "Claim: comes again then",
    "Claim: comes again never",
    "Claim: LeaseEnded",
    "Start: nothing",
    "Start: some",
    "Start: awaits planning",
    "Start: a slot",
    "Start: LeaseEnded",
    "Settle: running",
    "Settle: skipped",
    "Settle: planned",
    "Settle: waiting",
    "Settle: stale",
    "Finish: succeeded",
    "Finish: failed",
    "Finish: cancelled",
    "Finish: planned",
    "Finish: waiting",
    "Finish: stale",
    "Finish: again, of a run that is over",
    "Join: done",
    "Renew: done",
    "Renew: LeaseEnded",
    "Leave: done",
    "Bury: none",
    "Bury: some",
    "TakePlanner: held",
    "TakePlanner: after an outage",
    "TakePlanner: LeaseEnded",
    "NoteOutage: done",
    "BeginDay: yes",
    "BeginDay: no",
    "ForgetAnswers: none",
    "ForgetAnswers: some",
    "Prune: none",
    "Prune: some",
    "Read Schedule",
    "Read Schedules",
    "Read Count",
    "Read ToPlan",
    "Read NextPlanAt",
    "Read Subject",
    "Read ZoneDays",
    "Read Run",
    "Read Runs",
    "Read Nodes",
    "Read Entries",
    "Read About",
    "Read Base",
    "Read Head",
    "Read History",
    "Read Verify",
    "planned:",
    "planned: new",
    "planned: moved",
    "planned: withdrawn",
    "planned: new moved withdrawn",
    "schedule_changed",
    "schedule_deleted",
    "skipped",
    "day_started",
    "run_asked",
    "runs_claimed",
    "runs_started",
    "node_joined",
    "node_left: lost",
    "node_left: left",
    "planner_taken: at once",
    "planner_taken: after an outage",
    "run_changed: skipped → skipped",
    "run_changed: handed back → planned",
    "run_changed: put to wait → waiting",
    "run_changed: put to wait → cancelled",
    "run_changed: resumed → planned",
    "run_changed: cancelled → cancelled",
    "run_changed: asked to stop → running",
    "run_changed: kept → planned",
    "attempt_ended: succeeded → succeeded",
    "attempt_ended: failed → planned",
    "attempt_ended: failed → failed",
    "attempt_ended: failed → cancelled",
    "attempt_ended: cancelled → cancelled",
    "attempt_ended: expired → planned",
    "attempt_ended: expired → failed",
    "run_changed: expired → cancelled",
    "attempt_ended: lost → planned",
    "attempt_ended: lost → failed",
    "attempt_ended: lost → unknown",
    "attempt_ended: lost → cancelled",
];

/// What only a store that nodes share can reach: two nodes that live.
pub(crate) const SHARED: &[&str] = &["TakePlanner: another's"];
