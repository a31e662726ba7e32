//! Calculations that requests cause, as of the times of a schedule: off the threads that answer, a few at once, in time.
//!
//! Their work is bounded (`core/time/look.rs`); this bounds how much of it there is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tracing::error;

use crate::error::ApiError;

/// How many go on at once.
const PLACES: usize = 2;

/// How many go on or wait at once; more are refused.
const ASKED_MAX: usize = 64;

/// How long one may take, waiting included.
const TIME_MAX: Duration = Duration::from_secs(5);

/// The places that calculations have.
#[derive(Debug, Clone)]
pub struct Calculations {
    places: Arc<Semaphore>,
    asked: Arc<Semaphore>,
}

impl Default for Calculations {
    fn default() -> Calculations {
        Calculations { places: Arc::new(Semaphore::new(PLACES)), asked: Arc::new(Semaphore::new(ASKED_MAX)) }
    }
}

impl Calculations {
    /// Calculates something on a thread of its own. One that is never begun, because its caller has stopped waiting, costs
    /// nothing.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || ApiError::overloaded("too many requests want something calculated; ask again later");
        let _asked = self.asked.try_acquire().map_err(|_| busy())?;
        let calculated = async {
            let place = Arc::clone(&self.places).acquire_owned().await;
            let done = tokio::task::spawn_blocking(move || {
                let done = work();
                drop(place);
                done
            });
            done.await
        };
        match tokio::time::timeout(TIME_MAX, calculated).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => {
                error!(%panic, "a calculation has failed; this is a bug in Punctual");
                Err(ApiError::internal())
            }
            Err(_) => Err(busy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_takes_too_long_is_refused_and_keeps_nobody_from_answering() {
        let calculations = Calculations::default();
        // As many as there are places, that go on until the test says so.
        let (ends, mut going_on) = (vec![(); PLACES], vec![]);
        let ends: Vec<mpsc::Sender<()>> = ends
            .into_iter()
            .map(|()| {
                let (end, has_ended) = mpsc::channel::<()>();
                let calculations = calculations.clone();
                going_on.push(tokio::spawn(async move { calculations.run(move || has_ended.recv().is_ok()).await }));
                end
            })
            .collect();
        while calculations.places.available_permits() != 0 {
            tokio::task::yield_now().await;
        }
        let refused = calculations.run(|| ()).await.expect_err("there is no place in time");
        assert_eq!(refused.status(), 503);
        for (end, going_on) in ends.iter().zip(going_on) {
            // Those took too long themselves.
            assert_eq!(going_on.await.expect("it does not panic").expect_err("it took too long").status(), 503);
            end.send(()).expect("it goes on all the same");
        }
        calculations.run(|| ()).await.expect("there are places again");
    }

    #[tokio::test]
    async fn a_panic_is_the_requests_own() {
        let calculations = Calculations::default();
        let failed = calculations.run(|| panic!("this is a test")).await.map(|(): ()| ());
        assert_eq!(failed.expect_err("it panics").status(), 500);
        calculations.run(|| ()).await.expect("others go on");
    }
}
