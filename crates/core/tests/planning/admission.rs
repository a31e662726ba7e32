//! Admission asks in one order: paused, agent, late, condition, overlap, budget, risk.

use punctual_core::plan::{Admission, AgentApproval, Candidate, Facts, ParkReason, admit};
use punctual_core::run::SkipReason;
use punctual_core::schedule::{MaxDelay, Overlap, PauseKind};
use punctual_core::time::{SlotKey, Zone, Zones};
use punctual_core::{Elapsed, RunId};

use crate::support::{at, run_id};

fn candidate() -> Candidate {
    Candidate {
        key: serde_json::from_value("2026-01-05T09:00:00/0@UTC".into()).unwrap(),
        scheduled_at: at("2026-01-05T09:00:00Z"),
        due_at: at("2026-01-05T09:00:00Z"),
        attempt: 1,
        has_begun: false,
        resumes: false,
        was_offered: false,
    }
}

/// A world in which everything speaks against a start.
fn hostile(zone: &Zone) -> Facts<'_> {
    Facts {
        now: at("2026-01-06T12:00:00Z"),
        zone,
        pause: Some(PauseKind::Paused),
        agent_exists: false,
        max_delay: MaxDelay::Day,
        condition: Some(false),
        overlap: Overlap::Skip,
        is_busy: true,
        has_budget: false,
        risk_gate: true,
        agent_may_change: true,
        agent_approval: AgentApproval::Always,
    }
}

#[test]
fn reasons_are_looked_at_in_order() {
    let zone = Zones::bundled().get("UTC").unwrap();
    let mut facts = hostile(&zone);
    let run = candidate();
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::Paused));
    facts.pause = Some(PauseKind::Disabled);
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::Disabled));
    facts.pause = None;
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::AgentRemoved));
    facts.agent_exists = true;
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::DayEnded));
    facts.max_delay = MaxDelay::Duration(Elapsed::from_seconds(3_600));
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::Late));
    facts.max_delay = MaxDelay::None;
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::ConditionFalse));
    facts.condition = Some(true);
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::Overlap));
    facts.is_busy = false;
    assert_eq!(admit(&run, &facts), Admission::Skip(SkipReason::Budget));
    facts.has_budget = true;
    assert_eq!(admit(&run, &facts), Admission::Park(ParkReason::NeedsApproval));
    assert_eq!(admit(&Candidate { resumes: true, ..run }, &facts), Admission::Start);
}

#[test]
fn an_operator_who_says_always_is_asked_whatever_the_schedule_says() {
    use AgentApproval::{Always, Schedule};
    let zone = Zones::bundled().get("UTC").unwrap();
    let asks = Admission::Park(ParkReason::NeedsApproval);
    let manual = Candidate { key: SlotKey::manual(run_id(7)), ..candidate() };
    for (agent_approval, risk_gate, agent_may_change, expected) in [
        (Always, false, false, asks),
        (Always, false, true, asks),
        (Always, true, true, asks),
        (Schedule, true, true, asks),
        (Schedule, true, false, Admission::Start),
        (Schedule, false, true, Admission::Start),
    ] {
        let facts = Facts { agent_approval, risk_gate, agent_may_change, ..friendly(&zone) };
        for run in [candidate(), manual.clone(), Candidate { attempt: 2, ..candidate() }] {
            assert_eq!(admit(&run, &facts), expected, "{run:?} {facts:?}");
            // An approval is for the start that it was asked for.
            assert_eq!(admit(&Candidate { resumes: true, ..run }, &facts), Admission::Start, "{facts:?}");
        }
    }
}

#[test]
fn what_has_begun_before_is_not_late() {
    let zone = Zones::bundled().get("UTC").unwrap();
    for max_delay in [MaxDelay::Day, MaxDelay::Duration(Elapsed::from_seconds(60))] {
        let facts = Facts { now: at("2026-01-07T09:00:00Z"), max_delay, ..friendly(&zone) };
        assert!(matches!(admit(&candidate(), &facts), Admission::Skip(_)), "{max_delay:?}");
        let stopped = Candidate { has_begun: true, ..candidate() };
        assert_eq!(admit(&stopped, &facts), Admission::Start, "{max_delay:?}");
    }
}

