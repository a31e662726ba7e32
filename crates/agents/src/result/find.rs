//! The JSON objects of an output, wherever they stand: indented, one a line, in a sentence, in a Markdown fence, in a list.
//!
//! Invariant: the work is bounded by the length of the output, whatever it holds. Each byte is looked at once; beyond that, lines
//! inside of what turned out to be no JSON are looked at again for [`AGAIN_MAX`] bytes in all.

use serde_json::{Map, Value};

use super::mend::mend;

/// The deepest nesting that is read.
const DEPTH_MAX: u32 = 100;

/// How many bytes may be looked at once more.
const AGAIN_MAX: usize = 2 * 1024 * 1024;

/// Something that begins like an object.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// It is one.
    Object(Map<String, Value>),
    /// It is none.
    Broken(Broken),
}

/// Something that begins like an object and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// Where it begins.
    pub(super) at: usize,
    /// Why it is none.
    pub(super) why: String,
}

/// The objects of an output, in order, without those inside of others.
#[derive(Debug)]
pub(super) struct Objects<'a> {
    bytes: &'a [u8],
    at: usize,
    again: usize,
}

impl<'a> Objects<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Objects<'a> {
        Objects { bytes, at: 0, again: AGAIN_MAX }
    }

    /// Where to look on after what begins at `start` has failed at `failed`.
    ///
    /// An object that was never finished may be followed by one that is: it begins a line. One inside of another that is
    /// written over many lines is indented, and is not taken for a whole.
    fn resume(&mut self, start: usize, failed: usize) -> usize {
        let seen = failed - start;
        if self.again < seen {
            return failed;
        }
        self.again -= seen;
        let inside = &self.bytes[start..failed];
        inside.windows(2).position(|pair| pair == b"\n{").map_or(failed, |line| start + line + 1)
    }
}

impl Iterator for Objects<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let start = self.at + self.bytes.get(self.at..)?.iter().position(|byte| *byte == b'{')?;
        let broken = |why: &str| Some(Piece::Broken(Broken { at: start, why: why.to_owned() }));
        match extent(self.bytes, start) {
            Ok(end) => {
                self.at = end;
                Some(match parse(&String::from_utf8_lossy(&self.bytes[start..end])) {
                    Ok(object) => Piece::Object(object),
                    Err(error) => Piece::Broken(Broken { at: start, why: format!("it is not JSON: {error}") }),
                })
            }
            Err(Flaw { at, kind }) => {
                self.at = self.resume(start, at);
                broken(match kind {
                    FlawKind::Unclosed => "it is cut off",
                    FlawKind::TooDeep => "it is nested too deeply",
                    FlawKind::NotJson => "it is not JSON",
                })
            }
        }
    }
}

fn parse(text: &str) -> Result<Map<String, Value>, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mend(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// Why something is no object, and where that shows: behind its beginning.
#[derive(Debug)]
struct Flaw {
    at: usize,
    kind: FlawKind,
}

#[derive(Debug)]
enum FlawKind {
    Unclosed,
    TooDeep,
    NotJson,
}

/// Where the object ends that begins at `start`, by its brackets and strings.
fn extent(bytes: &[u8], start: usize) -> Result<usize, Flaw> {
    let flaw = |at, kind| Err(Flaw { at, kind });
    let (mut at, mut depth, mut objects) = (start + 1, 1_u32, 1_u128);
    match bytes[at..].iter().position(|byte| !byte.is_ascii_whitespace()) {
        None => return flaw(bytes.len(), FlawKind::Unclosed),
        // As most braces are none of JSON's.
        Some(first) if !matches!(bytes[at + first], b'"' | b'}') => return flaw(at + first, FlawKind::NotJson),
        Some(first) => at += first,
    }
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => match string_end(bytes, at + 1) {
                Ok(end) => {
                    at = end;
                    continue;
                }
                Err(flaw) => return Err(flaw),
            },
            b'{' | b'[' => {
                if depth == DEPTH_MAX {
                    return flaw(at, FlawKind::TooDeep);
                }
                depth += 1;
                objects = objects << 1 | u128::from(*byte == b'{');
            }
            b'}' | b']' => {
                if (objects & 1 == 1) != (*byte == b'}') {
                    return flaw(at, FlawKind::NotJson);
                }
                depth -= 1;
                objects >>= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            b',' | b':' | b'+' | b'-' | b'.' => {}
            byte if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() => {}
            _ => return flaw(at, FlawKind::NotJson),
        }
        at += 1;
    }
    flaw(bytes.len(), FlawKind::Unclosed)
}

