//! What a run prints: as far as it is kept, and as it comes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_store::PrintedPiece;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::executions::{find, run_or_slot};
use super::output_tail;
use super::page::after;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Id, Params};
use crate::pulse::Follower;

/// How many pieces are read at once.
const PAGE: usize = 500;

/// How soon a follower sees what was printed.
const LOOK_EVERY: SignedDuration = SignedDuration::from_millis(250);

/// How long what a run printed at its end may take to arrive.
const LAST_WORDS: SignedDuration = SignedDuration::from_secs(1);

/// A line for whatever stands between, so that it does not take silence for the end.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// From where on.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutputParams {
    /// Behind this number. In a stream, `Last-Event-ID` goes before it.
    #[param(maximum = 9_223_372_036_854_775_807_i64)]
    after: Option<u64>,
}

/// What a run has printed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutputView {
    /// In the order in which it came, 500 at most.
    items: Vec<PieceView>,
    /// Whether something is missing: only the end of each attempt is kept.
    is_cut: bool,
    /// Whether the run is over and all is here.
    is_over: bool,
    /// Whether the output itself is not kept any more, or did not come along with an import: this is the end of each attempt, as
    /// history has it, with its errors behind a line `[stderr]` if it failed.
    is_from_history: bool,
}

/// A piece of what a run has printed: whole lines, as far as there are any.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PieceView {
    seq: u64,
    /// Which try printed it.
    attempt: u32,
    /// `stdout` or `stderr`.
    #[schema(value_type = String, example = "stdout")]
    stream: punctual_store::Stream,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    text: String,
}

impl From<PrintedPiece> for PieceView {
    fn from(printed: PrintedPiece) -> PieceView {
        let PrintedPiece { seq, piece } = printed;
        PieceView { seq, attempt: piece.attempt, stream: piece.stream, at: piece.at, text: piece.text }
    }
}

/// What a run has printed, as far as it is kept: the end of each attempt, for a week; after that, what history has of it.
#[utoipa::path(get, path = "/api/executions/{executionId}/output", tag = "executions",
    params(("executionId" = uuid::Uuid, Path), OutputParams), responses(
        (status = 200, body = OutputView),
        (status = 404, body = Problem),
    ))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    Params(params): Params<OutputParams>,
) -> Result<Json<OutputView>, ApiError> {
    let run = run_or_slot(&app, id).await?;
    let is_final = run.as_ref().is_none_or(|run| run.ended_at.is_some());
    // Output outlives its run, and history outlives both.
    let tails = if is_final { output_tail::of_run(&app, &caller, id).await? } else { None };
    if tails.is_none() {
        find(&app, &caller, id).await?;
    }
    let pieces = app.store.printed(id, after(params.after)?.unwrap_or(0), PAGE).await?;
    let has_all = pieces.len() < PAGE;
    let ended_at = run.map_or(Some(Timestamp::MIN), |run| run.ended_at);
    let was_quiet = ended_at.is_some_and(|at| at.saturating_add(LAST_WORDS).is_ok_and(|until| until < app.now()));
    if let Some(tails) = tails.filter(|tails| params.after.is_none() && pieces.is_empty() && !tails.pieces.is_empty()) {
        let items = tails.pieces.into_iter().map(PieceView::from).collect();
        return Ok(Json(OutputView { items, is_cut: tails.is_cut, is_over: true, is_from_history: true }));
    }
    Ok(Json(OutputView {
        is_cut: params.after.is_none() && is_cut(&pieces),
        is_over: has_all && was_quiet,
        is_from_history: false,
        items: pieces.into_iter().map(PieceView::from).collect(),
    }))
}

/// Whether something was left out before or between pieces: each says how much had been printed behind it.
fn is_cut(pieces: &[PrintedPiece]) -> bool {
    let mut lengths: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for PrintedPiece { piece, .. } in pieces {
        let (end, length) = lengths.entry(piece.epoch).or_default();
        *end = piece.ends_at.max(*end);
        *length += piece.text.len() as u64;
    }
    lengths.values().any(|(end, length)| length < end)
}

