//! Settings under the names of the executions design, and what they do.

use serde_json::json;

use crate::client::Client;
use crate::support::{Place, rest_for};

const CONFIG: &str = r#"
[engine]
enabled = false
planner_interval_seconds = 60
lease_heartbeat_seconds = 10
executor_max_pool_size = 4
executor_poll_interval_seconds = 1
past_execution_ttl_days = 30

[retention]
output = "1d"

[agents.pair]
runner = "process"
command = ["sh", "-c", "echo $PUNCTUAL_RUN_ID >> effects; while [ ! -f go ]; do sleep 0.05; done"]
max_concurrent = 2
"#;

#[test]
fn a_node_that_is_not_enabled_claims_nothing_and_a_trigger_runs_up_to_the_cap_of_its_agent() {
    let place = Place::new("settings", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    let log = place.read("log");
    assert!(log.contains("[engine] mean nothing here: planner_interval_seconds, lease_heartbeat_seconds"), "{log}");
    for _ in 0..3 {
        api.post("/api/executions/trigger", json!({"agentId": "pair"})).json(202);
    }
    rest_for(1_500);
    assert!(place.effects().is_empty(), "it is not enabled");
    server.signal("USR2");
    place.until("two are at work", |place| place.effects().len() == 2);
    rest_for(1_500);
    assert_eq!(place.effects().len(), 2, "and no third");
    place.write("go", "");
    place.until("all have run", |place| place.effects().len() == 3);
    assert!(server.stop().success());
}

#[test]
fn two_names_for_one_setting_are_refused_with_both() {
    let place =
        Place::new("settings-twice", "[engine]\npast_execution_ttl_days = 30\n[retention]\nhistory = \"90d\"\n");
    let output = place.punctual(&["up"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("keep one of retention.history and engine.past_execution_ttl_days"), "{said}");
}
