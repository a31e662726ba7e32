//! What many histories add up to.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::faults::{Fault, FaultCounts};
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
        let faults: Map<String, Value> = Fault::ALL
            .iter()
            .map(|fault| (json!(fault).as_str().unwrap_or_default().to_owned(), json!(self.faults.of(*fault))))
            .collect();
        let violations: Vec<Value> = self.failures.iter().map(|history| {
            json!({"seed": history.seed, "violation": history.violation.as_ref().map(ToString::to_string)})
        }).collect();
        json!({
            "seeds": self.seeds,
            "runs": self.runs,
            "starts": self.starts,
            "faults": self.faults.total(),
            "faults_by_class": faults,
            "simulated_days": self.lasted.as_secs() / 86_400,
            "violations": violations,
            "seeds_per_min": self.per_minute(took),
        })
    }

    /// How many seeds a minute brings.
    pub fn per_minute(&self, took: Duration) -> u64 {
        (self.seeds as f64 * 60.0 / took.as_secs_f64().max(0.001)) as u64
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(violation) = &self.violation else {
            return write!(f, "seed {}: {} runs, {} faults, all well", self.seed, self.runs, self.faults.total());
        };
        writeln!(f, "seed {}: {violation}", self.seed)?;
        self.last_lines.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        write!(f, "  replay: cargo xtask sim --seed {}", self.seed)
    }
}
