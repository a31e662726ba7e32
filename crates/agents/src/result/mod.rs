//! Results: what the work says about itself, read from what it prints. Pure.
//!
//! A result is an object of a shape that has a file of its own here. The shapes of tools and of the APIs of models have marks that
//! nothing else has, so they count wherever they stand; Punctual's own has common words, so it counts if it is the last object of
//! the output. The last result counts; one that says nothing of models leaves that to the one before it.

mod anthropic;
mod claude_code;
mod codex;
mod find;
mod gemini;
mod mend;
mod names;
mod openai;
mod own;
#[cfg(test)]
mod tests;
mod usage;

use jiff::Timestamp;
use serde_json::{Map, Value};

use self::claude_code::ClaudeCode;
use self::codex::Codex;
use self::find::{Broken, Objects, Piece};
use self::gemini::Gemini;
use crate::text::cut;

/// How much of the end of an output is looked at. With it, whatever a result holds is bounded as well.
pub(crate) const RESULT_TAIL: usize = 256 * 1024;
/// How much of its beginning is, where streams say which session they are.
pub(crate) const RESULT_HEAD: usize = 16 * 1024;
/// The longest summary, in bytes.
const SUMMARY_MAX: usize = 16 * 1024;
/// The longest message of an error, in bytes.
pub(crate) const ERROR_MESSAGE_MAX: usize = 4 * 1024;
/// The code of an error that was reported without one.
const ERROR_CODE: &str = "error";
/// How much of something broken is looked at to tell whether it was meant to be a result.
const LOOK_MAX: usize = 4 * 1024;
/// The longest name that a warning repeats.
const SHOWN_MAX: usize = 60;

/// What the work said about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AgentResult {
    pub(crate) summary: Option<String>,
    pub(crate) refs: Map<String, Value>,
    pub(crate) llm: Map<String, Value>,
    pub(crate) tools: Map<String, Value>,
    pub(crate) facts: Map<String, Value>,
    pub(crate) session_id: Option<String>,
    pub(crate) next_run_at: Option<Timestamp>,
    pub(crate) error: Option<WorkError>,
    /// What was not understood.
    pub(crate) warnings: Vec<String>,
}

/// An error as the work reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkError {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) is_retryable: bool,
}

impl WorkError {
    fn new(message: impl Into<String>) -> WorkError {
        WorkError { code: ERROR_CODE.to_owned(), message: cut(message.into(), ERROR_MESSAGE_MAX), is_retryable: true }
    }
}

/// What of an output is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept<'a> {
    /// Its beginning.
    pub(crate) head: &'a [u8],
    /// Its end; all of it unless `is_cut`.
    pub(crate) tail: &'a [u8],
    /// Whether something before the end is missing.
    pub(crate) is_cut: bool,
}

/// What a shape makes of an object.
#[derive(Debug)]
enum Taken {
    /// It is none of this shape.
    No,
    /// It is one of the shape's, and no result.
    Event,
    /// It is a result.
    Result {
        result: Box<AgentResult>,
        /// Whether it takes the place of the one before, which told of the same work.
        goes_on: bool,
    },
}

impl Taken {
    fn result(result: AgentResult) -> Taken {
        Taken::Result { result: Box::new(result), goes_on: false }
    }

    fn or(self, other: impl FnOnce() -> Taken) -> Taken {
        if let Taken::No = self { other() } else { self }
    }
}

/// The shapes of tools and APIs, with what their streams have said so far.
#[derive(Debug, Default)]
struct Shapes {
    claude_code: ClaudeCode,
    codex: Codex,
    gemini: Gemini,
}

impl Shapes {
    fn take(&mut self, object: &Map<String, Value>) -> Taken {
        self.claude_code
            .take(object)
            .or(|| self.codex.take(object))
            .or(|| self.gemini.take(object))
            .or(|| anthropic::take(object))
            .or(|| openai::take(object))
    }
}

impl AgentResult {
    /// Reads the result of work from what it printed. What was printed and is none is no result, and nothing is said of it.
    pub(crate) fn read(kept: Kept<'_>) -> AgentResult {
        let mut shapes = Shapes::default();
        if kept.is_cut {
            // Only for what streams say in the beginning: no result stands there.
            for piece in Objects::new(kept.head) {
                if let Piece::Object(object) = piece {
                    shapes.take(&object);
                }
            }
        }
        let start = if kept.is_cut { whole_line(kept.tail) } else { 0 };
        let mut reading = Reading { shapes, ..Reading::default() };
        for piece in Objects::new(&kept.tail[start..]) {
            reading.take(piece);
        }
        let mut result = reading.result(&kept.tail[start..]);
        if kept.is_cut && result == AgentResult::default() && is_too_long(kept.tail, start) {
            let said = format!("result: longer than {} KiB, so it was not read", RESULT_TAIL / 1024);
            result.warnings.push(said);
        }
        result
    }

