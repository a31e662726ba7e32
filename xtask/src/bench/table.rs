//! The table that people read.

use serde_json::Value;

use super::bars::{bars_of, four_nodes};

/// The columns with the same meaning for every workload.
const COLUMNS: [(&str, &str); 9] = [
    ("runs", "runs"),
    ("runs_per_s", "per s"),
    ("limit_per_s", "limit"),
    ("share", "share"),
    ("p50_ms", "p50 ms"),
    ("p99_ms", "p99 ms"),
    ("max_ms", "max ms"),
    ("cpu_us_per_run", "cpu µs"),
    ("rss_mb", "MB"),
];

/// Every measurement beside its bars. Bars are about the full sizes.
pub(super) fn table(lines: &[Value], is_full: bool) -> String {
    let mut text = format!("\n{:<34} {:<9}", "workload", "database");
    for (_, head) in COLUMNS {
        text += &format!(" {head:>9}");
    }
    text += "  bars\n";
    for line in lines {
        text += &row(line);
    }
    if let Some(share) = four_nodes(lines) {
        let mark = mark(Some(0.8 <= share));
        text += &format!("four nodes on PostgreSQL: {share:.2} of one ({mark} ≥ 0.80)\n");
    }
    if !is_full {
        text += "these are the small sizes; the bars are about those of --full\n";
    }
    text
}

fn row(line: &Value) -> String {
    let workload = line["workload"].as_str().unwrap_or_default();
    let nodes = line["nodes"].as_u64().filter(|nodes| 1 < *nodes).map(|nodes| format!(" --nodes {nodes}"));
    let name = format!("{workload}{}", nodes.unwrap_or_default());
    let mut text = format!("{name:<34} {:<9}", line["database"].as_str().unwrap_or_default());
    if let Some(why) = line["failed"].as_str() {
        return text + &format!(" FAILED: {why}\n");
    }
    for (key, _) in COLUMNS {
        text += &format!(" {:>9}", line[key].as_f64().map(short).unwrap_or_default());
    }
    let bars: Vec<String> = bars_of(line).map(|bar| format!("{} {}", mark((bar.holds)(line)), bar.words)).collect();
    text += &format!("  {}\n", bars.join("; "));
    if let Some(also) = line["also"].as_object() {
        let figures = also.iter().filter_map(|(key, value)| Some(format!("{key} {}", short(value.as_f64()?))));
        text += &format!("    {}\n", figures.collect::<Vec<_>>().join(", "));
    }
    text
}

fn mark(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "?",
    }
}

/// As many places as are worth reading.
fn short(value: f64) -> String {
    match value.abs() {
        size if size == size.trunc() => format!("{value:.0}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_shows_figures_and_whether_bars_hold() {
        let line = json!({"workload": "drain", "database": "sqlite", "nodes": 1, "runs": 100, "runs_per_s": 4100.4,
            "limit_per_s": 41000.0, "share": 0.1, "p50_ms": null, "also": {"x_ms": 1.25}});
        let row = row(&line);
        assert!(row.contains("4100") && row.contains("0.10") && row.contains("✗ share ≥ 0.60"), "{row}");
        assert!(row.contains("x_ms 1.25"), "{row}");
    }

    #[test]
    fn a_workload_that_failed_says_why() {
        let row = row(&json!({"workload": "join", "database": "postgres", "failed": "ended with 1"}));
        assert!(row.ends_with("FAILED: ended with 1\n"), "{row}");
    }
}
