//! The game: two stores at one table, step by step.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_core::journal::Entry;
use punctual_core::run::Run;
use punctual_store::Store;
use punctual_store::memory::MemoryStore;

use super::generate::Generator;
use super::invariants::Checks;
use super::label::labels;
use super::play::{Answer, play};
use super::shrink::shrink;
use super::step::{Op, Read, Step, Which};

/// How many steps are played on one pair of stores: few enough to be shrunk, enough to get anywhere.
pub(super) const STEPS: usize = 500;

/// After so many steps everything is compared that can be read.
pub(super) const LOOK_EVERY: usize = 100;

/// More than there ever is.
pub(super) const ALL: usize = 1_000_000;

/// Who plays: the model, and a store that claims to be like it.
pub(crate) struct Table {
    pub(crate) model: fn() -> MemoryStore,
    pub(crate) other: fn() -> Box<dyn Store>,
}

/// How often each answer and each kind of entry was seen.
pub(crate) type Reached = BTreeMap<String, u64>;

/// Plays so many steps, or as many as the environment says, and panics with a short list of steps that fails.
pub(crate) fn compare(name: &str, table: &Table, steps: usize) -> Reached {
    let (steps, first) = asked_for(steps);
    let mut reached = Reached::new();
    for (seed, played) in (first..).zip((0..steps).step_by(STEPS)) {
        let count = STEPS.min(steps - played);
        let mut game = Game::new(table);
        let mut generator = Generator::new(seed);
        let mut played = vec![];
        for turn in 0..count {
            let step = game.model.look(|state| generator.step(state));
            played.push(step.clone());
            let is_last = turn + 1 == count;
            let result = game.turn(&step, is_last || turn % LOOK_EVERY == 0);
            match result {
                Ok(labels) => labels.into_iter().for_each(|label| *reached.entry(label).or_default() += 1),
                Err(why) => fail(name, table, seed, played, &why),
            }
        }
    }
    println!("{name}: {steps} operations compared, {} kinds of answers", reached.len());
    reached
}

/// How many steps the environment asks for, and with which seed they begin.
pub(super) fn asked_for(steps: usize) -> (usize, u64) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let steps = number("PUNCTUAL_DIFFERENTIAL_OPS").map_or(steps, |number: u64| number as usize);
    (steps, number("PUNCTUAL_DIFFERENTIAL_SEED").unwrap_or(1))
}

/// Shrinks what fails, and tells it.
fn fail(name: &str, table: &Table, seed: u64, played: Vec<Step>, why: &str) -> ! {
    let count = played.len();
    // Shrinking may take long.
    eprintln!("{name}, seed {seed}, step {count} fails, and is shrunk now: {why}");
    // Whoever panics is heard once, not each time that it is tried again.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (steps, reason) = shrink(played, |steps| replay(table, steps));
    std::panic::set_hook(hook);
    let list: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
    panic!(
        "{name}, seed {seed}, step {count}: {why}\n\n{} steps are enough:\n{}\n\n{reason}",
        steps.len(),
        list.join("\n")
    );
}

/// Plays a list, and looks at everything after each step. Why it fails, if it does.
fn replay(table: &Table, steps: &[Step]) -> Option<String> {
    let mut game = Game::new(table);
    steps.iter().find_map(|step| game.turn(step, true).err())
}

pub(super) struct Game {
    pub(super) model: MemoryStore,
    pub(super) other: Box<dyn Store>,
    checks: Checks,
    pub(super) seq: u64,
}

impl Game {
    pub(super) fn new(table: &Table) -> Game {
        Game { model: (table.model)(), other: (table.other)(), checks: Checks::default(), seq: 0 }
    }

    /// Plays one step on both. What it reached, or what is wrong.
    fn turn(&mut self, step: &Step, looks: bool) -> Result<Vec<String>, String> {
        let result = catch_unwind(AssertUnwindSafe(|| self.try_turn(step, looks)));
        result.unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
            Err(format!("a store panicked: {}", words.unwrap_or_default()))
        })
    }

    fn try_turn(&mut self, step: &Step, looks: bool) -> Result<Vec<String>, String> {
        let answer = self.ask_both(step)?;
        let after = self.seq;
        let tail = Op::Read(Read::Entries { after, limit: ALL });
        let Answer::Entries(entries) = self.ask_both(&Step { now: step.now, op: tail })? else {
            return Err("the journal cannot be read".to_owned());
        };
        let entries: Vec<Entry> = entries;
        self.seq = entries.last().map_or(after, |entry| entry.seq);
        let checks = &mut self.checks;
        let labels = self.model.look(|state| {
            checks.check(step, &answer, &entries, state)?;
            Ok::<_, String>(labels(step, &answer, &entries, &state.world))
        })?;
        if looks {
            self.look(step)?;
        }
        Ok(labels)
    }

    /// The same question to both, and their one answer.
    pub(super) fn ask_both(&self, step: &Step) -> Result<Answer, String> {
        let (model, other) = (play(&self.model, step), play(&*self.other, step));
        if model == other {
            return Ok(model);
        }
        Err(format!("{:?}\n{}", step.op, differences(&format!("{model:#?}"), &format!("{other:#?}"))))
    }

    /// Compares everything that can be read, and lets both verify themselves.
    pub(super) fn look(&self, step: &Step) -> Result<(), String> {
        let (schedule, run, after) = (None, None, None);
        let questions = [
            Read::Verify,
            Read::Head,
            Read::Nodes,
            Read::ZoneDays,
            Read::NextPlanAt,
            Read::Schedules { after, limit: ALL },
            Read::ToPlan { zone_data: "2026b", limit: ALL },
            Read::Base,
            Read::Runs { schedule, from: None, until: None, which: Which::All, limit: ALL },
            Read::Runs { schedule, from: None, until: None, which: Which::NotSucceeded, limit: ALL },
            Read::History { schedule, run, offset: 0, limit: ALL },
        ];
        for question in questions {
            let answer = self.ask_both(&Step { now: step.now, op: Op::Read(question) })?;
            if let Answer::Words(differences) = &answer
                && !differences.is_empty()
            {
                return Err(format!("verify finds {differences:#?}"));
            }
            if let Answer::Failed(error) = answer {
                return Err(error);
            }
            if let Answer::Rows(runs) = answer {
                self.look_at_each(step, &runs)?;
            }
        }
        Ok(())
    }
}

impl Game {
    /// Each run is found alone as it is found among all.
    fn look_at_each(&self, step: &Step, runs: &[Run]) -> Result<(), String> {
        for run in runs {
            let question = Read::Run { run: run.id.0.as_u128() };
            let alone = self.ask_both(&Step { now: step.now, op: Op::Read(question) })?;
            if alone != Answer::Rows(vec![run.clone()]) {
                return Err(format!("run {} is {alone:?} alone and {run:?} among all", run.id));
            }
        }
        Ok(())
    }
}

/// The first lines in which two texts differ.
pub(super) fn differences(model: &str, other: &str) -> String {
    let (mut models, mut others) = (model.lines().peekable(), other.lines().peekable());
    let mut count = 0;
    while let (Some(a), Some(b)) = (models.peek(), others.peek())
        && a == b
    {
        models.next();
        others.next();
        count += 1;
    }
    let few = |lines: &mut dyn Iterator<Item = &str>| lines.take(12).collect::<Vec<_>>().join("\n    ");
    let before = model.lines().take(count).collect::<Vec<_>>();
    let before = before[count.saturating_sub(6)..].join("\n    ");
    format!(
        "  after\n    {before}\n  the model has\n    {}\n  the other has\n    {}",
        few(&mut models),
        few(&mut others)
    )
}
