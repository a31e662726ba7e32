//! Why a command could not do what it was asked, and what it exits with then.

use std::fmt;
use std::process::ExitCode;

use serde_json::Value;

/// The exit codes, as `--help` and `docs/cli.md` tell them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done, or the answer is yes
  1  the answer is no: yours to a question, a check found faults, a run that was waited for did not succeed, not all was
     imported as it was
  2  the command line or a value cannot be used
  3  no server answers, or it cannot answer now
  4  the token does not allow it
  5  it is not there
  6  something stands in the way: a name that is taken, a change that somebody else made";

/// The kinds of failure that a script may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line or a value cannot be used.
    Input = 2,
    /// Nobody answers, or not now.
    NoServer = 3,
    /// The token does not allow it.
    NotAllowed = 4,
    /// It is not there.
    NotFound = 5,
    /// Something stands in the way.
    Conflict = 6,
}

/// What went wrong, in a sentence that says what to do.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    text: String,
    /// Whether nobody listens at all.
    is_silence: bool,
}

impl Failure {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Failure {
        Failure { kind, text: text.into(), is_silence: false }
    }

    pub(crate) fn input(text: impl Into<String>) -> Failure {
        Failure::new(Kind::Input, text)
    }

    pub(crate) fn not_found(text: impl Into<String>) -> Failure {
        Failure::new(Kind::NotFound, text)
    }

    /// Nobody listens there.
    pub(crate) fn no_server(url: &str) -> Failure {
        let text =
            format!("no server answers at {url}; start one with `punctual up`, or name another with --server URL");
        Failure { is_silence: true, ..Failure::new(Kind::NoServer, text) }
    }

    /// No server is running, as far as can be said without asking anybody.
    pub(crate) fn none_here(text: impl Into<String>) -> Failure {
        Failure { is_silence: true, ..Failure::new(Kind::NoServer, text) }
    }

    /// Whether nobody listens at all.
    pub(crate) fn is_silence(&self) -> bool {
        self.is_silence
    }

    /// The same, in the words of a command line: fields of the API become the options that they were given by. Each pair is a
    /// field and its option.
    #[must_use]
    pub(crate) fn naming(mut self, options: &[(&str, &str)]) -> Failure {
        self.text = named(&self.text, options);
        self
    }

    /// What an answer of the API that is no success means. `from` is whoever gave it, `token` where the token came from.
    pub(crate) fn of_answer(status: u16, body: &[u8], from: &str, token: &str) -> Failure {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let code = problem["code"].as_str().unwrap_or_default();
        let said = said(&problem).unwrap_or_else(|| format!("{from} answers with status {status}"));
        match (status, code) {
            (401, _) => Failure::new(
                Kind::NotAllowed,
                format!(
                    "{from} does not let us in: {said} (tried: {token}); set PUNCTUAL_TOKEN to a token that an admin has \
                     made with `punctual token create`, or work in the folder of its database"
                ),
            ),
            (403, "not_allowed" | "other_project") => Failure::new(
                Kind::NotAllowed,
                format!("{said} (used: {token}); set PUNCTUAL_TOKEN to one with a role and projects that do"),
            ),
            (403, _) => Failure::new(Kind::NotAllowed, said),
            (404, "no_route") => {
                Failure::not_found(format!("{from} does not know this request: it is another release"))
            }
            (404, _) => Failure::not_found(said),
            (409 | 412, _) => Failure::new(Kind::Conflict, said),
            (400..500, _) => Failure::input(said),
            _ => Failure::new(Kind::NoServer, format!("{from} could not answer: {said}")),
        }
    }
}

/// What a problem document says, with the field at fault and what would be right.
fn said(problem: &Value) -> Option<String> {
    let text = |key: &str| problem[key].as_str().filter(|text| !text.is_empty());
    // What is for clients of Conductor has a message.
    let mut said = text("detail").or(text("title")).or(text("message"))?.to_owned();
    if let Some(field) = text("field").filter(|field| !said.starts_with(field)) {
        said = format!("{field}: {said}");
    }
    if let Some(fix) = text("fix").filter(|fix| !said.contains(fix)) {
        said += &format!("; {fix}");
    }
    Some(said)
}

