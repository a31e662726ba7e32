//! Agents: how to do a kind of work, as the operator says.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use punctual_agents::process::{ADDRESS_SPACE_MIN, AgentError, GRACE_MAX, OPEN_FILES_MIN, SecretSource, Stdin};
use punctual_core::Elapsed;
use punctual_core::plan::AgentApproval;
use punctual_engine::roster::Risk;
use serde_json::{Map, Value as Json, json};

use super::keys::{AGENT, AGENT_LIMITS, SECRET};
use super::section::{Section, snake_case};
use super::size::Size;
use super::value::{Value, short};
use super::words::Word;
use crate::up::process_agent;

/// The most runs that a cap may allow: more would be none.
const RUNNING_MAX: u64 = 1_000_000;

/// Runners that other releases bring.
const RUNNERS_TO_COME: [&str; 5] = ["http", "llm", "worker", "workflow", "command"];

/// The variables of this prefix are Punctual's own, and tokens are among them.
const OWN_VARIABLES: &str = "PUNCTUAL_";

/// An agent of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agent {
    /// What carries its work out.
    pub(crate) runner: RunnerConfig,
    /// How long a run may take, unless its schedule says otherwise.
    pub(crate) timeout: Elapsed,
    /// How many of its runs may be at work, whatever schedules say.
    pub(crate) max_concurrent: Option<NonZeroU32>,
    /// The most that its work may do.
    pub(crate) risk: Risk,
    /// Which of its runs need an approval.
    pub(crate) approval: AgentApproval,
}

/// What carries an agent's work out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunnerConfig {
    /// A process of this machine.
    Process(ProcessConfig),
}

/// How a process is started and stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessConfig {
    /// Program and arguments; at least one, and read by no shell.
    pub(crate) command: Vec<String>,
    /// Where it runs.
    pub(crate) folder: PathBuf,
    /// Variables that it is given.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables that it is handed on from Punctual's own environment.
    pub(crate) env_pass: Vec<String>,
    /// Variables whose values are kept elsewhere, and where.
    pub(crate) secrets: BTreeMap<String, SecretSource>,
    /// What it reads.
    pub(crate) stdin: Stdin,
    /// The model that it uses, where its results do not name it.
    pub(crate) model: Option<String>,
    /// How long it has to end when asked.
    pub(crate) grace: Elapsed,
    /// What the operating system lets it have.
    pub(crate) limits: ProcessLimits,
}

/// What the operating system lets a process have; `None` is as much as Punctual itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProcessLimits {
    /// Processor time, a whole number of seconds.
    pub(crate) cpu: Option<Elapsed>,
    /// Memory.
    pub(crate) memory: Option<Size>,
    /// Files held open.
    pub(crate) open_files: Option<u64>,
    /// Processes of its user.
    pub(crate) processes: Option<u64>,
    /// The largest file written.
    pub(crate) file_size: Option<Size>,
}

impl Agent {
    /// Reads an agent. What is missing or wrong is reported, and something stands in its place.
    pub(super) fn read(value: &Value<'_>, folder: &Path) -> Option<Agent> {
        let runner = value.named()?.into_iter().find(|(key, _)| snake_case(key) == "runner");
        // The keys of a runner that is not there yet are not known either.
        if let Some((_, runner)) = &runner
            && let Some(text) = runner.text()
            && text != "process"
        {
            refuse_runner(runner, text);
            if RUNNERS_TO_COME.contains(&text) {
                return None;
            }
        }
        let section = value.section(&AGENT)?;
        section.require("runner", "\"process\"");
        let process = ProcessConfig::read(&section, folder);
        refuse_what_cannot_run(&section, &process);
        let agent = Agent {
            runner: RunnerConfig::Process(process),
            timeout: section.get("timeout").and_then(Value::some_duration).unwrap_or(Elapsed::from_seconds(600)),
            max_concurrent: section.get("max_concurrent").and_then(read_cap),
            risk: section.get("risk").and_then(Value::word).unwrap_or(Risk::Exec),
            approval: section.get("approval").and_then(Value::word).unwrap_or_default(),
        };
        Some(agent)
    }

