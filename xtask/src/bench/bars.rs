//! The bars: what each workload has to reach, on two cores.

use serde_json::Value;

/// One condition on a measurement.
pub(super) struct Bar {
    workload: &'static str,
    database: Option<&'static str>,
    /// In words.
    pub(super) words: &'static str,
    /// Whether the measurement reaches it; none if it does not tell.
    pub(super) holds: fn(&Value) -> Option<bool>,
}

fn number(line: &Value, key: &str) -> Option<f64> {
    line[key].as_f64().or_else(|| line["also"][key].as_f64())
}

fn at_most(line: &Value, key: &str, bar: f64) -> Option<bool> {
    Some(number(line, key)? <= bar)
}

fn at_least(line: &Value, key: &str, bar: f64) -> Option<bool> {
    Some(bar <= number(line, key)?)
}

const SQLITE: Option<&str> = Some("sqlite");
const POSTGRES: Option<&str> = Some("postgres");

/// All of them.
pub(super) const BARS: [Bar; 23] = [
    Bar { workload: "drain", database: None, words: "share ≥ 0.60", holds: |it| at_least(it, "share", 0.6) },
    Bar { workload: "late", database: None, words: "first ≤ 5 ms", holds: |it| at_most(it, "first_ms", 5.0) },
    Bar {
        workload: "late", database: None, words: "p99 ≤ 3 × plain", holds: |it| at_most(it, "times_plain_p99", 3.0)
    },
    Bar { workload: "late", database: None, words: "none early", holds: |it| at_most(it, "early", 0.0) },
    Bar { workload: "late --cron", database: None, words: "p99 ≤ 250 ms", holds: |it| at_most(it, "p99_ms", 250.0) },
    Bar { workload: "late --cron", database: None, words: "none early", holds: |it| at_most(it, "early", 0.0) },
    Bar { workload: "steady", database: SQLITE, words: "p99 ≤ 5 ms", holds: |it| at_most(it, "p99_ms", 5.0) },
    Bar { workload: "steady", database: POSTGRES, words: "p99 ≤ 8 ms", holds: |it| at_most(it, "p99_ms", 8.0) },
    Bar { workload: "steady", database: None, words: "none early", holds: |it| at_most(it, "early", 0.0) },
    Bar {
        workload: "schedules",
        database: None,
        words: "≤ 150 MB at 100,000, ≤ 1 GB at 1,000,000",
        holds: |it| at_most(it, "rss_mb", if number(it, "runs")? <= 100_000.0 { 150.0 } else { 1_000.0 }),
    },
    Bar {
        workload: "schedules",
        database: None,
        words: "idle < 1 %",
        holds: |it| at_most(it, "idle_cpu_percent", 1.0),
    },
    Bar {
        workload: "schedules",
        database: None,
        words: "restart ≤ 2 s at 100,000, ≤ 15 s at 1,000,000",
        holds: |it| at_most(it, "restart_s", if number(it, "runs")? <= 100_000.0 { 2.0 } else { 15.0 }),
    },
    Bar {
        workload: "schedules --every",
        database: None,
        words: "the rate is held",
        holds: |it| at_least(it, "held_share", 0.98),
    },
    Bar {
        workload: "schedules --every",
        database: None,
        words: "costs what a yearly one costs (≤ 1.2 ×)",
        holds: |it| at_most(it, "create_times_yearly", 1.2),
    },
    Bar {
        workload: "insert",
        database: SQLITE,
        words: "64 callers ≥ 10 × one",
        holds: |it| at_least(it, "callers_64_times_one", 10.0),
    },
    Bar { workload: "insert", database: None, words: "bulk ≥ 0.50 of plain", holds: |it| at_least(it, "share", 0.5) },
    Bar {
        workload: "scaling: waiting",
        database: None,
        words: "≤ 2 × small",
        holds: |it| at_most(it, "times_small", 2.0),
    },
    Bar {
        workload: "scaling: agents at their limit",
        database: None,
        words: "≤ 2 × small",
        holds: |it| at_most(it, "times_small", 2.0),
    },
    Bar {
        workload: "scaling: history",
        database: None,
        words: "≤ 2 × small",
        holds: |it| at_most(it, "times_small", 2.0),
    },
    Bar { workload: "list", database: None, words: "page ≤ 50 ms", holds: |it| at_most(it, "p99_ms", 50.0) },
    Bar {
        workload: "list",
        database: SQLITE,
        words: "steady p99 ≤ 5 ms",
        holds: |it| at_most(it, "steady_p99_ms", 5.0),
    },
    Bar {
        workload: "list",
        database: POSTGRES,
        words: "steady p99 ≤ 8 ms",
        holds: |it| at_most(it, "steady_p99_ms", 8.0),
    },
    Bar {
        workload: "restart",
        database: None,
        words: "restart ≤ 2 s at 100,000",
        holds: |it| at_most(it, "restart_s", 2.0),
    },
];

/// The bars of a measurement.
pub(super) fn bars_of(line: &Value) -> impl Iterator<Item = &'static Bar> {
    let (workload, database) = (line["workload"].as_str().unwrap_or_default().to_owned(), line["database"].clone());
    BARS.iter()
        .filter(move |bar| bar.workload == workload)
        .filter(move |bar| bar.database.is_none_or(|wanted| database == wanted))
}

/// The share of one node's speed that four nodes keep; none unless both were measured.
pub(super) fn four_nodes(lines: &[Value]) -> Option<f64> {
    let rate = |nodes: u64| {
        let is_it = |line: &&Value| {
            line["workload"] == "drain" && line["database"] == "postgres" && line["nodes"].as_u64() == Some(nodes)
        };
        number(lines.iter().find(is_it)?, "runs_per_s")
    };
    Some(rate(4)? / rate(1)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bar_is_for_its_workload_and_database() {
        let words = |line: Value| bars_of(&line).map(|bar| bar.words).collect::<Vec<_>>();
        assert_eq!(words(json!({"workload": "steady", "database": "sqlite"})), ["p99 ≤ 5 ms", "none early"]);
        assert_eq!(words(json!({"workload": "drain", "database": "postgres"})), ["share ≥ 0.60"]);
    }

    #[test]
    fn a_bar_without_its_figure_neither_holds_nor_fails() {
        let bar = bars_of(&json!({"workload": "drain"})).next().expect("there is one").holds;
        assert_eq!(bar(&json!({"share": 0.6})), Some(true));
        assert_eq!(bar(&json!({"share": 0.59})), Some(false));
        assert_eq!(bar(&json!({"share": null})), None);
    }

    #[test]
    fn four_nodes_are_compared_with_one() {
        let drain =
            |nodes, rate| json!({"workload": "drain", "database": "postgres", "nodes": nodes, "runs_per_s": rate});
        assert_eq!(four_nodes(&[drain(1, 100.0), drain(4, 80.0)]), Some(0.8));
        assert_eq!(four_nodes(&[drain(1, 100.0)]), None);
    }
}
