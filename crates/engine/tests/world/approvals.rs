//! Approvals: what begins only when somebody has said yes.

use punctual_core::RunId;
use punctual_core::ScheduleId;
use punctual_core::plan::AgentApproval;
use punctual_engine::approvals::digest;
use punctual_engine::edit::EditError;
use punctual_engine::roster::{AgentInfo, Agents, Risk};
use serde_json::{Value, json};

use crate::support::{HOUR, MINUTE, Way, World, hours, now_or_never};

/// A world at 08:59 with a schedule at 09:00 that asks for approval, of an agent with a risk.
fn gated(risk: Risk, fields: Value) -> (World, ScheduleId) {
    let mut world = World::at("08:59");
    let agents = world.settings.roster.now();
    let infos = agents.infos.iter().map(|(name, info)| (name.clone(), AgentInfo { risk, ..info.clone() }));
    world.settings.roster.exchange(Agents::new(infos.collect(), Default::default()));
    world.node("a");
    let mut wanted = json!({"trigger": {"cron": [{"expression": "0 9 * * *"}]}, "policy": {"risk_gate": true}});
    for (name, value) in fields.as_object().unwrap() {
        match name.as_str() {
            "policy" => wanted["policy"].as_object_mut().unwrap().extend(value.as_object().unwrap().clone()),
            _ => wanted[name] = value.clone(),
        }
    }
    let id = world.create(wanted);
    world.advance(MINUTE);
    (world, id)
}

impl World {
    fn approve(&self, run: RunId, seen: &str) -> Result<(), EditError> {
        now_or_never(self.editor().approve(run, seen, self.now))
    }

    fn deny(&self, run: RunId, seen: &str) -> Result<(), EditError> {
        now_or_never(self.editor().deny(run, seen, self.now))
    }

    /// The run of the day, and what an approval of it has to name.
    fn shown(&self, id: ScheduleId) -> (RunId, String) {
        let run = self.run_at(id, "09:00");
        (run.id, digest(&run))
    }
}

#[test]
fn only_what_may_change_things_asks() {
    for (risk, state) in [(Risk::Read, "succeeded"), (Risk::Write, "waiting"), (Risk::Exec, "waiting")] {
        let (world, id) = gated(risk, json!({}));
        assert_eq!(world.story(id), [format!("09:00 {state}")], "{risk:?}");
    }
    let (world, id) = gated(Risk::Exec, json!({"policy": {"risk_gate": false}}));
    assert_eq!(world.story(id), ["09:00 succeeded"], "nobody has asked for approval");
}

#[test]
fn a_yes_starts_it_once() {
    let (mut world, id) = gated(Risk::Write, json!({}));
    let (run, seen) = world.shown(id);
    world.advance(HOUR);
    assert_eq!((world.story(id), world.starts(id)), (vec!["09:00 waiting".to_owned()], vec![]));
    assert_eq!(world.count_held(), 0, "it takes nobody's place while it waits");
    world.approve(run, &seen).unwrap();
    world.advance(MINUTE);
    assert_eq!(world.starts(id), ["09:00 at 10:00"]);
    assert_eq!(world.story(id), ["09:00 succeeded"]);
    assert!(matches!(world.approve(run, &seen), Err(EditError::NotWaiting(_))));
    assert_eq!(world.run(run).state.tally().attempt, 1);
}

