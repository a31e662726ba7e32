//! Serving: connections are taken until it is time to stop.

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::routes::router;
use crate::tls::{Certificate, TlsListener};

/// Answers requests until `stop`, which must be the one that the app's pulse has: what has begun is answered to its end, and
/// streams end. With a certificate, connections are encrypted.
pub async fn serve(
    app: App,
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    stop: CancellationToken,
) -> io::Result<()> {
    let pulse = tokio::spawn(app.pulse.clone().beat(app.store.clone(), app.clock.clone()));
    let router = router(app);
    let is_over = stop.clone().cancelled_owned();
    let done = match certificate {
        None => axum::serve(listener, router).with_graceful_shutdown(is_over).await,
        Some(certificate) => {
            axum::serve(TlsListener::new(listener, certificate)?, router).with_graceful_shutdown(is_over).await
        }
    };
    stop.cancel();
    pulse.await.ok();
    done
}
