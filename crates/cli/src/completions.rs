//! `punctual completions`: what a shell needs to complete commands, options and names.
//!
//! The script asks this program for candidates, so that it knows the names that are there now: [`answer_if_asked`].

use std::ffi::OsStr;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, CommandFactory, Parser};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::client::{Client, ClientArgs, Failure, Query, every_face, read, read_all};
use crate::database::wait;
use crate::output::print;
use crate::views::{Agent, Execution, Past, Schedule};

/// Set by the script when it asks for candidates, to the name of the shell.
const VARIABLE: &str = "PUNCTUAL_COMPLETE";

/// Nobody waits longer for a candidate.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// How many names are read.
const NAMES_MAX: usize = 1_000;

/// How many runs are read: those that were seen lately.
const RUNS_MAX: usize = 50;

/// Print a script that lets a shell complete commands, options and names.
///
/// Names of schedules and agents and ids of runs are asked for as other commands ask: of the server of this folder or the one that
/// PUNCTUAL_URL names, or of the database. With --server on the line no names are completed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual completions bash > ~/.local/share/bash-completion/completions/punctual
  punctual completions zsh  > ~/.zfunc/_punctual
  punctual completions fish > ~/.config/fish/completions/punctual.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: CompletionsArgs) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell.to_string()).context("there is no script for this shell")?;
    let mut script = vec![];
    shell
        .write_registration(VARIABLE, "punctual", "punctual", "punctual", &mut script)
        .context("writing the script")?;
    print(&String::from_utf8_lossy(&script))
}

/// Answers a shell that asks for candidates, and ends the process. Does nothing for anybody else.
pub(crate) fn answer_if_asked() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    // Nothing that goes wrong belongs between the letters that somebody types.
    if let Ok(nowhere) = std::fs::File::options().write(true).open("/dev/null") {
        rustix::stdio::dup2_stderr(&nowhere).ok();
    }
    CompleteEnv::with_factory(crate::Cli::command).var(VARIABLE).complete();
}

/// Completes the names of schedules.
pub(crate) fn schedules() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| candidates(current, Kinds { schedules: true, ..Kinds::default() }))
}

/// Completes the names of agents.
pub(crate) fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| candidates(current, Kinds { agents: true, ..Kinds::default() }))
}

/// Completes the names of schedules and agents.
pub(crate) fn schedules_and_agents() -> ArgValueCompleter {
    let kinds = Kinds { schedules: true, agents: true, runs: false };
    ArgValueCompleter::new(move |current: &OsStr| candidates(current, kinds))
}

/// Completes the names of schedules and agents, and ids of runs.
pub(crate) fn runs() -> ArgValueCompleter {
    let kinds = Kinds { schedules: true, agents: true, runs: true };
    ArgValueCompleter::new(move |current: &OsStr| candidates(current, kinds))
}

/// What is completed.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    schedules: bool,
    agents: bool,
    runs: bool,
}

/// A client that says nothing, for what the line and the environment name.
#[derive(Debug, Parser)]
struct Asking {
    #[command(flatten)]
    client: ClientArgs,
}

/// What begins like the word that is being typed; nothing if nobody answers in time.
fn candidates(current: &OsStr, kinds: Kinds) -> Vec<CompletionCandidate> {
    let (Some(current), Some(client)) = (current.to_str(), client(std::env::args())) else { return vec![] };
    // On a thread of its own: a database that does not answer cannot be left behind in any other way.
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let found = wait(async { names(&client.look().await?, kinds).await.map_err(anyhow::Error::from) });
        send.send(found.and_then(|found| found).unwrap_or_default()).ok();
    });
    let found = receive.recv_timeout(PATIENCE).unwrap_or_default();
    let fits = |(name, _): &(String, &'static str)| name.starts_with(current) && is_harmless(name);
    let candidate = |(name, help): (String, &'static str)| CompletionCandidate::new(name).help(Some(help.into()));
    found.into_iter().filter(fits).map(candidate).collect()
}

/// Whom the line asks. Nobody, if it names a server: a token goes to a server that somebody typed when they say go, not while they
/// type.
fn client(words: impl Iterator<Item = String>) -> Option<ClientArgs> {
    let words: Vec<String> = words.collect();
    let is_option = |word: &String, name: &str| word == name || word.starts_with(&format!("{name}="));
    if words.iter().any(|word| is_option(word, "--server")) {
        return None;
    }
    let database = words.iter().enumerate().find(|(_, word)| is_option(word, "--database")).and_then(|(at, word)| {
        word.split_once('=').map(|(_, value)| value.to_owned()).or_else(|| words.get(at + 1).cloned())
    });
    let asking = ["punctual", "--json"].map(str::to_owned).into_iter();
    let asking = asking.chain(database.map(|address| format!("--database={address}")));
    Some(Asking::try_parse_from(asking).ok()?.client)
}

/// A name goes into the line as it is: one that a shell would take for something else is left out.
fn is_harmless(name: &str) -> bool {
    name.chars().all(|letter| letter.is_alphanumeric() || "-_.@/:+,%".contains(letter))
}

async fn names(client: &Client, kinds: Kinds) -> Result<Vec<(String, &'static str)>, Failure> {
    let mut found = vec![];
    if kinds.schedules {
        let schedules: Vec<Schedule> = read_all(&client.list("/api/schedules", &every_face(), NAMES_MAX).await?)?;
        found.extend(schedules.iter().map(|it| (it.shown_name(), "schedule")));
    }
    if kinds.agents {
        let agents: Vec<Agent> = read(&client.get("/api/agents", &Query::default()).await?)?;
        found.extend(agents.into_iter().map(|it| (it.agent_id, "agent")));
    }
    if kinds.runs {
        let queue: Vec<Execution> =
            read_all(&client.list("/api/executions/future", &Query::default(), RUNS_MAX).await?)?;
        let past: Vec<Past> = read_all(&client.history(&Query::default(), RUNS_MAX).await?)?;
        let ids = queue.iter().map(|it| it.execution_id).chain(past.iter().filter_map(|it| it.execution_id));
        found.extend(ids.map(|id| (crate::ids::short(id), "run")));
    }
    found.sort();
    // A schedule and its agent may have one name.
    found.dedup_by(|one, other| one.0 == other.0);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_being_typed_is_sent_nothing() {
        let client = |line: &str| client(line.split_whitespace().map(str::to_owned));
        assert!(client("punctual -- punctual why --server https://elsewhere.example mor").is_none());
        assert!(client("punctual -- punctual why --server=https://elsewhere.example mor").is_none());
        assert!(client("punctual -- punctual why mor").is_some());
        let there = client("punctual -- punctual why --database sqlite:other.db mor").unwrap();
        assert_eq!(there.database.database.to_string(), "other.db");
    }

    #[test]
    fn a_name_that_a_shell_would_carry_out_is_not_completed() {
        for (name, expected) in [
            ("morning-report", true),
            ("@früh", true),
            ("$(reboot)", false),
            ("a b", false),
            ("a;b", false),
            ("`x`", false),
        ] {
            assert_eq!(is_harmless(name), expected, "{name}");
        }
    }
}