#[test]
fn a_no_and_silence_call_it_off() {
    let (mut world, id) = gated(Risk::Write, json!({}));
    let (run, seen) = world.shown(id);
    world.deny(run, &seen).unwrap();
    world.advance(hours(2));
    assert_eq!((world.story(id), world.starts(id)), (vec!["09:00 cancelled".to_owned()], vec![]));
    assert!(matches!(world.approve(run, &seen), Err(EditError::NotWaiting(_))));

    let (mut world, id) = gated(Risk::Write, json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    world.advance(hours(24) + MINUTE);
    assert_eq!((world.story(id), world.starts(id)), (vec!["09:00 cancelled".to_owned()], vec![]));
}

#[test]
fn a_yes_is_for_what_was_seen() {
    let (mut world, id) = gated(Risk::Write, json!({}));
    let (run, seen) = world.shown(id);
    for wrong in ["", "00", &seen[1..]] {
        assert!(matches!(world.approve(run, wrong), Err(EditError::OtherDigest(_))), "{wrong:?}");
        assert!(matches!(world.deny(run, wrong), Err(EditError::OtherDigest(_))), "{wrong:?}");
    }
    // An edit that comes before or behind the answer changes nothing of what was asked.
    let other = json!({"work": {"agent": {"agent": "reporter", "prompt": "delete everything"}}});
    world.edit(id, other.clone());
    assert_eq!(world.shown(id).1, seen);
    world.approve(run, &seen).unwrap();
    world.edit(id, other);
    let terms = |world: &World| world.run(run).terms.work.clone();
    assert_eq!(serde_json::to_value(terms(&world)).unwrap()["agent"].get("prompt"), None);
    world.advance(MINUTE);
    assert_eq!(world.state(run), "succeeded");
}

#[test]
fn another_try_asks_again() {
    let (mut world, id) = gated(Risk::Exec, json!({}));
    world.work("reporter", Way::Fails);
    let (run, first) = world.shown(id);
    world.approve(run, &first).unwrap();
    world.advance(MINUTE + MINUTE);
    assert_eq!(world.story(id), ["09:00 waiting"]);
    let (_, second) = world.shown(id);
    assert_ne!(first, second);
    assert!(matches!(world.approve(run, &first), Err(EditError::OtherDigest(_))), "an approval is used once");
    world.work("reporter", Way::Succeeds);
    world.approve(run, &second).unwrap();
    world.advance(MINUTE);
    assert_eq!((world.state(run).as_str(), world.run(run).state.tally().attempt), ("succeeded", 2));
}

#[test]
fn it_survives_a_restart_and_a_pause() {
    let (mut world, id) = gated(Risk::Write, json!({}));
    let (run, seen) = world.shown(id);
    world.kill("a");
    world.sleep(HOUR);
    world.node("b");
    world.settle();
    assert_eq!(world.state(run), "waiting");
    // A pause lets end what has been let in.
    world.pause(id);
    world.approve(run, &seen).unwrap();
    world.advance(MINUTE);
    assert_eq!(world.state(run), "succeeded");
}

#[test]
fn what_waits_counts_as_at_work_for_the_next() {
    let fields = json!({"trigger": {"cron": [{"expression": "0,30 9 * * *"}]}, "policy": {"overlap": "skip"}});
    let (mut world, id) = gated(Risk::Write, fields);
    let (run, seen) = world.shown(id);
    world.advance(HOUR);
    assert_eq!(world.story(id), ["09:00 waiting", "09:30 skipped(overlap)"]);
    world.approve(run, &seen).unwrap();
    world.advance(MINUTE);
    assert_eq!(world.state(run), "succeeded");
}

#[test]
fn a_yes_is_used_up_when_the_work_has_begun() {
    let (mut world, id) = gated(Risk::Write, json!({}));
    let (run, seen) = world.shown(id);
    world.work("reporter", Way::Stays);
    world.approve(run, &seen).unwrap();
    world.settle();
    assert_eq!(world.state(run), "running");
    // The node dies at work: whether the work was done is not known, and the next try asks.
    world.kill("a");
    world.sleep(MINUTE);
    world.node("b");
    world.advance(MINUTE);
    assert_eq!(world.state(run), "waiting");
}

/// Says which runs of `reporter` need an approval, to nodes that are there already, too.
fn say(world: &World, approval: AgentApproval) {
    let agents = world.settings.roster.now();
    let infos = agents.infos.iter().map(|(name, info)| (name.clone(), AgentInfo { approval, ..info.clone() }));
    world.settings.roster.exchange(Agents::new(infos.collect(), Default::default()));
}

#[test]
fn an_agent_that_always_asks_does_so_without_a_gate_and_only_while_it_is_said() {
    let mut world = World::at("08:59");
    say(&world, AgentApproval::Always);
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9,10,11 * * *"}]}}));
    world.advance_to("09:30");
    assert_eq!(world.story(id)[0], "09:00 waiting");
    let triggered = world.trigger(id);
    world.settle();
    assert_eq!(world.state(triggered), "planned", "one of the schedule waits already");
    let (run, seen) = world.shown(id);
    world.approve(run, &seen).unwrap();
    world.settle();
    assert_eq!((world.state(run).as_str(), world.state(triggered).as_str()), ("succeeded", "waiting"));
    now_or_never(world.editor().deny(triggered, &digest(&world.run(triggered)), world.now)).unwrap();
    // A reload is for what is claimed from then on.
    say(&world, AgentApproval::Schedule);
    world.advance_to("10:30");
    say(&world, AgentApproval::Always);
    world.advance_to("11:30");
    assert_eq!(world.story(id)[2..4], ["10:00 succeeded", "11:00 waiting"]);
}
