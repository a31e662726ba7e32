//! What history has of what a run printed: the end of each attempt, for as long as the journal is kept.
//!
//! Output has a table of its own that is emptied sooner and that an export does not carry.

use punctual_core::RunId;
use punctual_store::{HistoryFilter, HistoryItem, HistoryWhat, Piece, PrintedPiece, Stream};

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// The most entries of one run that are looked at.
const LOOKED_AT: usize = 200;

/// What is left of a run's output.
pub(super) struct Tails {
    /// The end of each attempt that printed something, in the order of attempts.
    pub(super) pieces: Vec<PrintedPiece>,
    /// Whether an attempt printed more than that.
    pub(super) is_cut: bool,
}

/// What history has; none, if it does not know the run, or the run is not for whoever asks.
pub(super) async fn of_run(app: &App, caller: &Caller, id: RunId) -> Result<Option<Tails>, ApiError> {
    let filter =
        HistoryFilter { run: Some(id), projects: caller.projects(), limit: LOOKED_AT, ..HistoryFilter::default() };
    let items = app.store.history(&filter).await?;
    Ok((!items.is_empty()).then(|| tails(id, &items)))
}

/// `items` are as history has them: latest first.
fn tails(run: RunId, items: &[HistoryItem]) -> Tails {
    let mut tails = Tails { pieces: vec![], is_cut: items.len() == LOOKED_AT };
    for item in items.iter().rev() {
        let HistoryWhat::Attempt(attempt) = &item.what else { continue };
        let report = &attempt.report;
        tails.is_cut |= (report.output.len() as u64) < report.output_bytes;
        if report.output.is_empty() {
            continue;
        }
        tails.pieces.push(PrintedPiece {
            seq: tails.pieces.len() as u64 + 1,
            piece: Piece {
                run,
                epoch: attempt.epoch,
                attempt: attempt.attempt,
                // History has both in one text, and says there where errors begin.
                stream: Stream::Stdout,
                at: item.at,
                ends_at: report.output_bytes,
                text: report.output.clone(),
            },
        });
    }
    tails
}
