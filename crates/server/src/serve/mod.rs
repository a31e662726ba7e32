//! Serving: connections are taken until it is time to stop, no more of them and for no longer than the limits say.
//!
//! In: a listener. Out: answers. Invariant: whatever clients do or do not do, the server keeps the descriptors that its runs need,
//! and stops within [`STOP_WITHIN`].

mod connections;
mod deadline;

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use punctual_store::catch_panic;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{debug, error, warn};

use self::connections::{Busy, Connections, Place};
use self::deadline::WriteDeadline;
use crate::app::App;
use crate::error::ApiError;
use crate::routes::router;
use crate::tls::Certificate;

/// How long a server that stops waits for requests that have begun.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The rest after a connection could not be taken for a reason that is not its own.
const ACCEPT_AGAIN: Duration = Duration::from_millis(500);

/// The largest head of a request.
const HEAD_MAX: usize = 64 * 1024;

/// How many connections a server takes, and how long clients may be silent.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// How many there may be in all.
    pub connections: usize,
    /// How many there may be from one address; no limit behind a proxy, which is one address for everybody.
    pub per_address: Option<usize>,
    /// Whether clients on this machine may have as many as there are: a proxy, scripts, people.
    pub spares_loopback: bool,
    /// How long a connection may be open without the whole head of a request.
    pub idle: Duration,
    /// How long a client may leave what was sent to it unread.
    pub write: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        let patience = Duration::from_secs(30);
        ConnectionLimits {
            connections: 512,
            per_address: Some(128),
            spares_loopback: true,
            idle: patience,
            write: patience,
        }
    }
}

/// Answers requests until `stop`, which must be the one that the app's pulse has: what has begun is answered to its end if that
/// comes soon, and streams end. With a certificate, connections are encrypted.
pub async fn serve(
    app: App,
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    limits: ConnectionLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let panicked = |why| io::Error::other(format!("it has panicked: {why}; this is a bug in Punctual"));
    let beats = catch_panic(app.pulse.clone().beat(app.store.clone(), app.clock.clone()));
    let takes = take_connections(listener, certificate, router(app), limits, stop.clone());
    tokio::try_join!(async { beats.await.map_err(panicked) }, async {
        takes.await;
        Ok(())
    })?;
    Ok(())
}

async fn take_connections(
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let connections = Connections::new(limits);
    let mut tasks = JoinSet::new();
    loop {
        let taken = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = tasks.join_next() => {
                report(ended);
                continue;
            }
            taken = async {
                connections.room().await;
                listener.accept().await
            } => taken,
            // Files that are wrong are told when they are written, not when the next client comes.
            () = Certificate::time_to_look(certificate.as_deref()) => continue,
        };
        let (stream, from) = match taken {
            Ok(taken) => taken,
            Err(error) if is_of_one_client(&error) => continue,
            Err(error) => {
                error!(%error, "no connection can be taken at the moment");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(ACCEPT_AGAIN) => continue,
                }
            }
        };
        let Some(place) = connections.admit(from.ip(), Instant::now()) else {
            refuse(&stream);
            continue;
        };
        let (certificate, router, stop) = (certificate.clone(), router.clone(), stop.clone());
        tasks.spawn(async move {
            match certificate {
                None => converse(stream, place, router, limits, stop).await,
                Some(certificate) => {
                    let agreed = tokio::select! {
                        biased;
                        () = place.closed() => return,
                        agreed = certificate.agree(stream, from) => agreed,
                    };
                    if let Some(stream) = agreed {
                        converse(stream, place, router, limits, stop).await;
                    }
                }
            }
        });
    }
    drop(listener);
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(STOP_WITHIN, all).await.is_err() {
        warn!("{} connections are cut: their requests did not end within {STOP_WITHIN:?}", tasks.len());
        tasks.shutdown().await;
    }
}

/// A panic while a request is answered is that request's own.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended.map_err(tokio::task::JoinError::try_into_panic)
        && let Ok(panic) = error
    {
        let why = punctual_store::panic_text(panic.as_ref());
        error!("a request could not be answered: a panic: {why}; this is a bug in Punctual");
    }
}

/// Whether taking a connection failed because its client has gone already.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Says that there is no place, as far as that goes without waiting. Over TLS the client sees that the connection ends.
fn refuse(stream: &TcpStream) {
    let problem = ApiError::too_many_connections().to_json().to_string();
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{problem}",
        problem.len()
    );
    stream.try_write(text.as_bytes()).ok();
}

/// Answers the requests of one connection until it ends, has to give way, or the server stops.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    place: Place,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let handle = place.handle();
    let service = service_fn(move |request: Request<Incoming>| {
        let (busy, router) = (handle.busy(), router.clone());
        async move {
            let response: Response<Body> = router.oneshot(request.map(Body::new)).await?;
            Ok::<_, Infallible>(response.map(|body| Answer { body, _busy: busy }))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.idle).max_buf_size(HEAD_MAX);
    let stream = TokioIo::new(WriteDeadline::new(stream, limits.write));
    let mut connection = pin!(http.serve_connection(stream, service));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            biased;
            () = place.closed() => return,
            () = stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%error, "a connection has ended");
                }
                return;
            }
        }
    }
}

/// The body of an answer. As long as it is there, its connection is busy.
struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
