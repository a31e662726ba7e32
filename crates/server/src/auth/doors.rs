//! The doors: which tokens are good, as the store has them, read again from time to time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Token, TokenId};
use punctual_store::{Result, Store};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use super::Secret;

/// How long tokens are good without a look into the store: one that another node takes back works no longer than this.
const FRESH_FOR: Duration = Duration::from_secs(2);

/// How often it is noted that a token is used.
const NOTED_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// So many wrong tokens are answered at once: somebody has mistyped.
const WRONG_FREE: u32 = 5;

/// How long the answer to the next one waits; each one more doubles it.
const WRONG_WAIT: Duration = Duration::from_millis(100);

/// No answer waits longer.
const WRONG_WAIT_MAX: Duration = Duration::from_secs(5);

/// How many wait for the answer to a wrong token at once; the others are answered at once, and have to connect again.
const WRONG_WAITING_MAX: usize = 32;

/// So long without one, and all is forgotten.
const WRONG_KEPT: Duration = Duration::from_secs(60);

/// Which tokens are good, and by which names this server may be called.
#[derive(Debug)]
pub struct Doors {
    hosts: Vec<String>,
    known: Mutex<Known>,
    wrong: Mutex<Wrong>,
    /// Places for those who wait for the answer to a wrong token.
    waiting: Semaphore,
}

/// Tokens that were tried and are none.
#[derive(Debug, Default)]
struct Wrong {
    count: u32,
    /// When the last one came, since the machine was started.
    last_at: Duration,
}

#[derive(Debug, Default)]
struct Known {
    tokens: Vec<Token>,
    /// When they were read, since the machine was started.
    read_at: Option<Duration>,
    used_at: BTreeMap<TokenId, Timestamp>,
}

impl Doors {
    /// Doors of a server that may be called by these names, as `Host` and `Origin` have them.
    pub fn new(hosts: Vec<String>) -> Doors {
        Doors { hosts, known: Mutex::default(), wrong: Mutex::default(), waiting: Semaphore::new(WRONG_WAITING_MAX) }
    }

    /// Whether this server may be called by a name. Names of this machine's own loopback are always its own.
    pub(crate) fn is_host(&self, host: &str) -> bool {
        let name = host.rsplit_once(':').filter(|(_, port)| port.chars().all(|it| it.is_ascii_digit()));
        let name = name.map_or(host, |(name, _)| name).to_ascii_lowercase();
        matches!(name.as_str(), "localhost" | "127.0.0.1" | "[::1]")
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(&name) || own.eq_ignore_ascii_case(host))
    }

    /// Somebody has tried a token that is none: guessing is slow, from wherever it comes. Only so many are kept waiting at once:
    /// each has a connection meanwhile, and others need them more.
    pub(crate) async fn slow_down(&self, boot: Duration) {
        let wait = self.wrong_token(boot);
        if let Ok(_place) = self.waiting.try_acquire() {
            tokio::time::sleep(wait).await;
        }
    }

    /// How long the answer to a wrong token waits. Whoever has a good one is not kept waiting.
    fn wrong_token(&self, boot: Duration) -> Duration {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = WRONG_KEPT < boot.saturating_sub(wrong.last_at);
        wrong.count = if is_over { 1 } else { wrong.count.saturating_add(1) };
        wrong.last_at = boot;
        let doublings = wrong.count.saturating_sub(WRONG_FREE).min(10);
        if doublings == 0 { Duration::ZERO } else { (WRONG_WAIT * 2_u32.pow(doublings - 1)).min(WRONG_WAIT_MAX) }
    }

    /// The token of a secret, if it is good now.
    pub(crate) async fn find(
        &self,
        store: &dyn Store,
        secret: &Secret,
        now: Timestamp,
        boot: Duration,
    ) -> Result<Option<Token>> {
        self.refresh(store, boot).await?;
        let hash = secret.hash();
        let found = {
            let known = self.known();
            // All of them are compared, whichever it is.
            let mut found = None;
            for token in &known.tokens {
                if bool::from(token.hash.as_bytes().ct_eq(hash.as_bytes())) {
                    found = Some(token.clone());
                }
            }
            found.filter(|token| token.is_valid(now))
        };
        if let Some(token) = &found
            && self.is_to_be_noted(token.id, now)
        {
            store.note_used(vec![(token.id, now)]).await?;
        }
        Ok(found)
    }

    /// Whether a token that came in is still good.
    pub(crate) async fn still_knows(
        &self,
        store: &dyn Store,
        token: &Token,
        now: Timestamp,
        boot: Duration,
    ) -> Result<bool> {
        self.refresh(store, boot).await?;
        Ok(token.is_valid(now) && self.known().tokens.iter().any(|it| it.id == token.id))
    }

    async fn refresh(&self, store: &dyn Store, boot: Duration) -> Result<()> {
        let is_fresh = |known: &Known| known.read_at.is_some_and(|read_at| boot.saturating_sub(read_at) < FRESH_FOR);
        if !is_fresh(&self.known()) {
            let tokens = store.tokens().await?.into_iter().map(|record| record.token).collect();
            let mut known = self.known();
            (known.tokens, known.read_at) = (tokens, Some(boot));
        }
        Ok(())
    }

    /// The tokens are read again before the next one is looked for.
    pub(crate) fn tokens_changed(&self) {
        self.known().read_at = None;
    }

    fn is_to_be_noted(&self, id: TokenId, now: Timestamp) -> bool {
        let mut known = self.known();
        let is_due = known.used_at.get(&id).is_none_or(|at| NOTED_EVERY <= now.duration_since(*at).abs());
        if is_due {
            known.used_at.insert(id, now);
        }
        is_due
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_gets_slower_until_it_stops() {
        let doors = Doors::new(vec![]);
        let waits: Vec<u128> = (0..13).map(|at| doors.wrong_token(Duration::from_secs(at)).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(doors.wrong_token(Duration::from_secs(80)), Duration::ZERO);
    }
}
