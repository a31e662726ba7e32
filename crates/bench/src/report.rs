//! What is printed: one line of JSON for each measurement, the same keys in each.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::measure::Spread;

/// One measurement. What has no meaning for its workload is null.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Measurement {
    /// What was measured.
    pub(crate) workload: String,
    /// On which kind of database.
    pub(crate) database: String,
    /// How many nodes worked.
    pub(crate) nodes: usize,
    /// How many runs, schedules or requests it was about.
    pub(crate) runs: u64,
    /// How many of them a second.
    pub(crate) runs_per_s: Option<f64>,
    /// How many plain SQL did in the same run of the program.
    pub(crate) limit_per_s: Option<f64>,
    /// The first by the second.
    pub(crate) share: Option<f64>,
    /// Lateness, or how long a request took.
    pub(crate) p50_ms: Option<f64>,
    /// The same: of a hundred, one is above it.
    pub(crate) p99_ms: Option<f64>,
    /// The same: the largest.
    pub(crate) max_ms: Option<f64>,
    /// Processor time of this process for each run; a database server's is not in it.
    pub(crate) cpu_us_per_run: Option<f64>,
    /// Resident memory of the process.
    pub(crate) rss_mb: Option<f64>,
    /// What only this workload tells.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) also: Map<String, Value>,
}

impl Measurement {
    /// Puts in how late runs were.
    pub(crate) fn late(mut self, spread: Option<Spread>) -> Measurement {
        (self.p50_ms, self.p99_ms) = (spread.map(|it| round(it.p50)), spread.map(|it| round(it.p99)));
        self.max_ms = spread.map(|it| round(it.max));
        self
    }

    /// Puts in what only this workload tells: a number, rounded, or none.
    pub(crate) fn and(mut self, key: &str, value: impl Into<Option<f64>>) -> Measurement {
        self.also.insert(key.to_owned(), json!(value.into().map(round)));
        self
    }

    /// Prints it.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}

/// Three places behind the point: nothing that is measured is finer.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// Milliseconds.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// So many in a time, by the second.
pub(crate) fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_every_key_whatever_was_measured() {
        let measured = Measurement { workload: "drain".to_owned(), ..Measurement::default() };
        let line = serde_json::to_value(&measured).expect("it is JSON");
        let keys: Vec<&str> = line.as_object().expect("it is an object").keys().map(String::as_str).collect();
        let wanted =
            "workload database nodes runs runs_per_s limit_per_s share p50_ms p99_ms max_ms cpu_us_per_run rss_mb";
        let mut wanted: Vec<&str> = wanted.split(' ').collect();
        wanted.sort_unstable();
        let mut keys = keys;
        keys.sort_unstable();
        assert_eq!(keys, wanted);
        assert_eq!(line["p99_ms"], Value::Null);
    }

    #[test]
    fn figures_have_three_places() {
        let measured = Measurement::default().and("first_ms", 1.234_56).and("none", None);
        assert_eq!(serde_json::to_value(&measured.also).expect("it is JSON"), json!({"first_ms": 1.235, "none": null}));
    }
}
