//! One attempt: the start, and the way to the workflow's end if it is followed.

use std::time::Duration;

use punctual_core::schedule::Workflow;
use reqwest::{Method, StatusCode, Url};
use tokio::time::sleep;

use super::answer::Progress;
use super::client::Client;
use super::connection::Asked;
use super::notes::{End, Notes, WORKFLOW_ID};
use super::request::StartRequest;
use super::trouble::Trouble;

/// How long a workflow is left alone after its start. Each look at it doubles the time to the next.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// The longest time between two looks at a workflow.
const LOOK_AFTER_MAX: Duration = Duration::from_secs(15);

/// One attempt of one run. What it has found out is in its notes, wherever it is cut short.
pub(super) struct Attempt<'a> {
    pub(super) client: &'a Client,
    pub(super) workflow: &'a Workflow,
    /// Which try this is; 1 is the first.
    pub(super) number: u32,
    pub(super) notes: &'a mut Notes,
}

impl Attempt<'_> {
    pub(super) async fn carry_out(mut self) -> End {
        match self.start().await {
            Ok(id) if self.workflow.is_followed => self.follow(&id).await,
            Ok(_) => End::Succeeded,
            Err(trouble) => {
                self.notes.print(&trouble.message);
                End::Failed(trouble)
            }
        }
    }

    /// Starts the workflow, and returns its id.
    async fn start(&mut self) -> Result<String, Trouble> {
        let Workflow { name, idempotency_key, .. } = self.workflow;
        let body = serde_json::to_vec(&StartRequest::from(self.workflow))
            .map_err(|error| Trouble::lasting("bad_request", format!("writing down the start of {name:?}: {error}")))?;
        let (method, url) = (Method::POST, self.client.connection.at(&["workflow"]));
        let asked = Asked { method, url, idempotency_key: idempotency_key.clone(), body: Some(body) };
        let answer = self.client.ask(&asked, self.notes).await?;
        if !answer.status.is_success() {
            let mut trouble = asked.refused(&answer, self.notes);
            if answer.status == StatusCode::CONFLICT && 1 < self.number {
                trouble.message += "; an earlier attempt may have started it";
            }
            return Err(trouble);
        }
        let (url, status) = (&asked.url, answer.status.as_u16());
        // One that holds a secret would carry it into addresses.
        let Some(id) = answer.workflow_id().filter(|id| self.notes.is_clean(id)) else {
            let text = self.notes.shown(&answer.text());
            let message = format!("POST {url} was answered with {status}, and no id of a workflow: {text:?}");
            // The start may be done: asked again with the same key, the server may say as what.
            return Err(Trouble::passing("bad_answer", message));
        };
        self.notes.print(&format!("POST {url}: {status}, workflow {id}"));
        self.notes.refer(WORKFLOW_ID, &id);
        self.notes.sum_up(&format!("workflow {name} started as {id}"));
        Ok(id)
    }

    /// Looks at the workflow until it has ended. A look that fails is followed by the next.
    async fn follow(&mut self, id: &str) -> End {
        let mut url = self.client.connection.at(&["workflow", id]);
        url.set_query(Some("includeTasks=false"));
        let (mut look_after, mut last) = (LOOK_AFTER, String::new());
        loop {
            sleep(look_after).await;
            look_after = (look_after * 2).min(LOOK_AFTER_MAX);
            let (seen, end) = self.look(&url, id).await;
            // A workflow of days does not print a line every 15 seconds.
            if seen != last {
                self.notes.print(&seen);
                last = seen;
            }
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Looks at the workflow once: what was seen, in a line, and its end if it has ended.
    async fn look(&mut self, url: &Url, id: &str) -> (String, Option<End>) {
        let asked = Asked { method: Method::GET, url: url.clone(), idempotency_key: None, body: None };
        let answer = match self.client.ask(&asked, self.notes).await {
            Ok(answer) => answer,
            Err(trouble) => return (format!("GET {url}: {}", trouble.message), None),
        };
        let Progress { status, reason } = Progress::read(&answer.body);
        let Some(status) = status.filter(|_| answer.status.is_success()) else {
            let text = self.notes.shown(&answer.text());
            return (format!("GET {url}: {}, and no status of a workflow: {text}", answer.status.as_u16()), None);
        };
        let status = self.notes.shown(&status);
        self.notes.refer("workflowStatus", &status);
        let why = reason.map(|reason| format!(": {}", self.notes.shown(&reason))).unwrap_or_default();
        let name = &self.workflow.name;
        let end = match status.as_str() {
            "COMPLETED" => {
                self.notes.sum_up(&format!("workflow {name}, started as {id}, is COMPLETED"));
                Some(End::Succeeded)
            }
            "FAILED" | "TERMINATED" | "TIMED_OUT" => {
                let message = format!("workflow {name}, started as {id}, is {status}{why}");
                Some(End::Failed(Trouble::lasting("workflow_failed", message)))
            }
            // RUNNING, PAUSED, and what a later server may call a workflow that has not ended.
            _ => None,
        };
        (format!("GET {url}: {status}{why}"), end)
    }
}
