//! The real binary, killed at bad moments: no slot twice, none missing, nothing acknowledged lost.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Place, rest_for};
use serde_json::Value;

/// How often the server is killed.
const KILLS: u64 = 30;

/// Schedules that fire every second, some of them one run at a time.
const SCHEDULES: [(&str, &str); 4] = [("a", "allow"), ("b", "allow"), ("c", "queue"), ("d", "queue")];

fn config() -> String {
    let agents =
        "[engine]\nexecutor_pool_size = 16\n[agents.note]\nrunner = \"process\"\ncommand = [\"sh\", \"agent.sh\"]\n";
    let schedule = |(name, overlap): (&str, &str)| {
        format!(
            r#"
            [[schedules]]
            name = "{name}"
            agent = "note"
            every = "1s"
            overlap = "{overlap}"
            max_concurrent = 16
            catch_up = "all"
            catch_up_max = 10000
            max_delay = "none"
            max_attempts = 20
            retry_delay = "1s"
            "#
        )
    };
    agents.to_owned() + &SCHEDULES.map(schedule).join("")
}

/// Leaves a line for each attempt, as its very first act.
const AGENT: &str = r#"
echo "$PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT $PUNCTUAL_RUN_SCHEDULED_AT" >> effects
sleep 0.2
echo '{"summary": "noted"}'
"#;

#[test]
fn killed_thirty_times_no_slot_is_missing_or_runs_twice_and_nothing_acknowledged_is_lost() {
    let place = Place::new("crash", &config());
    place.write("agent.sh", AGENT);
    for kill in 0..KILLS {
        let server = place.up();
        // Some die while they start, some in the middle of their work.
        rest_for(50 + kill * 7_919 % 1_400);
        server.kill();
    }
    let effects_so_far = place.effects().len();
    let server = place.up();
    place.until("it has caught up", |place| effects_so_far + 3 < place.effects().len() && is_caught_up(place));
    assert!(server.stop().success());
    place.verify();

    // Every attempt that began was written before it began.
    let runs = place.runs();
    let by_id: BTreeMap<&str, &Value> = runs.iter().map(|run| (run["run"].as_str().unwrap(), run)).collect();
    let mut attempts: BTreeSet<(String, String)> = BTreeSet::new();
    for effect in place.effects() {
        let mut words = effect.split(' ').map(str::to_owned);
        let (run, attempt) = (words.next().unwrap(), words.next().unwrap());
        let scheduled_at = words.next().unwrap();
        let known = by_id.get(run.as_str()).unwrap_or_else(|| panic!("{effect}: this run is not in the database"));
        assert_eq!(known["scheduled_at"], scheduled_at, "{effect}");
        assert!(attempts.insert((run, attempt)), "{effect}: an attempt ran twice");
    }

    // Every second of each schedule up to the last that succeeded has one run, and each of them has succeeded once.
    let mut slots = 0;
    for (name, _) in SCHEDULES {
        let is_over = |run: &&Value| run["schedule_name"] == name && run["state"] == "succeeded";
        let over: Vec<i64> = runs.iter().filter(is_over).map(|run| second(&run["scheduled_at"])).collect();
        let seconds: BTreeSet<i64> = over.iter().copied().collect();
        assert_eq!(seconds.len(), over.len(), "{name}: a slot has two runs");
        let (first, last) = (seconds.first().unwrap(), seconds.last().unwrap());
        let missing: Vec<i64> = (*first..=*last).filter(|second| !seconds.contains(second)).collect();
        assert!(missing.is_empty(), "{name}: {} slots have no run that succeeded: {missing:?}", missing.len());
        slots += seconds.len();
    }
    let mut successes: BTreeMap<String, usize> = BTreeMap::new();
    for item in place.history() {
        assert_ne!(item["result"], "skipped", "{item}");
        if item["result"] == "succeeded" {
            *successes.entry(item["attempt"]["run"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    assert!(successes.values().all(|count| *count == 1), "{successes:?}");
    println!("{KILLS} kills, {slots} slots, {} attempts", attempts.len());
}

/// Whether nothing that was due is left, neither for a first try nor for another one.
fn is_caught_up(place: &Place) -> bool {
    let mut runs = place.runs();
    runs.retain(|run| run["is_over"] == false);
    let is_left = |run: &Value| 1 < run["attempt"].as_u64().unwrap() || second(&run["scheduled_at"]) < now_second() - 2;
    !runs.is_empty() && !runs.iter().any(is_left)
}

fn second(at: &Value) -> i64 {
    at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second()
}

#[expect(clippy::disallowed_methods, reason = "the server under test goes by the real clock")]
fn now_second() -> i64 {
    jiff::Timestamp::now().as_second()
}
