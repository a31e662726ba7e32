//! Sentences of the docs that a real server can be held to.

use std::collections::BTreeSet;

use serde_json::json;

use crate::client::Client;
use crate::support::Place;

const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
const AGENTS: &str = include_str!("../../../../docs/agents.md");

const CONFIG: &str = r#"
[agents.teller]
runner = "process"
command = ["sh", "-c", "env > told; exit 0"]
env = { GIVEN = "1" }
env_pass = ["HANDED_ON"]
"#;

#[test]
fn every_metric_is_in_the_docs_and_viewers_may_read_them_and_the_page() {
    let place = Place::new("documented-metrics", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    let viewer = api.post("/api/tokens", json!({"name": "prometheus", "role": "viewer"})).json(201);
    let viewer = api.with_token(viewer["secret"].as_str());
    let metrics = viewer.get("/metrics");
    assert_eq!(metrics.status, 200);
    let families: Vec<&str> =
        metrics.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(5 < families.len(), "{}", metrics.text);
    for family in families {
        assert!(OPERATIONS.contains(&format!("`{family}`")), "docs/operations.md does not tell of {family}");
    }
    assert_eq!(viewer.get("/api/docs").status, 200);
    for path in ["/metrics", "/api/docs"] {
        assert_eq!(api.with_token(None).get(path).status, 401, "{path}");
    }
    assert!(server.stop().success());
}

#[test]
fn an_agent_gets_the_environment_that_the_docs_tell_of() {
    let place = Place::new("documented-environment", CONFIG);
    let paragraph = AGENTS.split("Of the server's own environment it gets").nth(1).unwrap();
    let (gets, kept) = paragraph.split_once("Nothing else arrives").unwrap();
    let names = |text: &str| -> BTreeSet<String> {
        let quoted = text.split('`').skip(1).step_by(2);
        quoted.filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')).map(str::to_owned).collect()
    };
    let passed = names(gets);
    assert!(passed.contains("PATH") && passed.contains("TZ"), "{passed:?}");
    // A server that has all of it, and more.
    let mut env: Vec<(&str, &str)> =
        vec![("LC_TIME", "C"), ("HANDED_ON", "2"), ("NOT_NAMED", "3"), ("AWS_SECRET", "4")];
    let withheld = names(kept.split("\n\n").next().unwrap());
    env.extend(withheld.iter().map(|name| (name.as_str(), "5")));
    env.extend(
        passed
            .iter()
            .filter(|name| *name != "PATH")
            .map(|name| (name.as_str(), if name == "TZ" { "UTC" } else { "/tmp" })),
    );
    let server = place.up_in(&env);
    let api = Client::of(&place);
    api.post("/api/executions/trigger", json!({"agentId": "teller"})).json(202);
    place.until("it has told", |place| place.read("told").contains("PUNCTUAL_RUN_SCHEDULED_AT"));
    assert!(server.stop().success());
    let told = place.read("told");
    let got: BTreeSet<String> = told.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect();
    let mut expected = passed;
    let more =
        ["LC_TIME", "HANDED_ON", "GIVEN", "PUNCTUAL_RUN_ID", "PUNCTUAL_RUN_ATTEMPT", "PUNCTUAL_RUN_SCHEDULED_AT"];
    expected.extend(more.map(str::to_owned));
    // A shell adds its own, and the machine of a test may have more of LC_*.
    let own = |name: &&String| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()) && !name.starts_with("LC_");
    assert_eq!(got.iter().filter(own).collect::<Vec<_>>(), expected.iter().filter(own).collect::<Vec<_>>(), "{told}");
    assert!(got.contains("LC_TIME"));
}
