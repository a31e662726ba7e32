//! Codex CLI: `codex exec --json`, a stream of events, one a line.
//!
//! `thread.started` has the id that the thread is resumed by, `item.completed` what was said and done, `turn.completed` the tokens:
//! those of the whole thread so far, so that the last one counts. No event names the model: the agent's `model` does.

use serde_json::{Map, Value};

use super::usage::add_usage;
use super::{AgentResult, Taken, WorkError};

/// What a stream has said so far.
#[derive(Debug, Default)]
pub(super) struct Codex {
    thread: Option<String>,
    message: Option<String>,
    calls: u64,
    /// Whether this thread has had a result, which the next one of it replaces.
    has_ended: bool,
}

impl Codex {
    pub(super) fn take(&mut self, object: &Map<String, Value>) -> Taken {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        match text("type") {
            Some("thread.started") => {
                *self = Codex { thread: text("thread_id").map(str::to_owned), ..Codex::default() };
                Taken::Event
            }
            Some("turn.started" | "item.started" | "item.updated") => Taken::Event,
            Some("item.completed") => {
                self.take_item(object.get("item").unwrap_or(&Value::Null));
                Taken::Event
            }
            Some("turn.completed") => {
                let mut result = self.result();
                result.summary = self.message.clone().map(AgentResult::cut_summary);
                if let Some(usage) = object.get("usage").and_then(Value::as_object) {
                    add_usage(usage, &mut result.llm);
                    result.llm.insert("provider".to_owned(), Value::from("openai"));
                }
                self.end(result)
            }
            Some("turn.failed") => {
                let message = object.get("error").and_then(|error| error.get("message")?.as_str());
                self.fail(message.unwrap_or("the turn failed"), "turn_failed")
            }
            // A turn may go on after it; then it is none.
            Some("error") if self.thread.is_some() && object.get("error").is_none() => {
                self.fail(text("message").unwrap_or("Codex reports an error"), "error")
            }
            _ => Taken::No,
        }
    }

    fn take_item(&mut self, item: &Value) {
        match item.get("type").and_then(Value::as_str) {
            Some("agent_message") => self.message = item.get("text").and_then(Value::as_str).map(str::to_owned),
            Some("command_execution" | "mcp_tool_call" | "web_search" | "file_change") => self.calls += 1,
            _ => {}
        }
    }

    fn result(&self) -> AgentResult {
        let mut result = AgentResult { session_id: self.thread.clone(), ..AgentResult::default() };
        if 0 < self.calls {
            result.tools.insert("totalCalls".to_owned(), Value::from(self.calls));
        }
        result
    }

    fn fail(&mut self, message: &str, code: &str) -> Taken {
        let error = WorkError { code: code.to_owned(), ..WorkError::new(message) };
        self.end(AgentResult { error: Some(error), ..self.result() })
    }

    fn end(&mut self, result: AgentResult) -> Taken {
        let goes_on = std::mem::replace(&mut self.has_ended, true);
        Taken::Result { result: Box::new(result), goes_on }
    }
}
