//! What many histories add up to.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::FaultCounts;
use crate::history::History;

/// The sum of many histories.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How many seeds.
    pub seeds: u64,
    /// How often each fault struck.
    pub faults: FaultCounts,
    /// How many runs there were.
    pub runs: u64,
    /// How often work began.
    pub starts: u64,
    /// How long it all took, in simulated time.
    pub lasted: Duration,
    /// Histories that were not as they must be.
    pub failures: Vec<History>,
}

impl Report {
    /// Takes in a history.
    pub fn add(&mut self, history: History) {
        self.seeds += 1;
        self.faults.merge(&history.faults);
        self.runs += history.runs;
        self.starts += history.starts;
        self.lasted += history.lasted;
        if history.violation.is_some() {
            self.failures.push(history);
        }
    }

    /// Takes in another report.
    pub fn merge(&mut self, other: Report) {
        self.seeds += other.seeds;
        self.faults.merge(&other.faults);
        self.runs += other.runs;
        self.starts += other.starts;
        self.lasted += other.lasted;
        self.failures.extend(other.failures);
        self.failures.sort_by_key(|history| history.seed);
    }

    /// For programs. `took` is how long it took to make.
    pub fn json(&self, took: Duration) -> Value {
        let failure = |history: &History| {
            let violation = history.violation.as_ref();
            json!({
                "seed": history.seed,
                "rule": violation.map(|it| it.rule),
                "what": violation.map(|it| &it.what),
                "replay": history.replay(),
            })
        };
        json!({
            "seeds": self.seeds,
            "faults": self.faults.total(),
            "violations": self.failures.len(),
            "seeds_per_min": self.per_minute(took),
            "failures": self.failures.iter().map(failure).collect::<Vec<Value>>(),
        })
    }

    /// How many seeds a minute brings.
    pub fn per_minute(&self, took: Duration) -> u64 {
        (self.seeds as f64 * 60.0 / took.as_secs_f64().max(0.001)) as u64
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let History { seed, runs, trace_hash, .. } = self;
        let Some(violation) = &self.violation else {
            let faults = self.faults.total();
            return write!(f, "seed {seed}: {runs} runs, {faults} faults, trace {trace_hash:016x}, all well");
        };
        writeln!(f, "seed {seed}: {violation}")?;
        self.last_lines.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        write!(f, "  replay: {}", self.replay())
    }
}
