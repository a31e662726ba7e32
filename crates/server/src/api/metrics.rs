//! Metrics, in the text format of Prometheus. Labels are agents of the configuration and words of closed lists, never more.

use std::fmt::Write;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use punctual_engine::meters::{Counts, LATENESS_STEPS};
use punctual_store::{LiveCounts, NodeRecord};

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// What this node has done since it started, and how the store is.
#[utoipa::path(get, path = "/metrics", tag = "about", responses(
    (status = 200, description = "Text format of Prometheus", content_type = "text/plain", body = String),
))]
pub(crate) async fn show(State(app): State<App>, caller: Caller) -> Result<Response, ApiError> {
    caller.must_reach_all()?;
    let now = app.now();
    let (live, nodes) = (app.store.live_counts(now).await?, app.store.nodes().await?);
    let schedules = app.store.count_schedules().await?;
    let seq = app.store.head().await?.seq;
    let text = render(&app.meters.read(), &live, &nodes, schedules, seq, now);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

fn render(
    counts: &Counts,
    live: &LiveCounts,
    nodes: &[NodeRecord],
    schedules: u64,
    seq: u64,
    now: Timestamp,
) -> String {
    let mut text = Text(String::new());
    let agent = |(agent, verdict): &(String, punctual_core::journal::Verdict)| {
        vec![("agent", agent.clone()), ("result", verdict.as_str().to_owned())]
    };
    text.family("punctual_attempts_total", "counter", "Ended attempts of this node");
    counts
        .attempts
        .iter()
        .for_each(|(key, sum)| text.value("punctual_attempts_total", &agent(key), sum.attempts as f64));
    text.family("punctual_attempt_seconds_total", "counter", "How long the work of ended attempts took");
    counts
        .attempts
        .iter()
        .for_each(|(key, sum)| text.value("punctual_attempt_seconds_total", &agent(key), sum.seconds));
    text.family("punctual_llm_tokens_total", "counter", "Tokens that models read and wrote, as agents report them");
    counts
        .attempts
        .iter()
        .for_each(|(key, sum)| text.value("punctual_llm_tokens_total", &agent(key), sum.tokens as f64));
    text.family("punctual_llm_cost_usd_total", "counter", "What that cost, as far as it is known");
    let cost = |sum: &punctual_engine::meters::Sum| sum.cost_micros as f64 / 1e6;
    counts.attempts.iter().for_each(|(key, sum)| text.value("punctual_llm_cost_usd_total", &agent(key), cost(sum)));

    text.family("punctual_lateness_seconds", "histogram", "How long after it was due a run began, first tries");
    let mut total = 0;
    for (step, count) in counts.lateness.iter().enumerate() {
        total += count;
        let end = LATENESS_STEPS.get(step).map_or("+Inf".to_owned(), f64::to_string);
        text.value("punctual_lateness_seconds_bucket", &[("le", end)], total as f64);
    }
    text.value("punctual_lateness_seconds_sum", &[], counts.lateness_sum);
    text.value("punctual_lateness_seconds_count", &[], total as f64);

    text.family("punctual_runs_at_work", "gauge", "Runs at work on this node");
    text.value("punctual_runs_at_work", &[], counts.at_work() as f64);
    text.family("punctual_runs", "gauge", "Runs of the store that are not over, by state");
    for (state, count) in
        [("planned", live.planned), ("claimed", live.claimed), ("running", live.running), ("waiting", live.waiting)]
    {
        text.value("punctual_runs", &[("state", state.to_owned())], count as f64);
    }
    text.family("punctual_runs_due", "gauge", "Planned runs whose time has come");
    text.value("punctual_runs_due", &[], live.due as f64);
    text.family("punctual_queue_age_seconds", "gauge", "How long the oldest of them has been due");
    let age = live.due_since.map_or(0.0, |since| now.duration_since(since).as_secs_f64());
    text.value("punctual_queue_age_seconds", &[], age);
    text.family("punctual_schedules", "gauge", "Schedules");
    text.value("punctual_schedules", &[], schedules as f64);
    text.family("punctual_journal_entries", "gauge", "The number of the last entry of the journal");
    text.value("punctual_journal_entries", &[], seq as f64);
    text.family("punctual_node_lease_seconds", "gauge", "How long the lease of a node still lasts");
    for node in nodes {
        let left = node.lease_until.duration_since(now).as_secs_f64();
        text.value("punctual_node_lease_seconds", &[("node", node.name.clone())], left);
    }
    text.0
}

struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}").expect("a text takes everything");
    }

    fn value(&mut self, name: &str, labels: &[(&str, String)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.0, "{name}{labels} {value}").expect("a text takes everything");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
