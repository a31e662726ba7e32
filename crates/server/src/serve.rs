//! Serving: connections are taken until it is time to stop.

use std::io;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::routes::router;

/// Answers requests until `stop`, which must be the one that the app's pulse has: what has begun is answered to its end, and
/// streams end.
pub async fn serve(app: App, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
    let pulse = tokio::spawn(app.pulse.clone().beat(app.store.clone(), app.clock.clone()));
    let served = axum::serve(listener, router(app)).with_graceful_shutdown({
        let stop = stop.clone();
        async move { stop.cancelled().await }
    });
    let done = served.await;
    stop.cancel();
    pulse.await.ok();
    done
}