    fn cut_summary(summary: String) -> String {
        cut(summary, SUMMARY_MAX)
    }
}

/// The objects of an output, as far as they were looked at.
#[derive(Debug, Default)]
struct Reading {
    shapes: Shapes,
    /// The last result of a tool or an API.
    tool: Option<AgentResult>,
    /// How many results with figures had their place taken.
    replaced: usize,
    /// The last object, if it is nobody's.
    last: Option<Map<String, Value>>,
    /// What is broken and was not followed by a result.
    broken: Option<Broken>,
}

impl Reading {
    fn take(&mut self, piece: Piece) {
        let object = match piece {
            Piece::Object(object) if object.is_empty() => return,
            Piece::Object(object) => object,
            Piece::Broken(broken) => {
                self.broken = Some(broken);
                return;
            }
        };
        match self.shapes.take(&object) {
            Taken::No => {
                if own::is_result(&object) {
                    self.broken = None;
                }
                self.last = Some(object);
            }
            Taken::Event => self.last = None,
            Taken::Result { result, goes_on } => {
                (self.last, self.broken) = (None, None);
                let before = self.tool.replace(*result);
                let has_figures = before.is_some_and(|before| !before.llm.is_empty());
                self.replaced += usize::from(has_figures && !goes_on);
            }
        }
    }

    fn result(self, text: &[u8]) -> AgentResult {
        let own = self.last.as_ref().is_some_and(own::is_result);
        let misspelt = self.last.as_ref().filter(|_| !own).map(own::misspelt).unwrap_or_default();
        let mut result = match (self.last.filter(|_| own).map(own::read), self.tool) {
            (Some(mut own), Some(tool)) => {
                if own.llm.is_empty() {
                    own.llm = tool.llm;
                    own.warnings.extend(tool.warnings);
                }
                own.session_id = own.session_id.or(tool.session_id);
                own
            }
            (own, tool) => own.or(tool).unwrap_or_default(),
        };
        if 0 < self.replaced {
            result.warnings.push(format!(
                "result: {} earlier results with tokens or cost do not count, only the last does",
                self.replaced
            ));
        }
        result.warnings.extend(misspelt);
        if let Some(broken) = self.broken
            && looks_like_result(&text[broken.at..])
        {
            result.warnings.push(format!("result: not read, as {}", broken.why));
        }
        result
    }
}

/// Whether something broken was meant to be a result: it begins with a name that results have.
fn looks_like_result(text: &[u8]) -> bool {
    let names: [&[u8]; 10] = [
        b"summary",
        b"llm",
        b"usage",
        b"nextRunAt",
        b"next_run_at",
        b"total_cost_usd",
        b"promptTokens",
        b"facts",
        b"refs",
        b"error",
    ];
    let text = &text[..text.len().min(LOOK_MAX)];
    names.iter().any(|name| {
        text.windows(name.len() + 2)
            .any(|it| matches!(it[0], b'"' | b'\'') && it[0] == it[it.len() - 1] && &it[1..=name.len()] == *name)
    })
}

/// The first line of a cut text that is whole and not indented: what is inside of an object whose beginning is missing is
/// not taken for a whole.
fn whole_line(text: &[u8]) -> usize {
    let is_start = |pair: &[u8]| pair[0] == b'\n' && !pair[1].is_ascii_whitespace();
    text.windows(2).position(is_start).map_or(text.len(), |line| line + 1)
}

/// Whether what is kept begins with the end of one object that was too long to be kept: of one long line, or of many that are
/// indented.
fn is_too_long(text: &[u8], start: usize) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_long_line = RESULT_TAIL / 2 < line.len() && line.trim_ascii_end().ends_with(b"}");
    let is_indented = text[..start].windows(3).any(|it| it == b"\n  ");
    is_long_line || is_indented && text[start..].starts_with(b"}")
}

/// What a value is, for people.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A name of the work's own choice, as a warning repeats it.
fn shown(name: &str) -> String {
    cut(name.to_owned(), SHOWN_MAX)
}
