//! Shrinking: the shortest list of steps that still fails, as far as leaving things out can find it.

use super::step::{Op, Step, Write};

/// Leaves out what is not needed: steps, then parts of steps. `fails` says why a list fails, or that it does not.
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
    let mut place = 0;
    while place < steps.len() {
        let simpler = simpler(&steps[place]).into_iter().find_map(|step| {
            let mut other = steps.clone();
            other[place] = step;
            let why = fails(&other)?;
            Some((other, why))
        });
        match simpler {
            Some((other, why)) => (steps, reason) = (other, why),
            None => place += 1,
        }
    }
    (steps, reason)
}

/// A step with one part less, in every way.
fn simpler(step: &Step) -> Vec<Step> {
    let ops: Vec<Op> = match &step.op {
        Op::Plan(writes) => {
            let fewer = without_one(writes).into_iter().map(Op::Plan);
            let less = writes.iter().enumerate().flat_map(|(place, write)| {
                simpler_writes(write).into_iter().map(move |write| {
                    let mut writes = writes.clone();
                    writes[place] = write;
                    Op::Plan(writes)
                })
            });
            fewer.chain(less).collect()
        }
        Op::Settle(settled) => without_one(settled).into_iter().map(Op::Settle).collect(),
        Op::Finish(finished) => without_one(finished).into_iter().map(Op::Finish).collect(),
        _ => vec![],
    };
    ops.into_iter().map(|op| Step { now: step.now, op }).collect()
}

fn simpler_writes(write: &Write) -> Vec<Write> {
    let mut writes = vec![];
    writes.extend(without_one(&write.skips).into_iter().map(|skips| Write { skips, ..write.clone() }));
    writes.extend(without_one(&write.cancelled).into_iter().map(|cancelled| Write { cancelled, ..write.clone() }));
    let Some(plan) = &write.plan else { return writes };
    let mut plans = vec![];
    plans.extend(without_one(&plan.runs).into_iter().map(|runs| super::step::Planned { runs, ..plan.clone() }));
    plans.extend(without_one(&plan.moved).into_iter().map(|moved| super::step::Planned { moved, ..plan.clone() }));
    let withdrawn = without_one(&plan.withdrawn).into_iter();
    plans.extend(withdrawn.map(|withdrawn| super::step::Planned { withdrawn, ..plan.clone() }));
    writes.extend(plans.into_iter().map(|plan| Write { plan: Some(plan), ..write.clone() }));
    writes
}

/// A list with one item less, in every way.
fn without_one<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let without = |place: usize| items.iter().take(place).chain(&items[place + 1..]).cloned().collect();
    (0..items.len()).map(without).collect()
}
