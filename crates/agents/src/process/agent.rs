//! The settings of a process agent, as the operator wrote them, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::environment::{is_loader_name, is_own_name};
use super::limits::Limits;
use crate::secrets::SecretSource;

/// How long work that is asked to stop has, unless the operator says otherwise.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(10);

/// The longest grace: a run that is to stop must not hold up a shutdown for ever.
pub const GRACE_MAX: Duration = Duration::from_secs(3600);

/// How many bytes of the end of each of stdout and stderr are kept, unless the operator says otherwise.
pub const OUTPUT_DEFAULT: usize = 64 * 1024;

/// The most that can be kept of each: a report is one entry of the journal, and each end of a run writes one.
pub const OUTPUT_MAX: usize = 1024 * 1024;

/// The smallest address space: below it the supervisor's second stage itself could not begin the command.
pub const ADDRESS_SPACE_MIN: u64 = 64 * 1024 * 1024;

/// The fewest open files: below it hardly a program gets through its loader.
pub const OPEN_FILES_MIN: u64 = 16;

/// What to run and how. Only the operator's configuration makes one: no request carries a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessAgent {
    /// The program and its arguments, never read by a shell. A program without a slash is looked for on the `PATH` that
    /// the work gets, which is the server's unless `env` has another; a relative path starts at `folder`.
    pub command: Vec<String>,
    /// The working directory; the server's own if there is none.
    pub folder: Option<PathBuf>,
    /// Variables that the work gets, stronger than all others. Names of the dynamic loader are allowed here and only
    /// here.
    pub env: BTreeMap<String, String>,
    /// Names of variables that the work gets from the server's environment, beside the few that it always gets.
    pub env_pass: Vec<String>,
    /// Variables whose values are kept elsewhere and hidden in whatever the work prints.
    pub secrets: BTreeMap<String, SecretSource>,
    /// How long the work has between being asked to stop and being killed.
    pub grace: Duration,
    /// What the work may use.
    pub limits: Limits,
    /// How many bytes of the end of stdout are kept; as many again of stderr when the run fails.
    pub output_max: usize,
    /// What the work reads on its standard input.
    pub stdin: Stdin,
    /// The model that the work uses, for results with tokens that do not name it.
    pub model: Option<String>,
}

/// What the work reads on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// The whole context of the run, as a JSON object.
    #[default]
    Context,
    /// The prompt alone, as the tools of model makers read it.
    Prompt,
}

/// What is wrong with the settings of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// There is nothing to run.
    #[error("the command is empty: it needs at least a program")]
    EmptyCommand,
    /// No operating system can pass it on.
    #[error("{0} holds a NUL character")]
    Nul(&'static str),
    /// Not the name of a variable.
    #[error("{0:?} is not the name of an environment variable")]
    VariableName(String),
    /// A name that only Punctual sets.
    #[error("the variable {0} cannot be set: names that begin with PUNCTUAL_ are Punctual's own")]
    OwnVariable(String),
    /// A name through which whoever starts the server could change what the command is.
    #[error("the variable {0} cannot be passed on, as it changes which code runs: set it in `env`")]
    LoaderVariable(String),
    /// A number outside its bounds.
    #[error("{what} is {given}, but must be from {least} to {most}")]
    Bounds {
        /// The setting.
        what: &'static str,
        /// What was asked for.
        given: u64,
        /// The least that is allowed.
        least: u64,
        /// The most that is allowed.
        most: u64,
    },
}