/// What a run prints, as it comes: events `output`, and `over` when the run is over and all was sent.
///
/// Each has its number as its id: a client that comes again with `Last-Event-ID`, as browsers do, misses nothing.
#[utoipa::path(get, path = "/api/executions/{executionId}/output/stream", tag = "executions",
    params(("executionId" = uuid::Uuid, Path), OutputParams), responses(
        (status = 200, description = "Server-sent events", content_type = "text/event-stream", body = PieceView),
        (status = 404, body = Problem),
    ))]
pub(crate) async fn follow(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Id(id): Id<RunId>,
    Params(params): Params<OutputParams>,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, ApiError> {
    if app.store.run(id).await?.is_some() || output_tail::of_run(&app, &caller, id).await?.is_none() {
        find(&app, &caller, id).await?;
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.trim().parse().ok());
    let after = after(last.or(params.after))?.unwrap_or(0);
    let tail = Tail { follower: app.pulse.follow()?, app, caller, id, after, ready: vec![], is_over: false };
    let sent = stream::unfold(tail, |mut tail| async move { tail.next().await.map(|event| (Ok(event), tail)) });
    Ok(Sse::new(sent).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// What one client has seen of a run.
struct Tail {
    app: App,
    caller: Caller,
    follower: Follower,
    id: RunId,
    after: u64,
    /// Pieces that were read and not sent yet, the next one last.
    ready: Vec<PrintedPiece>,
    is_over: bool,
}

impl Tail {
    /// The next event; none when the stream has to end.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some(printed) = self.ready.pop() {
                self.after = printed.seq;
                let sent = Sent::default().id(printed.seq.to_string()).event("output");
                return sent.json_data(PieceView::from(printed)).ok();
            }
            if self.is_over {
                return None;
            }
            // Who is not welcome any more hears nothing more.
            let App { store, clock, doors, .. } = &self.app;
            if !doors.still_knows(&**store, &self.caller.token, clock.now(), clock.boot()).await.ok()? {
                return None;
            }
            // The state is read first: what was printed before the end is there when the end is.
            let run = run_or_slot(&self.app, self.id).await.ok()?;
            let pieces = store.printed(self.id, self.after, PAGE).await.ok()?;
            if !pieces.is_empty() {
                self.ready = pieces;
                self.ready.reverse();
                continue;
            }
            let ended_at = run.map_or(Some(Timestamp::MIN), |run| run.ended_at);
            if ended_at.is_some_and(|at| at.saturating_add(LAST_WORDS).is_ok_and(|until| until < clock.now())) {
                self.is_over = true;
                return Some(Sent::default().event("over").data("{}"));
            }
            if !self.follower.waits_until(&**clock, clock.now() + LOOK_EVERY).await {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_store::{Piece, Stream};

    use super::*;

    fn pieces(pieces: &[(u64, u64, &str)]) -> Vec<PrintedPiece> {
        let piece = |(seq, (epoch, ends_at, text)): (u64, &(u64, u64, &str))| PrintedPiece {
            seq,
            piece: Piece {
                run: RunId(uuid::Uuid::nil()),
                epoch: *epoch,
                attempt: 1,
                stream: Stream::Stdout,
                at: Timestamp::UNIX_EPOCH,
                ends_at: *ends_at,
                text: (*text).to_owned(),
            },
        };
        (1..).zip(pieces).map(piece).collect()
    }

    #[test]
    fn what_is_missing_is_noticed() {
        assert!(!is_cut(&pieces(&[])));
        assert!(!is_cut(&pieces(&[(1, 3, "abc"), (1, 6, "def"), (2, 2, "x\n")])));
        // A byte that was no text became a longer one.
        assert!(!is_cut(&pieces(&[(1, 1, "\u{fffd}")])));
        assert!(is_cut(&pieces(&[(1, 13, "abc"), (1, 16, "def")])));
        assert!(is_cut(&pieces(&[(1, 3, "abc"), (1, 16, "def")])));
        assert!(is_cut(&pieces(&[(1, 3, "abc"), (2, 9, "def")])));
    }
}
