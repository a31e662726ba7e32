//! Steps that come together: a store gets several calls before it has answered the first, and does what it would do if
//! they had come one after the other.

use std::pin::Pin;
use std::task::{Context, Waker};

use punctual_store::conformance::block_on;

use super::dice::Dice;
use super::game::{ALL, Game, LOOK_EVERY, STEPS, Table, asked_for, differences};
use super::generate::Generator;
use super::play::{Answer, call, play};
use super::step::{Op, Read, Step};

/// The most steps that come together.
const TOGETHER_MAX: usize = 12;

/// A call that is under way, what it is, and what the model has answered.
type Call<'a> = (Step, Answer, Pin<Box<dyn Future<Output = Answer> + 'a>>);

/// Plays so many steps, or as many as the environment says, in groups that come together.
pub(crate) fn compare_together(name: &str, table: &Table, steps: usize) {
    let (steps, first) = asked_for(steps);
    for (seed, played) in (first..).zip((0..steps).step_by(STEPS)) {
        let mut game = Game::new(table);
        let (mut generator, mut dice) = (Generator::new(seed), Dice::new(seed));
        let mut turn = 0;
        while turn < STEPS.min(steps - played) {
            let size = 1 + dice.below(TOGETHER_MAX);
            let (count, last) = group(&game, &mut generator, size)
                .and_then(|(count, last)| compare_journals(&mut game, &last).map(|()| (count, last)))
                .unwrap_or_else(|why| panic!("{name}, seed {seed}, step {turn}: {why}"));
            if turn / LOOK_EVERY != (turn + count) / LOOK_EVERY {
                game.look(&last).unwrap_or_else(|why| panic!("{name}, seed {seed}, behind step {turn}: {why}"));
            }
            turn += count;
        }
    }
}

/// Plays one group. How many steps it had, and the last of them.
fn group(game: &Game, generator: &mut Generator, size: usize) -> Result<(usize, Step), String> {
    let mut calls: Vec<Call<'_>> = vec![];
    let mut context = Context::from_waker(Waker::noop());
    let mut last = next(game, generator);
    let mut count = 1;
    while waits_in_line(&last.op) {
        let step = last.clone();
        let mut under_way = Box::pin(async move { call(&*game.other, &game.model, &step).await });
        // Looked at once, it is in line. The model is asked behind it: until then it knows what a caller would know.
        let looked_at = under_way.as_mut().poll(&mut context);
        let answer = play(&game.model, &last);
        match looked_at {
            std::task::Poll::Ready(other) => compare(&last, &answer, &other)?,
            std::task::Poll::Pending => calls.push((last.clone(), answer, under_way)),
        }
        if count == size {
            break;
        }
        last = next(game, generator);
        count += 1;
    }
    for (step, answer, under_way) in calls {
        compare(&step, &answer, &block_on(under_way))?;
    }
    if !waits_in_line(&last.op) {
        game.ask_both(&last)?;
    }
    Ok((count, last))
}

/// The next step. What is let go of the journal depends on which calls share a commit, and only the store knows that.
fn next(game: &Game, generator: &mut Generator) -> Step {
    loop {
        let step = game.model.look(|state| generator.step(state));
        if !matches!(step.op, Op::Prune { .. }) {
            return step;
        }
    }
}

/// Whether a call is carried out behind those that came before it, and nothing else is.
fn waits_in_line(op: &Op) -> bool {
    !matches!(op, Op::Renew(_) | Op::Read(_))
}

fn compare(step: &Step, model: &Answer, other: &Answer) -> Result<(), String> {
    if model == other {
        return Ok(());
    }
    Err(format!("{:?}\n{}", step.op, differences(&format!("{model:#?}"), &format!("{other:#?}"))))
}

/// What was written is the same.
fn compare_journals(game: &mut Game, last: &Step) -> Result<(), String> {
    let tail = Op::Read(Read::Entries { after: game.seq, limit: ALL });
    match game.ask_both(&Step { now: last.now, op: tail })? {
        Answer::Entries(entries) => {
            game.seq = entries.last().map_or(game.seq, |entry| entry.seq);
            Ok(())
        }
        answer => Err(format!("the journal cannot be read: {answer:?}")),
    }
}
