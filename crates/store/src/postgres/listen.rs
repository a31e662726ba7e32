//! Listening: hints from other nodes that something has changed.
//!
//! A hint saves waiting for the next look, and nothing more: one that is lost, or a listener that is dead, costs that wait.
//! Behind a pooler that changes connections none ever comes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio_postgres::AsyncMessage;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, NoTls, Socket};
use tracing::debug;

use super::connect::Address;
use super::fault::Done;
use crate::requests::Hint;
use punctual_kernel::transaction::{Changes, Line};

/// Whom to tell.
pub(super) type Told = Arc<dyn Fn(Hint) + Send + Sync>;

/// Those who want to be told.
#[derive(Clone, Default)]
pub(super) struct Listeners(Arc<Mutex<Vec<Told>>>);

/// How long to rest before listening again.
const REST: Duration = Duration::from_secs(2);

impl Listeners {
    pub(super) fn add(&self, told: Told) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }

    fn tell(&self, hint: Hint) {
        let listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listeners.iter().for_each(|told| told(hint));
    }

    /// Listens for ever, on a connection of its own.
    pub(super) async fn listen(self, address: Address) {
        loop {
            let heard = match address.connector() {
                Ok(None) => self.hear(&address.config, NoTls).await,
                Ok(Some(tls)) => self.hear(&address.config, tls).await,
                Err(error) => return debug!("nobody listens: {error}"),
            };
            if let Err(fault) = heard {
                debug!("the listener is gone, and comes back: {fault}");
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn hear<T>(&self, config: &Config, tls: T) -> Done<()>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (client, mut connection) = config.connect(tls).await?;
        let mut messages = poll_fn(move |context| connection.poll_message(context)).boxed();
        let (mut schema, mut is_listening) = (None, false);
        let begin = async {
            let schema = client.query_typed_one("SELECT current_schema()::text", &[]).await?.get::<_, String>(0);
            client.batch_execute("LISTEN punctual").await?;
            Ok::<_, tokio_postgres::Error>(schema)
        };
        tokio::pin!(begin);
        loop {
            tokio::select! {
                biased;
                begun = &mut begin, if !is_listening => {
                    (schema, is_listening) = (Some(begun?), true);
                    // What was said before anybody listened is looked for once.
                    self.tell(Hint { plan: true, runs: true, stops: true });
                }
                message = messages.next() => match message {
                    None => return Ok(()),
                    Some(Ok(AsyncMessage::Notification(said))) => {
                        if let Some((of, hint)) = said.payload().split_once(' ')
                            && schema.as_deref() == Some(of)
                        {
                            self.tell(read(hint));
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.into()),
                },
            }
        }
    }
}

/// The statement that tells the others what a transaction means for them, if anything.
pub(super) fn notification(changes: &Changes) -> Option<String> {
    let mut words = String::new();
    let kinds = || changes.lines.iter().map(|line| line.kind);
    let is_said = |kind: &str| kinds().any(|it| it == kind);
    if is_said("schedule_changed") || is_said("schedule_deleted") || is_said("planner_taken") {
        words.push('p');
    }
    // A run that may be claimed, or a place that is free.
    let frees = |kind: &str| matches!(kind, "planned" | "run_asked" | "attempt_ended" | "run_changed" | "node_left");
    if kinds().any(frees) {
        words.push('r');
    }
    // Whoever is woken for nothing looks once.
    let is_called_off = |line: &Line| line.kind == "run_changed" && line.text.change.contains("\"cancel_asked\"");
    if changes.lines.iter().any(is_called_off) {
        words.push('s');
    }
    (!words.is_empty()).then(|| format!("SELECT pg_notify('punctual', current_schema() || ' {words}')"))
}

fn read(words: &str) -> Hint {
    let has = |word| words.contains(word);
    Hint { plan: has('p'), runs: has('r'), stops: has('s') }
}
