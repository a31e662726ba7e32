//! What an attempt leaves behind: what it printed and what it refers to, without the secrets.

use punctual_core::run::{Report, ReportedError};
use punctual_engine::output::{Printer, Stream};
use punctual_engine::runner::{Ending, Finish};
use serde_json::{Map, Value};

use super::trouble::Trouble;
use crate::redact::Secrets;
use crate::text::cut;

/// How much of a text of the server's is shown, in characters.
const SHOWN_MAX: usize = 500;

/// How much of what was printed goes into the report, in bytes: its end.
const OUTPUT_MAX: usize = 16 * 1024;

/// The longest message and the longest summary, in bytes.
const SENTENCE_MAX: usize = 4 * 1024;

/// What the id of the workflow is kept under.
pub(super) const WORKFLOW_ID: &str = "workflowId";

/// The notes of one attempt. They outlive it when it is cut short.
#[derive(Debug)]
pub(super) struct Notes {
    /// Hidden in everything that leaves here.
    secrets: Secrets,
    printer: Printer,
    output: String,
    output_bytes: u64,
    summary: Option<String>,
    refs: Map<String, Value>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed(Trouble),
    Stopped,
}

impl Notes {
    pub(super) fn new(printer: Printer) -> Notes {
        let (secrets, refs) = (Secrets::default(), Map::new());
        Notes { secrets, printer, output: String::new(), output_bytes: 0, summary: None, refs }
    }

    /// Hides these too, from now on.
    pub(super) fn hide(&mut self, secrets: &Secrets) {
        self.secrets.hide_all(secrets);
    }

    /// Whether the workflow is known to be started.
    pub(super) fn know_the_workflow(&self) -> bool {
        self.refs.contains_key(WORKFLOW_ID)
    }

    /// Prints a line.
    pub(super) fn print(&mut self, line: &str) {
        let line = self.clean(line) + "\n";
        self.printer.print(Stream::Stdout, line.as_bytes());
        self.output_bytes += line.len() as u64;
        self.output += &line;
        let surplus = self.output.len().saturating_sub(OUTPUT_MAX);
        self.output.drain(..self.output.ceil_char_boundary(surplus));
    }

    /// Says what was done.
    pub(super) fn sum_up(&mut self, summary: &str) {
        self.summary = Some(cut(self.clean(summary), SENTENCE_MAX));
    }

    /// Notes what the work refers to.
    pub(super) fn refer(&mut self, kind: &str, value: &str) {
        self.refs.insert(kind.to_owned(), self.clean(value).into());
    }

    /// The beginning of a text of the server's. The secrets are taken out before the rest is cut off, so that no half of one stays.
    pub(super) fn shown(&self, text: &str) -> String {
        let text = self.clean(text);
        match text.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// Whether a text can be shown as it is.
    pub(super) fn is_clean(&self, text: &str) -> bool {
        self.clean(text) == text
    }

    /// What the engine is told.
    pub(super) fn finish(self, end: End) -> Finish {
        let (ending, error) = match end {
            End::Succeeded => (Ending::Succeeded, None),
            End::Stopped => (Ending::Stopped, None),
            End::Failed(Trouble { word, ref message, code, is_retryable, retry_after }) => {
                let message = cut(self.clean(message), SENTENCE_MAX);
                let error = ReportedError { code: word.to_owned(), message };
                (Ending::Failed { code, is_retryable, retry_after }, Some(error))
            }
        };
        let Notes { output, output_bytes, summary, refs, .. } = self;
        Finish { ending, report: Report { summary, refs, error, output, output_bytes, ..Report::default() } }
    }

    /// A text without secrets, on one line: what controls a terminal, or what a store cannot keep, is made visible.
    fn clean(&self, text: &str) -> String {
        let text = self.secrets.redact(text);
        if !text.contains(char::is_control) {
            return text;
        }
        let visible = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
        text.chars().map(visible).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short_visible_and_without_secrets() {
        let mut notes = Notes::new(Printer::nowhere());
        notes.secrets.hide("key", "hunter22");
        assert_eq!(notes.shown("a\nb\x1b[31m\0 hunter22"), "a\\nb\\u{1b}[31m\\u{0} [secret key]");
        let long = notes.shown(&format!("{}hunter22", "é".repeat(SHOWN_MAX - 4)));
        assert_eq!((long.chars().count(), long.contains("hunt")), (SHOWN_MAX + 1, false));
    }

    #[test]
    fn the_end_of_what_was_printed_is_kept() {
        let mut notes = Notes::new(Printer::nowhere());
        (0..1000).for_each(|line| notes.print(&format!("line é {line} {}", "x".repeat(50))));
        notes.print("the last");
        let report = notes.finish(End::Succeeded).report;
        assert!(report.output.ends_with("the last\n") && report.output.len() <= OUTPUT_MAX);
        assert!(OUTPUT_MAX as u64 * 3 < report.output_bytes);
    }
}