/// Names options instead of fields: at the beginning of a sentence, which is the field at fault, and wherever a field is written
/// as no other word is.
fn named(text: &str, options: &[(&str, &str)]) -> String {
    let option = |word: &str| {
        let field = word.rsplit('.').next().unwrap_or(word);
        let field = field.split('[').next().unwrap_or(field);
        options.iter().find(|(name, _)| *name == field).map(|(_, option)| *option)
    };
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '[' | ']');
    let (mut said, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(is_letter) {
        let (before, from) = rest.split_at(start);
        let (whole, behind) = from.split_at(from.find(|letter| !is_letter(letter)).unwrap_or(from.len()));
        let word = whole.trim_end_matches('.');
        let is_field = said.is_empty() && before.is_empty() && behind.starts_with(':');
        let is_camel = word.contains(|letter: char| letter.is_ascii_uppercase());
        said += before;
        match option(word).filter(|_| is_field || is_camel && !before.ends_with(['"', '-'])) {
            Some(option) => said = said + option + &whole[word.len()..],
            None => said += whole,
        }
        rest = behind;
    }
    said + rest
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// What the program exits with for an error.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let kind = error.downcast_ref::<Failure>().map_or(Kind::Input, |failure| failure.kind);
    ExitCode::from(kind as u8)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: u16, problem: Value, kind: Kind, text: &str) {
        let failure = Failure::of_answer(status, problem.to_string().as_bytes(), "http://x", "the file f");
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.to_string().contains(text), "{failure}");
    }

    #[test]
    fn a_problem_becomes_a_sentence_and_an_exit_code() {
        let invalid = json!({"code": "invalid_value", "detail": "cronExpr: 24 is out of range; use 0 to 23",
            "field": "cronExpr", "fix": "use 0 to 23"});
        check(422, invalid, Kind::Input, "cronExpr: 24 is out of range; use 0 to 23");
        let bare = json!({"title": "Unprocessable Entity", "field": "size", "fix": "use 1"});
        check(422, bare, Kind::Input, "size: Unprocessable Entity; use 1");
        check(401, json!({"code": "bad_token", "detail": "not known"}), Kind::NotAllowed, "the file f");
        check(403, json!({"code": "not_allowed", "detail": "no"}), Kind::NotAllowed, "PUNCTUAL_TOKEN");
        check(404, json!({"code": "not_found", "detail": "schedule x does not exist"}), Kind::NotFound, "schedule x");
        check(404, json!({"code": "no_route"}), Kind::NotFound, "another release");
        check(409, json!({"detail": "taken"}), Kind::Conflict, "taken");
        check(400, json!({"code": "invalid_value", "message": "Cron expression is required"}), Kind::Input, "Cron");
        check(503, json!({"detail": "the disk is full"}), Kind::NoServer, "the disk is full");
    }

    #[test]
    fn options_are_named_as_they_are_typed() {
        let options = [
            ("maxAttempts", "--max-attempts"),
            ("cronExpr", "--cron"),
            ("name", "--name"),
            ("catchUpMax", "--catch-up-max"),
        ];
        for (text, expected) in [
            ("cronExpr: hour: 24 is out of range; use 0 to 23", "--cron: hour: 24 is out of range; use 0 to 23"),
            ("executorPolicy.maxAttempts: 0 is out of range", "--max-attempts: 0 is out of range"),
            ("name: the name is taken", "--name: the name is taken"),
            ("it needs catchUpMax.", "it needs --catch-up-max."),
            ("name: \"maxAttempts\" is no name", "--name: \"maxAttempts\" is no name"),
            ("timesOfDay: 9 is no time", "timesOfDay: 9 is no time"),
            ("", ""),
        ] {
            assert_eq!(Failure::input(text).naming(&options).to_string(), expected);
        }
    }

    #[test]
    fn an_answer_that_is_no_problem_document_is_told_by_its_status() {
        let failure = Failure::of_answer(502, b"<html>", "http://x", "-");
        assert!(failure.to_string().contains("status 502"), "{failure}");
    }
}
