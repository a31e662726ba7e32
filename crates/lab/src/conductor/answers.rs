//! What is answered to what, and what comes of it.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::http::Reply;
use super::{Seen, Start};

/// The status of a workflow that was started and not finished.
const RUNNING: &str = "RUNNING";

/// All that it knows, and all that a test wants to go wrong.
#[derive(Default)]
pub(super) struct State {
    pub(super) starts: Vec<Start>,
    pub(super) seen: Vec<Seen>,
    pub(super) workflows: HashMap<String, Workflow>,
    /// The last workflow of a name and an idempotency key, by both.
    by_key: HashMap<(String, String), String>,
    pub(super) failing: Option<Failing>,
    /// How many answers to starts are still to be lost.
    pub(super) losing: usize,
    pub(super) delay: Duration,
    pub(super) key: Option<(String, String)>,
    /// Counts how often tokens were voided; the valid one names the count.
    pub(super) tokens: usize,
    /// What was registered, in order.
    pub(super) definitions: Vec<Value>,
    pub(super) schedules: Value,
    pub(super) next_few: Value,
    /// Whether schedules are paused by GET and by nothing else, as on some servers.
    pub(super) pauses_by_get: bool,
}

/// A workflow that was started.
pub(super) struct Workflow {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) reason: Option<String>,
}

/// What the next requests are answered.
pub(super) struct Failing {
    pub(super) count: usize,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// Carries a request out and answers it. Without an answer, the connection is to be closed.
pub(super) fn answer(state: &mut State, seen: Seen) -> Option<Reply> {
    state.seen.push(seen.clone());
    let path = seen.path.strip_prefix("/api").unwrap_or_default();
    if (seen.method.as_str(), path) == ("POST", "/token") {
        return Some(state.token(&seen.body));
    }
    if let Some(failing) = state.failing.as_mut().filter(|failing| 0 < failing.count) {
        failing.count -= 1;
        let (status, headers, body) = (failing.status, failing.headers.clone(), failing.body.clone());
        return Some(Reply { headers, ..text(status, body) });
    }
    if state.key.is_some() && seen.header("x-authorization") != Some(&state.valid_token()) {
        return Some(refusal(401, "Token is missing, or it has expired"));
    }
    match (seen.method.as_str(), path) {
        ("POST", "/workflow") => {
            let reply = state.start(&seen.body);
            let is_lost = 0 < state.losing;
            state.losing = state.losing.saturating_sub(1);
            Some(reply).filter(|_| !is_lost)
        }
        ("PUT", "/metadata/workflow") => Some(state.register(&seen.body)),
        ("GET", "/scheduler/schedules") => Some(json(200, or_empty(&state.schedules))),
        ("GET", "/scheduler/nextFewSchedules") => Some(json(200, or_empty(&state.next_few))),
        (method @ ("PUT" | "GET"), path) if path.ends_with("/pause") => {
            Some(if (method == "GET") == state.pauses_by_get { state.pause(path) } else { not_so() })
        }
        ("GET", path) => Some(match path.strip_prefix("/workflow/") {
            Some(id) => state.workflow(id),
            None => refusal(404, "No such resource"),
        }),
        _ => Some(not_so()),
    }
}

impl State {
    fn valid_token(&self) -> String {
        format!("token-of-the-lab-{}", self.tokens)
    }

    fn token(&self, body: &Value) -> Reply {
        let given = |field: &str| body[field].as_str().unwrap_or_default();
        let (id, secret) = (given("keyId"), given("keySecret"));
        match &self.key {
            Some((known, right)) if known == id && right == secret => json(200, json!({"token": self.valid_token()})),
            // A careless server tells what it was told.
            _ => refusal(401, &format!("Access denied for key {id} with secret {secret}")),
        }
    }

    fn start(&mut self, body: &Value) -> Reply {
        let Some(name) = body["name"].as_str().filter(|name| !name.trim().is_empty()) else {
            return refusal(400, "Workflow name cannot be null or empty");
        };
        let key = body["idempotencyKey"].as_str().map(|key| (name.to_owned(), key.to_owned()));
        if let Some(known) = key.as_ref().and_then(|key| self.by_key.get(key)) {
            let is_running = self.workflows.get(known).is_some_and(|workflow| workflow.status == RUNNING);
            match body["idempotencyStrategy"].as_str() {
                Some("RETURN_EXISTING") => return text(200, known),
                Some("FAIL_ON_RUNNING") if !is_running => {}
                _ => return refusal(409, &format!("The idempotency key is known: {known}")),
            }
        }
        let id = format!("00000000-0000-4000-8000-{:012}", self.starts.len() + 1);
        let workflow = Workflow { name: name.to_owned(), status: RUNNING.to_owned(), reason: None };
        self.workflows.insert(id.clone(), workflow);
        key.map(|key| self.by_key.insert(key, id.clone()));
        #[expect(clippy::disallowed_methods, reason = "another program than ours, by the real clock")]
        let at = SystemTime::now();
        self.starts.push(Start { name: name.to_owned(), id: id.clone(), body: body.clone(), at });
        text(200, id)
    }

