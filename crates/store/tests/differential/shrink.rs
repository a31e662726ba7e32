//! Shrinking: the shortest list of steps that still fails, as far as leaving steps out can find it.

use super::step::Step;

/// Leaves out what is not needed. `fails` says why a list fails, or that it does not.
pub(crate) fn shrink(steps: Vec<Step>, fails: impl Fn(&[Step]) -> Option<String>) -> (Vec<Step>, String) {
    let mut steps = steps;
    let mut reason = fails(&steps).unwrap_or_else(|| "it does not fail again".to_owned());
    let mut size = steps.len().div_ceil(2);
    while 0 < size {
        let mut from = 0;
        while from < steps.len() {
            let until = (from + size).min(steps.len());
            let mut fewer = steps.clone();
            fewer.drain(from..until);
            match fails(&fewer) {
                Some(why) => (steps, reason) = (fewer, why),
                None => from = until,
            }
        }
        size /= 2;
    }
    (steps, reason)
}
