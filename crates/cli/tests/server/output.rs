//! What runs print, in the real binary, on both stores: live, kept, cut, and without secrets.

use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

/// Never printed as it is.
const CANARY: &str = "canary-7f3a\"9c/41+d8";

const CONFIG: &str = r#"
[agents.talker]
runner = "process"
command = ["sh", "-c", "echo first; echo oops >&2; while ! [ -e go ]; do sleep 0.05; done; echo last"]
[agents.flood]
runner = "process"
command = ["sh", "-c", "i=0; while [ $i -lt 30000 ]; do echo \"line $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; i=$((i+1)); done"]
[agents.leaky]
runner = "process"
command = ["sh", "leaky.sh"]
secrets = { API_KEY = { file = "key" } }
"#;

/// Prints its secret in one piece, in two, encoded, in a report and in an error.
const LEAKY: &str = r#"
echo "the key is $API_KEY."
printf 'in two: %s' "${API_KEY%d8}"; sleep 0.4; echo "d8 so"
printf '%s' "$API_KEY" | base64 -w0; echo
echo "$API_KEY" >&2
printf '%s' "$API_KEY" | sed 's/"/\\"/g; s/.*/{"summary": "used &", "error": {"message": "no & here", "retryable": false}}/'
exit 1
"#;

fn trigger(api: &Client, agent: &str) -> String {
    let asked = api.post("/api/executions/trigger", json!({"agentId": agent})).json(202);
    asked["executionId"].as_str().unwrap().to_owned()
}

/// The events of a stream, up to its end or until one says so.
fn follow(stream: &mut impl BufRead, mut is_enough: impl FnMut(&str, &Value) -> bool) -> Vec<(u64, String)> {
    let (mut seq, mut kind, mut events) = (0, String::new(), vec![]);
    for line in stream.lines().map_while(Result::ok) {
        if let Some(id) = line.strip_prefix("id: ") {
            seq = id.parse().unwrap();
        } else if let Some(event) = line.strip_prefix("event: ") {
            kind = event.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).unwrap();
            let text = data["text"].as_str().unwrap_or_default().to_owned();
            let is_enough = is_enough(&kind, &data);
            events.push((seq, format!("{kind} {} {text}", data["stream"].as_str().unwrap_or_default())));
            if is_enough {
                break;
            }
        }
    }
    events
}

fn output_is_followed_kept_and_without_secrets(place: &Place) {
    place.write("leaky.sh", LEAKY);
    place.write("key", &format!("{CANARY}\n"));
    std::fs::set_permissions(place.path("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = place.up();
    let api = Client::of(place);

    // While the work goes on, what it has printed so far is there.
    let run = trigger(&api, "talker");
    let path = format!("/api/executions/{run}/output/stream");
    let mut seen = 0;
    let events = follow(&mut api.stream(&path, &[]), |_, _| {
        seen += 1;
        seen == 2
    });
    let mut texts: Vec<&str> = events.iter().map(|(_, text)| text.as_str()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["output stderr oops\n", "output stdout first\n"]);
    let output = api.get(&format!("/api/executions/{run}/output")).json(200);
    assert_eq!((&output["isOver"], &output["isCut"]), (&json!(false), &json!(false)));
    place.write("go", "");
    // Taken up again where it was left.
    let last = events[1].0.to_string();
    let events = follow(&mut api.stream(&path, &[("Last-Event-ID", &last)]), |kind, _| kind == "over");
    assert_eq!(events.iter().map(|(_, text)| text.trim()).collect::<Vec<_>>(), ["output stdout last", "over"]);
    let output = api.get(&format!("/api/executions/{run}/output?after={last}")).json(200);
    assert_eq!((&output["isOver"], &output["items"][0]["text"]), (&json!(true), &json!("last\n")));

    // Of much, the end is kept.
    let run = trigger(&api, "flood");
    place.until("all is kept", |_| {
        let page = api.get(&format!("/api/executions/{run}/output")).json(200);
        page["isCut"] == true
            && api.get(&format!("/api/executions/past?executionId={run}")).json(200)["totalElements"] == 1
    });
    let (mut size, mut after, mut end) = (0, 0, String::new());
    place.until("the last line is there", |_| {
        let page = api.get(&format!("/api/executions/{run}/output?after={after}")).json(200);
        for item in page["items"].as_array().unwrap() {
            after = item["seq"].as_u64().unwrap();
            let text = item["text"].as_str().unwrap();
            size += text.len();
            // A piece may end in the middle of the line.
            end = format!("{}{text}", &end[end.len().saturating_sub(100)..]);
        }
        end.contains("line 29999 ")
    });
    assert!(size <= 2 * 1024 * 1024, "{size} bytes are kept");

    // A secret comes back nowhere.
    let run = trigger(&api, "leaky");
    let past = format!("/api/executions/past?executionId={run}");
    place.until("it is over", |_| api.get(&past).json(200)["totalElements"] == 1);
    follow(&mut api.stream(&format!("/api/executions/{run}/output/stream"), &[]), |kind, _| kind == "over");
    let shown = api.get(&past).json(200)["content"][0].clone();
    assert_eq!((&shown["resultStatus"], &shown["responseSummary"]), (&json!("FAIL"), &json!("used [secret API_KEY]")));
    let shown = api.get(&format!("/api/executions/past/{}", shown["pastExecutionId"].as_str().unwrap())).text;
    let output = api.get(&format!("/api/executions/{run}/output")).text;
    assert!(
        output.contains("the key is [secret API_KEY].") && output.contains("in two: [secret API_KEY] so"),
        "{output}"
    );
    assert!(server.stop().success());
    place.verify();
    let encoded = "Y2FuYXJ5LTdmM2Ei";
    let dump = String::from_utf8_lossy(&std::fs::read(place.path("punctual.db")).unwrap_or_default()).into_owned();
    for text in [&shown, &output, &place.read("log"), &dump] {
        assert!(!text.contains("canary-7f3a") && !text.contains(encoded));
    }
}

#[test]
fn output_is_followed_kept_and_without_secrets_on_sqlite() {
    output_is_followed_kept_and_without_secrets(&Place::new("output", CONFIG));
}

#[test]
fn output_is_followed_kept_and_without_secrets_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    output_is_followed_kept_and_without_secrets(&Place::new("output-pg", CONFIG).with_database(&postgres.address()));
}

#[test]
fn a_secret_that_others_can_read_starts_nothing() {
    let place = Place::new("output-secret", CONFIG);
    place.write("leaky.sh", LEAKY);
    place.write("key", CANARY);
    std::fs::set_permissions(place.path("key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let server = place.up();
    let api = Client::of(&place);
    let run = trigger(&api, "leaky");
    let past = format!("/api/executions/past?executionId={run}");
    place.until("it has failed", |_| api.get(&past).json(200)["totalElements"] != 0);
    let text = api.get(&past).text;
    assert!(text.contains("chmod 600") && !text.contains("canary"), "{text}");
    assert!(server.stop().success());
}