    /// Every key of the agent and its value.
    pub(super) fn settings(&self) -> Map<String, Json> {
        let RunnerConfig::Process(process) = &self.runner;
        let settings = json!({
            "runner": "process",
            "command": process.command,
            "folder": process.folder.to_string_lossy(),
            "env": process.env,
            "env_pass": process.env_pass,
            "secrets": process.secrets.iter().map(|(name, source)| (name.clone(), shown(source))).collect::<Map<_, _>>(),
            "stdin": process.stdin.word(),
            "model": process.model,
            "timeout": self.timeout,
            "grace": process.grace,
            "max_concurrent": self.max_concurrent,
            "risk": self.risk.word(),
            "approval": self.approval.word(),
            "limits": process.limits.settings(),
        });
        super::print::object(settings)
    }
}

impl ProcessConfig {
    fn read(section: &Section<'_>, folder: &Path) -> ProcessConfig {
        let command = section.require("command", "[\"python3\", \"report.py\"]").and_then(read_command);
        let own_folder = section.get("folder").and_then(Value::text);
        ProcessConfig {
            command: command.unwrap_or_default(),
            folder: own_folder.map_or_else(|| folder.to_owned(), |own_folder| folder.join(own_folder)),
            env: section.get("env").and_then(read_env).unwrap_or_default(),
            env_pass: section.get("env_pass").and_then(read_env_pass).unwrap_or_default(),
            secrets: section.get("secrets").and_then(|value| read_secrets(value, folder)).unwrap_or_default(),
            stdin: section.get("stdin").and_then(Value::word).unwrap_or_default(),
            model: section.get("model").and_then(Value::text).map(str::to_owned),
            grace: section.get("grace").and_then(read_grace).unwrap_or(Elapsed::from_seconds(10)),
            limits: section.get("limits").and_then(ProcessLimits::read).unwrap_or_default(),
        }
    }
}

impl ProcessLimits {
    fn read(value: &Value<'_>) -> Option<ProcessLimits> {
        let section = value.section(&AGENT_LIMITS)?;
        let count = |key| section.get(key).and_then(|value| value.integer(1..=u64::MAX));
        Some(ProcessLimits {
            cpu: section.get("cpu").and_then(read_cpu),
            memory: section.get("memory").and_then(read_memory),
            open_files: section.get("open_files").and_then(|value| value.integer(OPEN_FILES_MIN..=u64::MAX)),
            processes: count("processes"),
            file_size: section.get("file_size").and_then(Value::size),
        })
    }

    pub(super) fn settings(&self) -> Json {
        json!({
            "cpu": self.cpu,
            "memory": self.memory.map(|size| size.to_string()),
            "open_files": self.open_files,
            "processes": self.processes,
            "file_size": self.file_size.map(|size| size.to_string()),
        })
    }
}

/// Reads a cap on runs at work.
pub(super) fn read_cap(value: &Value<'_>) -> Option<NonZeroU32> {
    let cap = value.integer(1..=RUNNING_MAX)?;
    NonZeroU32::new(cap as u32)
}

/// Reports what the runner would refuse, so that a start finds nothing that a check has not told.
fn refuse_what_cannot_run(section: &Section<'_>, process: &ProcessConfig) {
    for problem in process_agent(process).problems() {
        let (key, problem, fix) = match problem {
            AgentError::LoaderVariable(name) => {
                let problem = format!("the variable {name} cannot be passed on, as it changes which code runs");
                ("env_pass", problem, "set it in env".to_owned())
            }
            AgentError::Bounds { what, given, least, most } => {
                let key = if what.contains("grace") { "grace" } else { "limits" };
                let fix =
                    if most == u64::MAX { format!("use {least} or more") } else { format!("use {least} to {most}") };
                (key, format!("{what} is {given}"), fix)
            }
            AgentError::Nul(what @ "the folder") => {
                ("folder", format!("{what} holds a zero character"), "leave it out".to_owned())
            }
            // These have been told where they stand.
            AgentError::EmptyCommand
            | AgentError::Nul(_)
            | AgentError::VariableName(_)
            | AgentError::OwnVariable(_) => {
                continue;
            }
        };
        match section.get(key) {
            Some(value) => value.refuse(problem, fix),
            None => section.refuse(problem, fix),
        }
    }
}

fn refuse_runner(runner: &Value<'_>, text: &str) {
    if RUNNERS_TO_COME.contains(&text) {
        let problem = format!("the runner {text:?} comes with a later release");
        runner.refuse(problem, "use \"process\", or leave the agent out for now");
    } else {
        runner.refuse_name(text, format!("there is no runner {}", short(text)), ["process"].into_iter());
    }
}

