//! Serving: connections are taken until it is time to stop.

use std::io;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Answers requests until `stop`; what has begun is answered to its end.
pub async fn serve(router: Router, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await }).await
}
