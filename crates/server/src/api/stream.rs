//! The journal as it is written: server-sent events, to be taken up again by the number of the last one.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use punctual_core::journal::Entry;
use serde::Deserialize;
use utoipa::IntoParams;

use super::events::{Event, events};
use super::page::after;
use super::run_schedules::RunSchedules;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::Params;
use crate::pulse::Follower;

/// How many entries are read at once.
const PAGE: usize = 200;

/// A line for whatever stands between, so that it does not take silence for the end.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// From where on.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamParams {
    /// Behind this number; what happens from now on when absent. `Last-Event-ID` goes before it.
    #[param(maximum = 9_223_372_036_854_775_807_i64)]
    after: Option<u64>,
}

/// What happens, as it happens.
///
/// Each event has the number of its journal entry as its id: a client that comes again with `Last-Event-ID`, as browsers do,
/// misses nothing. The events of one entry come together.
#[utoipa::path(get, path = "/api/journal/stream", tag = "journal", params(StreamParams), responses(
    (status = 200, description = "Server-sent events", content_type = "text/event-stream", body = Event),
    (status = 403, body = Problem),
))]
pub(crate) async fn journal(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Params(params): Params<StreamParams>,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, ApiError> {
    caller.must_reach_all()?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.trim().parse().ok());
    let after = match after(last.or(params.after))? {
        Some(after) => after,
        None => app.store.head().await?.seq,
    };
    let follower = app.pulse.follow()?;
    let tail = Tail { follower, app, caller, after, ready: vec![], runs: RunSchedules::default() };
    let sent = stream::unfold(tail, |mut tail| async move { tail.next().await.map(|event| (Ok(sent(&event)), tail)) });
    Ok(Sse::new(sent).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn sent(event: &Event) -> Sent {
    let sent = Sent::default().id(event.seq.to_string()).event(event.kind);
    sent.json_data(event).unwrap_or_else(|_| Sent::default().comment("an event that could not be written"))
}

/// The end of the journal, as one client follows it.
struct Tail {
    app: App,
    caller: Caller,
    follower: Follower,
    after: u64,
    /// Events that were read and not sent yet, the next one last.
    ready: Vec<Event>,
    /// Whose the runs are.
    runs: RunSchedules,
}

impl Tail {
    /// The events of entries, each with its schedule.
    async fn events(&mut self, entries: &[Entry]) -> punctual_store::Result<Vec<Event>> {
        let mut all = vec![];
        for entry in entries {
            for mut event in events(entry) {
                self.runs.complete(&mut event, &*self.app.store).await?;
                all.push(event);
            }
            self.runs.learn(entry);
        }
        Ok(all)
    }

    /// The next event; none when the stream has to end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Some(event);
            }
            // Who is not welcome any more hears nothing more.
            let App { store, clock, doors, .. } = &self.app;
            if !doors.still_knows(&**store, &self.caller.token, clock.now(), clock.boot()).await.ok()? {
                return None;
            }
            let entries = self.app.store.entries(self.after, PAGE).await.ok()?;
            if let Some(last) = entries.last() {
                self.after = last.seq;
                self.ready = self.events(&entries).await.ok()?;
                self.ready.reverse();
                continue;
            }
            if !self.follower.hears_more().await {
                return None;
            }
        }
    }
}
