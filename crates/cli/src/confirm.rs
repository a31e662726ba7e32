//! A yes before what cannot be undone.

use std::fmt;
use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::Context;

use crate::client::Failure;

/// The person at the terminal has said no. No error, but not what the command was for: the exit code is 1.
#[derive(Debug)]
pub(crate) struct Declined(&'static str);

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Declined {}

/// What cannot be undone.
pub(crate) struct Irreversible<'a> {
    /// What there is to see before one decides; ends with a new line if it is not empty.
    pub(crate) shown: &'a str,
    /// What is asked.
    pub(crate) question: &'a str,
    /// What is said after a no.
    pub(crate) declined: &'static str,
}

impl Irreversible<'_> {
    /// Goes on if `--yes` was given or the person at the terminal says so. Where nobody can be asked, `--yes` is needed:
    /// what comes through a pipe is no answer to a question that nobody has read.
    pub(crate) fn confirm(&self, yes: bool) -> anyhow::Result<()> {
        if yes {
            return Ok(());
        }
        match ask(&format!("{}{}", self.shown, self.question))? {
            Some(true) => Ok(()),
            Some(false) => Err(Declined(self.declined).into()),
            None => {
                let text =
                    format!("{} This cannot be undone, and there is no terminal to ask at: add --yes", self.question);
                Err(Failure::input(text).into())
            }
        }
    }
}

/// Asks the person at the terminal, and says whether the answer is yes; none, if there is no terminal.
pub(crate) fn ask(question: &str) -> anyhow::Result<Option<bool>> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(None);
    }
    eprint!("{question} [y/N] ");
    io::stderr().flush().ok();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")))
}
