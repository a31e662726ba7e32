//! Batches: what is written together, and one by one where one of them cannot be written.
//!
//! In: items and a call of the store for all of them. Out: one answer for each. Invariant: an item that the store refuses for a
//! lasting reason holds up none of the others; when only the moment is to blame, nothing is split and the whole call fails.

use punctual_store::{Result, StoreError};

/// Writes items with one call. If the store refuses that for a lasting reason ([`StoreError::is_lasting`]), each has a call of its
/// own, in order, and the reason is the answer of those that are refused.
///
/// # Errors
/// What is not lasting: items may have been written one by one before, and are written again with the next call.
pub(crate) async fn write<T: Clone, A, F: Future<Output = Result<Vec<A>>>>(
    items: &[T],
    call: impl Fn(Vec<T>) -> F,
) -> Result<Vec<Result<A>>> {
    if items.is_empty() {
        return Ok(vec![]);
    }
    match call(items.to_vec()).await {
        Ok(answers) => return Ok(answers.into_iter().map(Ok).collect()),
        Err(error) if !error.is_lasting() => return Err(error),
        Err(error) if items.len() == 1 => return Ok(vec![Err(error)]),
        Err(_) => {}
    }
    let mut answers = Vec::with_capacity(items.len());
    for item in items {
        match call(vec![item.clone()]).await {
            Ok(one) => answers.extend(one.into_iter().map(Ok)),
            Err(error) if error.is_lasting() => answers.push(Err(error)),
            Err(error) => return Err(error),
        }
    }
    Ok(answers)
}

/// What an error says, with its cause.
pub(crate) fn in_words(error: &StoreError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use punctual_store::conformance::block_on;

    use super::*;

    fn refused() -> StoreError {
        StoreError::Database { doing: "testing", source: "it is odd".into() }
    }

    /// Doubles even numbers. Odd ones are refused, with whatever comes with them; 0 finds nobody.
    async fn double(calls: &Mutex<Vec<Vec<u32>>>, items: Vec<u32>) -> Result<Vec<u32>> {
        calls.lock().unwrap().push(items.clone());
        if items.contains(&0) {
            return Err(StoreError::DiskFull);
        }
        if items.iter().any(|item| item % 2 == 1) {
            return Err(refused());
        }
        Ok(items.iter().map(|item| item * 2).collect())
    }

    #[track_caller]
    fn check(items: &[u32], expected: Result<&[Option<u32>], ()>, calls_expected: usize) {
        let calls = Mutex::default();
        let written = block_on(write(items, |items| double(&calls, items)));
        let written = written.map(|answers| answers.into_iter().map(Result::ok).collect::<Vec<_>>());
        assert_eq!(written.map_err(drop), expected.map(<[_]>::to_vec));
        assert_eq!(calls.lock().unwrap().len(), calls_expected);
    }

    #[test]
    fn what_can_be_written_is_written_with_one_call() {
        check(&[2, 4], Ok(&[Some(4), Some(8)]), 1);
        check(&[], Ok(&[]), 0);
    }

    #[test]
    fn one_that_is_refused_holds_up_none_of_the_others() {
        check(&[2, 3, 4], Ok(&[Some(4), None, Some(8)]), 4);
        check(&[3, 5], Ok(&[None, None]), 3);
        check(&[3], Ok(&[None]), 1);
    }

    #[test]
    fn when_the_moment_is_to_blame_nothing_is_split() {
        check(&[2, 0, 4], Err(()), 1);
        check(&[0], Err(()), 1);
    }

    #[test]
    fn a_moment_that_comes_in_between_ends_it() {
        let calls = Mutex::new(0);
        let written = block_on(write(&[1, 2, 3], |items: Vec<u32>| {
            *calls.lock().unwrap() += 1;
            std::future::ready(match items[..] {
                [2] => Err(StoreError::DiskFull),
                [item] => Ok(vec![item]),
                _ => Err(refused()),
            })
        }));
        assert!(matches!(written, Err(StoreError::DiskFull)));
        assert_eq!(*calls.lock().unwrap(), 3);
    }
}