fn friendly(zone: &Zone) -> Facts<'_> {
    Facts {
        now: at("2026-01-05T09:00:00Z"),
        pause: None,
        agent_exists: true,
        condition: None,
        is_busy: false,
        has_budget: true,
        risk_gate: false,
        agent_approval: AgentApproval::Schedule,
        ..hostile(zone)
    }
}

#[test]
fn each_overlap_policy_has_its_answer_when_the_schedule_is_busy() {
    let zone = Zones::bundled().get("UTC").unwrap();
    for (overlap, expected) in [
        (Overlap::Allow, Admission::Start),
        (Overlap::Skip, Admission::Skip(SkipReason::Overlap)),
        (Overlap::Queue, Admission::Park(ParkReason::Queued)),
        (Overlap::Replace, Admission::Park(ParkReason::Replaces)),
    ] {
        let facts = Facts { overlap, is_busy: true, ..friendly(&zone) };
        assert_eq!(admit(&candidate(), &facts), expected, "{overlap:?}");
        assert_eq!(admit(&candidate(), &Facts { is_busy: false, ..facts }), Admission::Start, "{overlap:?}");
    }
}

#[test]
fn a_day_ends_an_hour_after_local_midnight() {
    let zone = Zones::bundled().get("Africa/Cairo").unwrap();
    // Due at noon on the day before the one that has no midnight.
    let run = Candidate { scheduled_at: at("2025-04-24T10:00:00Z"), due_at: at("2025-04-24T10:00:00Z"), ..candidate() };
    let admitted = |now| admit(&run, &Facts { now: at(now), ..friendly(&zone) });
    assert_eq!(admitted("2025-04-24T23:00:00Z"), Admission::Start);
    assert_eq!(admitted("2025-04-24T23:00:00.000001Z"), Admission::Skip(SkipReason::DayEnded));
}

#[test]
fn who_has_been_on_time_once_is_not_late() {
    let zone = Zones::bundled().get("UTC").unwrap();
    let late = |run: &Candidate, max_delay| {
        let facts = Facts { now: at("2026-01-06T12:00:00Z"), max_delay, ..friendly(&zone) };
        admit(run, &facts) != Admission::Start
    };
    let hour = MaxDelay::Duration(Elapsed::from_seconds(3_600));
    let retry = Candidate { attempt: 2, ..candidate() };
    let resumed = Candidate { resumes: true, ..candidate() };
    let queued = Candidate { was_offered: true, ..candidate() };
    let event = Candidate { key: SlotKey::event("1"), ..candidate() };
    let manual = Candidate { key: SlotKey::manual(RunId(uuid::Uuid::nil())), ..candidate() };
    for (name, run, late_by_day, late_by_duration) in [
        ("plain", candidate(), true, true),
        ("retry", retry, false, false),
        ("resumed", resumed, false, false),
        ("queued", queued, false, true),
        ("event", event, false, true),
        ("manual", manual, false, true),
    ] {
        assert_eq!(late(&run, MaxDelay::Day), late_by_day, "{name} by day");
        assert_eq!(late(&run, hour), late_by_duration, "{name} by duration");
        assert!(!late(&run, MaxDelay::None), "{name}");
    }
}

#[test]
fn a_person_may_run_what_is_paused() {
    let zone = Zones::bundled().get("UTC").unwrap();
    let manual = Candidate { key: SlotKey::manual(run_id(1)), ..candidate() };
    let facts = Facts { pause: Some(PauseKind::Paused), ..friendly(&zone) };
    assert_eq!(admit(&manual, &facts), Admission::Start);
}

#[test]
fn a_run_that_goes_on_after_a_wait_is_not_given_up_half_done() {
    let zone = Zones::bundled().get("UTC").unwrap();
    let resumed = Candidate { resumes: true, ..candidate() };
    for overlap in [Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace] {
        let facts = Facts { pause: Some(PauseKind::Paused), is_busy: true, overlap, ..friendly(&zone) };
        assert_eq!(admit(&resumed, &facts), Admission::Start, "{overlap:?}");
    }
}