    /// Pauses the schedule of a path like `/scheduler/schedules/nightly/pause`. Names stand there as they are.
    fn pause(&mut self, path: &str) -> Reply {
        let name = path.trim_start_matches("/scheduler/schedules/").trim_end_matches("/pause");
        let mut known = self.schedules.as_array_mut().into_iter().flatten();
        match known.find(|schedule| schedule["name"] == name) {
            None => refusal(404, &format!("Schedule '{name}' not found")),
            Some(schedule) => {
                schedule["paused"] = true.into();
                text(200, "")
            }
        }
    }

    fn register(&mut self, body: &Value) -> Reply {
        let Some(definitions) = body.as_array() else { return refusal(400, "A list of definitions is expected") };
        self.definitions.extend(definitions.iter().cloned());
        let names: Vec<&Value> = definitions.iter().map(|definition| &definition["name"]).collect();
        json(200, json!({"bulkSuccessfulResults": names, "bulkErrorResults": {}}))
    }

    fn workflow(&self, id: &str) -> Reply {
        match self.workflows.get(id) {
            None => refusal(404, &format!("Workflow with Id: {id} not found.")),
            Some(Workflow { name, status, reason }) => {
                let mut body = json!({"workflowId": id, "workflowName": name, "status": status, "input": {}});
                if let Some(reason) = reason {
                    body["reasonForIncompletion"] = reason.as_str().into();
                }
                json(200, body)
            }
        }
    }
}

fn or_empty(list: &Value) -> Value {
    if list.is_null() { json!([]) } else { list.clone() }
}

fn text(status: u16, body: impl Into<String>) -> Reply {
    Reply { status, headers: vec![], content_type: "text/plain", body: body.into() }
}

fn json(status: u16, body: Value) -> Reply {
    Reply { content_type: "application/json", ..text(status, body.to_string()) }
}

fn not_so() -> Reply {
    refusal(405, "Method not allowed")
}

/// An error in the words of Conductor.
fn refusal(status: u16, message: &str) -> Reply {
    json(status, json!({"status": status, "message": message, "instance": "lab", "retryable": 500 <= status}))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status and the body of an answer; `lost` without one.
    fn ask(state: &mut State, method: &str, path: &str, body: Value) -> String {
        let (query, headers) = (String::new(), vec![]);
        let seen = Seen { method: method.to_owned(), path: format!("/api{path}"), query, headers, body };
        answer(state, seen).map_or("lost".to_owned(), |reply| format!("{} {}", reply.status, reply.body))
    }

    fn start(state: &mut State, strategy: &str) -> String {
        let body = json!({"name": "report", "idempotencyKey": "k", "idempotencyStrategy": strategy});
        ask(state, "POST", "/workflow", body)
    }

    #[test]
    fn a_start_that_comes_again_is_answered_as_it_asks() {
        let mut state = State { losing: 1, ..State::default() };
        assert_eq!(start(&mut state, "RETURN_EXISTING"), "lost");
        let id = state.starts[0].id.clone();
        assert_eq!(start(&mut state, "RETURN_EXISTING"), format!("200 {id}"));
        assert!(start(&mut state, "FAIL_ON_RUNNING").starts_with("409"));
        state.workflows.get_mut(&id).unwrap().status = "COMPLETED".to_owned();
        assert!(start(&mut state, "FAIL").starts_with("409"));
        assert_eq!(state.starts.len(), 1);
        assert!(start(&mut state, "FAIL_ON_RUNNING").starts_with("200"));
        assert_eq!((state.starts.len(), state.seen.len()), (2, 5));
    }

    #[test]
    fn definitions_are_kept_in_order() {
        let mut state = State::default();
        let put = |state: &mut State, body: Value| ask(state, "PUT", "/metadata/workflow", body);
        let answer = put(&mut state, json!([{"name": "b"}, {"name": "a"}]));
        assert_eq!(answer, r#"200 {"bulkErrorResults":{},"bulkSuccessfulResults":["b","a"]}"#);
        assert!(put(&mut state, json!({"name": "c"})).starts_with("400"));
        assert_eq!(state.definitions, [json!({"name": "b"}), json!({"name": "a"})]);
    }

    #[test]
    fn schedules_are_what_a_test_says() {
        let mut state = State::default();
        let get = |state: &mut State, path: &str| ask(state, "GET", path, Value::Null);
        assert_eq!(get(&mut state, "/scheduler/schedules"), "200 []");
        state.schedules = json!([{"name": "nightly"}]);
        state.next_few = json!([1, 2]);
        assert_eq!(get(&mut state, "/scheduler/schedules"), r#"200 [{"name":"nightly"}]"#);
        assert_eq!(get(&mut state, "/scheduler/nextFewSchedules"), "200 [1,2]");
        assert!(get(&mut state, "/scheduler/others").starts_with("404"));
        let pause = "/scheduler/schedules/nightly/pause";
        assert!(get(&mut state, pause).starts_with("405"));
        assert_eq!(ask(&mut state, "PUT", pause, Value::Null), "200 ");
        assert_eq!(state.schedules[0]["paused"], true);
        state.pauses_by_get = true;
        assert!(ask(&mut state, "PUT", pause, Value::Null).starts_with("405"));
        assert_eq!(get(&mut state, pause), "200 ");
        assert!(get(&mut state, "/workflow/unknown").starts_with("404"));
    }
}
