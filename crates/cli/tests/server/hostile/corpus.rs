//! Hostile values, as JSON writes them: what no parser, no column and no arithmetic likes.

use std::iter::successors;

/// A value, and what is hostile about it.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    /// As JSON writes it, which may be no JSON at all.
    pub(crate) json: String,
    /// Whether it is tried everywhere, also where only some of them are.
    pub(crate) is_worst: bool,
}

impl Hostile {
    /// The bytes of it in a query, a path or a header.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match serde_json::from_str(&self.json) {
            Ok(serde_json::Value::String(text)) => text.into_bytes(),
            _ => self.json.clone().into_bytes(),
        }
    }
}

pub(crate) fn all() -> Vec<Hostile> {
    let worst = [
        ("NUL", r#""a\u0000b""#.to_owned()),
        ("a lone surrogate", r#""\ud800""#.to_owned()),
        ("a time finer than a microsecond", r#""2027-01-01T00:00:00.123456789Z""#.to_owned()),
        ("the year -9999", r#""-009999-01-02T01:59:59Z""#.to_owned()),
        ("the end of time", r#""9999-12-30T22:00:00.999999999Z""#.to_owned()),
        ("more than a double", "1e400".to_owned()),
        ("the largest number", u64::MAX.to_string()),
        ("longer than an index takes", format!("\"{}\"", random_text(6_000))),
        ("deeper than it can be stored", nested(120)),
    ];
    let others = [
        ("nothing but NUL", r#""\u0000""#.to_owned()),
        ("control characters", r#""\u0001\u001b[31m\u007f\u0085\r\n\t""#.to_owned()),
        ("a surrogate too late", r#""\udc00\ud800""#.to_owned()),
        ("text that runs the other way", r#""\u202e\ufeff\uffff\ufffd""#.to_owned()),
        ("less than a double", "-1e400".to_owned()),
        ("the largest double", "1.7976931348623157e308".to_owned()),
        ("the smallest double", "5e-324".to_owned()),
        ("minus nothing", "-0.0".to_owned()),
        ("the smallest number", i64::MIN.to_string()),
        ("a number beyond all numbers", "9".repeat(400)),
        ("Infinity", "Infinity".to_owned()),
        ("Infinity as a text", r#""Infinity""#.to_owned()),
        ("-Infinity as a text", r#""-Infinity""#.to_owned()),
        ("NaN as a text", r#""NaN""#.to_owned()),
        ("the last day", r#""9999-12-31""#.to_owned()),
        ("the day before the last", r#""9999-12-30""#.to_owned()),
        ("the first day", r#""-009999-01-01""#.to_owned()),
        ("the year 0", r#""0000-01-01T00:00:00Z""#.to_owned()),
        ("a leap second", r#""2016-12-31T23:59:60Z""#.to_owned()),
        ("a time that no clock shows", r#""2026-13-45T99:99:99Z""#.to_owned()),
        ("an endless duration", r#""99999999999999999999w""#.to_owned()),
        ("a thousand years", r#""365000d""#.to_owned()),
        ("a quote", r#""'\" OR 1=1; DROP TABLE runs; --""#.to_owned()),
        ("a pattern", r#""%_\\*?[a-z](""#.to_owned()),
        ("a long text", format!("\"{}\"", "ä".repeat(100_000))),
        ("as deep as it may be stored", nested(60)),
        ("deeper than it can be read", nested(5_000)),
        ("null", "null".to_owned()),
        ("an empty text", r#""""#.to_owned()),
        ("an empty list", "[]".to_owned()),
        ("an empty object", "{}".to_owned()),
    ];
    let listed = |is_worst| move |(name, json)| Hostile { name, json, is_worst };
    worst.into_iter().map(listed(true)).chain(others.into_iter().map(listed(false))).collect()
}

/// Lists and objects inside each other.
fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// Text that cannot be packed, the same each time.
fn random_text(length: usize) -> String {
    let next = |seed: &u64| Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    successors(Some(1), next)
        .map(|seed| format!("{:08x}", seed >> 32))
        .flat_map(|text| text.into_bytes())
        .map(char::from)
        .take(length)
        .collect()
}