impl ProcessAgent {
    /// An agent that runs this, with everything else at its default.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> ProcessAgent {
        ProcessAgent {
            command: command.into_iter().map(Into::into).collect(),
            folder: None,
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            secrets: BTreeMap::new(),
            grace: GRACE_DEFAULT,
            limits: Limits::default(),
            output_max: OUTPUT_DEFAULT,
            stdin: Stdin::default(),
            model: None,
        }
    }

    /// Says what is wrong first with the settings. Does not look for the program: it may come and go while the server runs ([`lacks`](ProcessAgent::lacks) does).
    pub fn check(&self) -> Result<(), AgentError> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// All that is wrong with the settings.
    pub fn problems(&self) -> Vec<AgentError> {
        let mut found = vec![];
        let mut refuse = |is_wrong: bool, error: AgentError| found.extend(is_wrong.then_some(error));
        refuse(self.command.first().is_none_or(String::is_empty), AgentError::EmptyCommand);
        refuse(self.command.iter().any(|argument| argument.contains('\0')), AgentError::Nul("the command"));
        let has_nul = |folder: &PathBuf| folder.as_os_str().as_encoded_bytes().contains(&0);
        refuse(self.folder.as_ref().is_some_and(has_nul), AgentError::Nul("the folder"));
        refuse(self.env.values().any(|value| value.contains('\0')), AgentError::Nul("the value of a variable"));
        for name in self.env.keys().chain(self.secrets.keys()).chain(&self.env_pass) {
            found.extend(check_name(name).err());
        }
        let loader = self.env_pass.iter().filter(|name| is_loader_name(name.as_bytes()));
        found.extend(loader.map(|name| AgentError::LoaderVariable(name.clone())));
        let mut bounds = |what, given, least, most| found.extend(check_bounds(what, given, least, most).err());
        bounds("the grace in milliseconds", millis(self.grace), 0, millis(GRACE_MAX));
        bounds("output_max", self.output_max as u64, 0, OUTPUT_MAX as u64);
        bounds("the limit of open files", self.limits.open_files, OPEN_FILES_MIN, u64::MAX);
        if let Some(bytes) = self.limits.address_space_bytes {
            bounds("the limit of address space", bytes, ADDRESS_SPACE_MIN, u64::MAX);
        }
        if let Some(seconds) = self.limits.cpu_seconds {
            // A limit of no seconds means the least there is to Linux, which is one second: say what is meant.
            bounds("the limit of processor seconds", seconds, 1, u64::from(u32::MAX));
        }
        found
    }
}

fn check_name(name: &str) -> Result<(), AgentError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(AgentError::VariableName(name.to_owned()));
    }
    if is_own_name(name.as_bytes()) { Err(AgentError::OwnVariable(name.to_owned())) } else { Ok(()) }
}

fn check_bounds(what: &'static str, given: u64, least: u64, most: u64) -> Result<(), AgentError> {
    if (least..=most).contains(&given) { Ok(()) } else { Err(AgentError::Bounds { what, given, least, most }) }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut ProcessAgent), expected: &str) {
        let mut agent = ProcessAgent::new(["true"]);
        change(&mut agent);
        assert_eq!(agent.check().map_err(|error| error.to_string()), Err(expected.to_owned()));
    }

    #[test]
    fn the_defaults_are_in_order() {
        assert_eq!(ProcessAgent::new(["true"]).check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_run_is_refused_before_it_is_tried() {
        check(|agent| agent.command.clear(), "the command is empty: it needs at least a program");
        check(|agent| agent.command = vec![String::new()], "the command is empty: it needs at least a program");
        check(|agent| agent.command.push("a\0b".into()), "the command holds a NUL character");
        check(|agent| agent.folder = Some("a\0b".into()), "the folder holds a NUL character");
        check(|agent| agent.output_max = OUTPUT_MAX + 1, "output_max is 1048577, but must be from 0 to 1048576");
    }

    #[test]
    fn names_that_change_what_runs_are_refused_unless_the_operator_sets_their_value() {
        check(
            |agent| agent.env_pass.push("LD_PRELOAD".into()),
            "the variable LD_PRELOAD cannot be passed on, as it changes which code runs: set it in `env`",
        );
        let mut agent = ProcessAgent::new(["true"]);
        agent.env.insert("LD_LIBRARY_PATH".into(), "lib".into());
        assert_eq!(agent.check(), Ok(()));
    }

    #[test]
    fn names_of_punctual_are_refused_everywhere() {
        let refusal = "the variable PUNCTUAL_TOKEN cannot be set: names that begin with PUNCTUAL_ are Punctual's own";
        check(|agent| agent.env_pass.push("PUNCTUAL_TOKEN".into()), refusal);
        check(|agent| drop(agent.env.insert("PUNCTUAL_TOKEN".into(), "x".into())), refusal);
        check(|agent| agent.env_pass.push("A=B".into()), "\"A=B\" is not the name of an environment variable");
    }
}
