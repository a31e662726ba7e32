//! Who had a hand in a run: looked up in the journal, near the times at which it happened.

use jiff::{SignedDuration, Timestamp};
use punctual_core::By;
use punctual_core::journal::{Body, Entry};
use punctual_core::run::{Outcome, Run, RunEvent, RunState};
use punctual_engine::why::Touched;

use crate::app::App;
use crate::error::ApiError;

/// How many entries are looked at. On a busy store, what lies further off is not found, and not told.
const LOOKED_AT: usize = 5_000;

/// Clocks of several nodes agree to this.
const AROUND: SignedDuration = SignedDuration::from_secs(5);

/// Who asked for a run, approved it and stopped it. Only what may have happened to such a run is looked for.
pub(crate) async fn touched(app: &App, run: &Run) -> Result<Touched, ApiError> {
    let mut touched = Touched::default();
    if run.key.is_manual() {
        let from = before(app, run.scheduled_at - AROUND).await?;
        let entries = app.store.entries(from, LOOKED_AT).await?;
        touched.asked = entries.iter().find(|entry| entry.body.run() == Some(run.id)).and_then(by);
    }
    let is_cancelled = matches!(run.state, RunState::Finished { outcome: Outcome::Cancelled, .. });
    // A claim that counted no attempt may have been sent to wait for an approval.
    let may_have_waited = u64::from(run.state.tally().attempt) < run.epoch();
    if may_have_waited || run.is_cancelling || is_cancelled {
        let end = before(app, run.ended_at.unwrap_or_else(|| app.now()) + AROUND).await?;
        let from = before(app, run.due_at - AROUND).await?.max(end.saturating_sub(LOOKED_AT as u64));
        for entry in app.store.entries(from, LOOKED_AT).await? {
            let Body::RunChanged(change) = &entry.body else { continue };
            match change.event {
                RunEvent::Resumed { .. } if change.run == run.id => touched.approved = by(&entry),
                RunEvent::CancelAsked | RunEvent::Cancelled if change.run == run.id => touched.stopped = by(&entry),
                _ => {}
            }
        }
    }
    Ok(touched)
}

fn by(entry: &Entry) -> Option<By> {
    entry.body.by().cloned()
}

/// The number of the last entry that was written before an instant, found by halving.
async fn before(app: &App, at: Timestamp) -> Result<u64, ApiError> {
    let first = app.store.entries(0, 1).await?;
    let Some(mut low) = first.first().map(|entry| entry.seq.saturating_sub(1)) else { return Ok(0) };
    let mut high = app.store.head().await?.seq;
    while low < high {
        let middle = low + (high - low) / 2;
        match app.store.entries(middle, 1).await?.first() {
            Some(entry) if entry.at < at => low = entry.seq,
            _ => high = middle,
        }
    }
    Ok(low)
}