fn read_command(value: &Value<'_>) -> Option<Vec<String>> {
    if !value.is_list() {
        let text = value.text()?;
        let words: Vec<String> = text.split_whitespace().map(|word| format!("{word:?}")).collect();
        value.refuse("a command is a list, since no shell reads it", format!("use [{}]", words.join(", ")));
        return None;
    }
    let command: Vec<String> = value.texts()?.into_iter().map(str::to_owned).collect();
    if command.first().is_none_or(|program| program.is_empty()) {
        value.refuse("there is no program in it", "use program and arguments, like [\"python3\", \"report.py\"]");
        return None;
    }
    Some(command)
}

fn read_env(value: &Value<'_>) -> Option<BTreeMap<String, String>> {
    let mut env = BTreeMap::new();
    for (name, value) in value.named()? {
        let Some(text) = value.text() else { continue };
        if is_variable(name, &value) {
            env.insert(name.to_owned(), text.to_owned());
        }
    }
    Some(env)
}

fn read_env_pass(value: &Value<'_>) -> Option<Vec<String>> {
    let mut names = vec![];
    for value in value.list()? {
        let Some(name) = value.text() else { continue };
        if is_variable(name, &value) && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Some(names)
}

fn read_secrets(value: &Value<'_>, folder: &Path) -> Option<BTreeMap<String, SecretSource>> {
    let mut secrets = BTreeMap::new();
    for (name, value) in value.named()? {
        if !is_variable(name, &value) {
            continue;
        }
        secrets.extend(read_secret(&value, folder).map(|source| (name.to_owned(), source)));
    }
    Some(secrets)
}

/// Reads where a secret is.
pub(super) fn read_secret(value: &Value<'_>, folder: &Path) -> Option<SecretSource> {
    if value.is_text() {
        value.refuse(
            "a secret does not stand in the file",
            "say where it is: { env = \"NAME\" } or { file = \"PATH\" }",
        );
        return None;
    }
    let section = value.section(&SECRET)?;
    let env = section.get("env").and_then(Value::text).map(|name| SecretSource::Env(name.to_owned()));
    let file = section.get("file").and_then(Value::text).map(|path| SecretSource::File(folder.join(path)));
    match (env, file) {
        (Some(source), None) | (None, Some(source)) => Some(source),
        _ => {
            value.refuse("a secret is in one place", "use { env = \"NAME\" } or { file = \"PATH\" }");
            None
        }
    }
}

pub(super) fn shown(source: &SecretSource) -> Json {
    match source {
        SecretSource::Env(name) => json!({"env": name}),
        SecretSource::File(path) => json!({"file": path.to_string_lossy()}),
    }
}

/// Whether an agent may be given a variable of this name; reports if not.
fn is_variable(name: &str, value: &Value<'_>) -> bool {
    if name.is_empty() || name.contains(['=', '\0']) {
        value.refuse(format!("{} cannot be the name of a variable", short(name)), "use a name without =, like API_KEY");
        return false;
    }
    if name.starts_with(OWN_VARIABLES) {
        let problem = format!("variables that begin with {OWN_VARIABLES} are Punctual's own");
        value.refuse(problem, "use another name");
        return false;
    }
    true
}

fn read_cpu(value: &Value<'_>) -> Option<Elapsed> {
    let time = value.some_duration()?;
    if time.milliseconds() % 1_000 != 0 {
        value.refuse("processor time is limited in whole seconds", "leave the milliseconds out");
        return None;
    }
    if i64::from(u32::MAX) < time.milliseconds() / 1_000 {
        value.refuse("this is more processor time than can be counted", "use less, or leave it out");
        return None;
    }
    Some(time)
}

fn read_grace(value: &Value<'_>) -> Option<Elapsed> {
    let grace = value.duration()?;
    if GRACE_MAX.as_millis() < u128::from(grace.milliseconds().unsigned_abs()) {
        value.refuse("nobody who stops a node waits so long", "use \"1h\" or less");
        return None;
    }
    Some(grace)
}

fn read_memory(value: &Value<'_>) -> Option<Size> {
    let size = value.size()?;
    if size.bytes < ADDRESS_SPACE_MIN {
        value.refuse("no program begins in so little memory", "use \"64MiB\" or more");
        return None;
    }
    Some(size)
}
