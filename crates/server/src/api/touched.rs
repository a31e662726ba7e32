//! Who had a hand in a run: the journal knows which entries are about it.

use punctual_core::journal::{Body, Entry};
use punctual_core::run::{Run, RunEvent};
use punctual_engine::why::Touched;

use crate::app::App;
use crate::error::ApiError;

/// How many entries about a run are looked at. What lies further off is not told.
const LOOKED_AT: usize = 100;

/// Who requested a run, approved it and stopped it, as far as somebody did.
pub(crate) async fn touched(app: &App, run: &Run) -> Result<Touched, ApiError> {
    let entries = app.store.about(&[run.id.0], LOOKED_AT).await?;
    // The latest of each comes first.
    let by = |is_meant: fn(&Body) -> bool| {
        let meant = entries.iter().find(|entry: &&Entry| is_meant(&entry.body));
        meant.and_then(|entry| entry.body.by().cloned())
    };
    Ok(Touched {
        asked: by(|body| matches!(body, Body::RunAsked { .. })),
        approved: by(|body| matches!(event_of(body), Some(RunEvent::Resumed { .. }))),
        stopped: by(|body| matches!(event_of(body), Some(RunEvent::CancelAsked | RunEvent::Cancelled))),
    })
}

fn event_of(body: &Body) -> Option<&RunEvent> {
    match body {
        Body::RunChanged(change) => Some(&change.event),
        _ => None,
    }
}