/// Behind the quote that ends a string. No string goes on over the end of a line.
fn string_end(bytes: &[u8], from: usize) -> Result<usize, Flaw> {
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            b'\\' => at += 2,
            b'\n' => return Err(Flaw { at, kind: FlawKind::NotJson }),
            _ => at += 1,
        }
    }
    Err(Flaw { at: bytes.len(), kind: FlawKind::Unclosed })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pieces(text: &str) -> Vec<Value> {
        let shown = |piece| match piece {
            Piece::Object(object) => Value::Object(object),
            Piece::Broken(broken) => Value::String(broken.why.split(" at ").next().unwrap().to_owned()),
        };
        Objects::new(text.as_bytes()).map(shown).collect()
    }

    fn objects(text: &str) -> Vec<Value> {
        pieces(text).into_iter().filter(Value::is_object).collect()
    }

    #[test]
    fn objects_are_found_wherever_they_stand() {
        let (a, b) = (json!({"a": [1, {"b": "}"}]}), json!({"c": "\"{"}));
        let pretty = serde_json::to_string_pretty(&a).unwrap();
        for text in [
            format!("{a}"),
            format!("{pretty}\n\nall done\n"),
            format!("Here it is:\n```json\n{pretty}\n```\nBye {{ }} "),
            format!("\u{1b}[32m{a}\u{1b}[0m"),
            format!("fn main() {{ }}\n[{a}]\n"),
            format!("data: {a}\r\n\r\ndata: [DONE]"),
        ] {
            let found: Vec<Value> = objects(&text).into_iter().filter(|it| *it != json!({})).collect();
            assert_eq!(found, std::slice::from_ref(&a), "{text}");
        }
        assert_eq!(objects(&format!("{a}{b}\n{a}")), [a.clone(), b.clone(), a.clone()]);
    }

    #[test]
    fn what_is_broken_hides_no_line_after_it() {
        let object = json!({"a": 1});
        assert_eq!(pieces("{\"x\": [\n{\"a\":1}\n"), [json!("it is cut off"), object.clone()]);
        assert_eq!(pieces("{\"x\": \"y\n{\"a\":1}"), [json!("it is not JSON"), object.clone()]);
        assert_eq!(pieces("{'x': 1} {\"a\":1}"), [json!("it is not JSON"), object.clone()]);
        assert_eq!(pieces("{\"x\": ]\n{\"a\":1}"), [json!("it is not JSON"), object]);
        // Inside of what is broken nothing is taken for a whole.
        let broken = "{\n  \"x\": [\n    {\n      \"error\": \"no\"\n    },,\n  ]\n}\n";
        assert_eq!(pieces(broken), [json!("it is not JSON: expected value")]);
    }

    #[test]
    fn what_is_nearly_json_is_mended() {
        assert_eq!(
            objects(r#"{"a": NaN, "b": -Infinity, "c": "\ud83d"}"#),
            [json!({"a": "NaN", "b": "-Infinity", "c": "\u{fffd}"})]
        );
        assert_eq!(objects("{\"a\": 1e999, \"b\": \"x\ty\"}"), [json!({"a": 1e308, "b": "x\ty"})]);
        let bytes = b"{\"a\":\"\xff\"}";
        assert_eq!(
            Objects::new(bytes).next(),
            Some(Piece::Object(json!({"a": "\u{fffd}"}).as_object().unwrap().clone()))
        );
    }

    /// How often bytes are looked at, for outputs that want them looked at again and again.
    #[test]
    fn the_work_is_bounded() {
        for (unit, most) in [
            ("{", 1),
            ("{{\n", 1),
            ("{\"a\":", 1),
            ("{\"a\":\n", 1),
            ("\n{\"a\":[", 1),
            ("{\"", 1),
            ("{}", 1),
            ("{\"a\":\"", 1),
            ("\n{\"a\":1,\"b\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 1),
        ] {
            let text = unit.repeat(256 * 1024 / unit.len());
            let mut objects = Objects::new(text.as_bytes());
            let mut seen = 0;
            loop {
                let before = (objects.at, objects.again);
                if objects.next().is_none() {
                    break;
                }
                assert!(before.0 < objects.at, "{unit}: it goes on");
                seen += before.1 - objects.again;
            }
            assert!(seen <= AGAIN_MAX * most, "{unit}: {seen}");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert_eq!(objects(&format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100))).len(), 1);
        assert_eq!(pieces(&format!("{}1{}", "{\"a\":".repeat(101), "}".repeat(101)))[0], "it is nested too deeply");
    }
}
