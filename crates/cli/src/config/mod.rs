//! The configuration: `punctual.toml`, what the environment puts over it, and `punctual config`.
//!
//! In: [`Config::load`], or [`Config::parse`] without any I/O. Out: checked values, or every problem at once.
//! Not here: flags, which the commands put over it; carrying out what [`sync`] decides (`engine`).

mod agent;
mod command;
mod conductor;
mod env;
mod error;
mod here;
mod keys;
mod nul;
mod prices;
mod print;
mod schedule;
mod section;
mod server;
mod size;
mod sync;
mod trigger;
mod value;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use punctual_core::time::{Calendar, Zone, Zones};
use punctual_engine::prices::Prices;
use toml::de::DeTable;

use crate::zones::ZoneSource;
use agent::read_cap;
pub(crate) use agent::{Agent, ProcessConfig, RunnerConfig};
pub(crate) use command::{ConfigArgs, run};
pub(crate) use conductor::ConductorConfig;
use env::Overrides;
use error::{ConfigError, Place, Problems};
use keys::{CALENDAR, CONDUCTOR, ENGINE, LIMITS, SERVER, TOP};
use schedule::{FileSchedule, Known};
use section::Section;
pub(crate) use server::ServerConfig;
pub(crate) use sync::{Changes, changes};
use trigger::read_zone;
use value::{Value, short};

/// The file that is read when none is named.
pub(crate) const DEFAULT_FILE: &str = "punctual.toml";

/// Everything that an operator can set, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// The zone of schedules and calendars that name none.
    pub(crate) default_timezone: String,
    /// Where zone data comes from.
    pub(crate) tzdb: ZoneSource,
    /// How a node works.
    pub(crate) engine: EngineConfig,
    /// What clients of the API may take.
    pub(crate) server: ServerConfig,
    /// How many runs of a project may be at work.
    pub(crate) project_caps: BTreeMap<String, NonZeroU32>,
    /// What models cost.
    pub(crate) prices: Prices,
    /// Who starts workflows, and how their schedules behave.
    pub(crate) conductor: ConductorConfig,
    /// The agents by name.
    pub(crate) agents: BTreeMap<String, Agent>,
    /// The calendars by name.
    pub(crate) calendars: BTreeMap<String, Calendar>,
    /// The schedules kept in the file, in its order.
    pub(crate) schedules: Vec<FileSchedule>,
    /// Whether there is no file, or nothing but comments in it: that is no word about schedules.
    pub(crate) is_blank: bool,
}

/// How a node works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineConfig {
    /// How long a silent node keeps its runs.
    pub(crate) lease_duration_seconds: u32,
    /// How many processes a node runs at once.
    pub(crate) executor_pool_size: u32,
    /// How many runs may be at work on all nodes together.
    pub(crate) max_running: Option<NonZeroU32>,
    /// How long a node that stops waits for its runs.
    pub(crate) drain_seconds: u32,
    /// The shortest time between runs of a schedule that is made over the API.
    pub(crate) min_interval_seconds: u32,
    /// Whoever makes a schedule with more runs a day is warned.
    pub(crate) runs_per_day_warning: u32,
    /// How long a run waits for its approval.
    pub(crate) approval_wait_seconds: u32,
}

impl Config {
    /// What only comes into force with a start.
    pub(crate) fn without_what_is_reloaded(&self) -> Config {
        Config {
            project_caps: BTreeMap::new(),
            prices: Prices::default(),
            conductor: self.conductor.without_what_is_reloaded(),
            agents: BTreeMap::new(),
            schedules: vec![],
            is_blank: false,
            engine: EngineConfig { max_running: None, ..self.engine },
            ..self.clone()
        }
    }

    /// Reads a configuration. `file_name` is for messages; paths are relative to `folder`.
    #[cfg_attr(not(test), expect(dead_code, reason = "`load` needs the zone data that the text itself asks for"))]
    pub(crate) fn parse(
        text: &str,
        file_name: &str,
        folder: &Path,
        zones: &Zones,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        read(text, file_name, folder, env, |_| Ok(zones)).map(|(config, _)| config)
    }

    /// Reads a configuration that this program carries with it.
    pub(crate) fn built_in(text: &str, name: &str) -> anyhow::Result<(Config, Zones)> {
        let folder = std::env::current_dir().context("finding the current folder")?;
        Ok(read(text, name, &folder, [], ZoneSource::open)?)
    }

    /// Reads a file and the environment, and opens the zone data that they ask for.
    ///
    /// Without a path it is `punctual.toml` in the current folder, or defaults if there is none. What is wrong with the
    /// configuration itself is a [`ConfigError`] in the chain.
    pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<(Config, Zones)> {
        let default = Path::new(DEFAULT_FILE);
        let file = path.unwrap_or(default);
        refuse_open(file)?;
        let text = match std::fs::read_to_string(file) {
            Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("reading the configuration {}", file.display()))?,
        };
        Config::of_text(&text, file)
    }

    /// Reads what a file holds, or would hold.
    pub(crate) fn of_text(text: &str, file: &Path) -> anyhow::Result<(Config, Zones)> {
        let absolute =
            std::path::absolute(file).with_context(|| format!("finding the folder of {}", file.display()))?;
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
        let (config, zones) = read(text, &file.display().to_string(), folder, env, ZoneSource::open)?;
        let is_blank = text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'));
        Ok((Config { is_blank, ..config }, zones))
    }
}

/// What a file says that anybody can write is not the operator's word.
fn refuse_open(file: &Path) -> anyhow::Result<()> {
    let is_open = std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o002 != 0);
    anyhow::ensure!(
        !is_open,
        "anybody can write {0}, and so say what runs here; `chmod o-w {0}` ends that",
        file.display()
    );
    Ok(())
}

/// Reads a configuration with the zone data that `open` finds for it.
fn read<Z: Borrow<Zones>>(
    text: &str,
    file_name: &str,
    folder: &Path,
    env: impl IntoIterator<Item = (String, String)>,
    open: impl Fn(&ZoneSource) -> anyhow::Result<Z>,
) -> Result<(Config, Z), ConfigError> {
    let problems = Problems::of(text);
    let read = read_all(text, folder, env, open, &problems);
    problems.into_result(file_name)?;
    Ok(read.expect("what cannot be read is reported"))
}

/// `None` only where a problem has been reported. With any problem reported, the rest is not to be used.
fn read_all<Z: Borrow<Zones>>(
    text: &str,
    folder: &Path,
    env: impl IntoIterator<Item = (String, String)>,
    open: impl Fn(&ZoneSource) -> anyhow::Result<Z>,
    problems: &Problems<'_>,
) -> Option<(Config, Z)> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let place = error.span().map_or(Place::Nowhere, Place::File);
        problems.add(&place, "", error.message(), "see https://toml.io for how TOML is written");
    }
    if !errors.is_empty() {
        // What can be made of the rest is guesswork.
        return None;
    }
    nul::refuse(table.get_ref(), problems);
    let overrides = Overrides::read(env, problems);
    let mut top = Section::top(problems, table.get_ref(), &TOP);
    overrides.apply_top(&mut top);

    let tzdb = read_zone_source(&top, folder);
    // The rest is looked at with the data that this program carries.
    let zones = open(&tzdb).or_else(|error| {
        refuse_zone_data(&top, problems, &error);
        open(&ZoneSource::Bundled)
    });
    let zones = zones.ok()?;
    let default_zone = read_default_zone(&top, problems, zones.borrow())?;
    let engine = read_engine(&top, &overrides, problems);
    let given = top.get("server").and_then(|value| value.section(&SERVER));
    let server = ServerConfig::read(&given.unwrap_or_else(|| Section::absent(problems, "server", &SERVER)));
    let limits = top.get("limits").and_then(|value| value.section(&LIMITS));
    let project_caps = limits.and_then(|limits| limits.get("projects").map(read_project_caps)).unwrap_or_default();
    let agents = read_named(&top, "agents", |_, value| Agent::read(value, folder));
    let calendars =
        read_named(&top, "calendars", |name, value| read_calendar(name, value, &default_zone, zones.borrow()));
    let given = top.get("conductor").and_then(|value| value.section(&CONDUCTOR));
    let section = given.unwrap_or_else(|| Section::absent(problems, "conductor", &CONDUCTOR));
    let utc = zones.borrow().get("UTC").unwrap_or_else(|_| default_zone.clone());
    let conductor = ConductorConfig::read(&section, folder, &agents, zones.borrow(), &utc);
    let known = Known { zones: zones.borrow(), default_zone: &default_zone, agents: &agents, calendars: &calendars };
    let schedules = read_schedules(&top, &known);
    let config = Config {
        default_timezone: default_zone.name().to_owned(),
        tzdb,
        engine,
        server,
        project_caps,
        conductor,
        prices: top.get("prices").and_then(prices::read).unwrap_or_default(),
        agents: agents.into_iter().filter_map(|(name, agent)| Some((name, agent?))).collect(),
        calendars: calendars.into_iter().filter_map(|(name, calendar)| Some((name, calendar?))).collect(),
        schedules,
        is_blank: false,
    };
    Some((config, zones))
}

fn read_zone_source(top: &Section<'_>, folder: &Path) -> ZoneSource {
    let Some((value, text)) = top.get("tzdb").and_then(|value| Some((value, value.text()?))) else {
        return ZoneSource::Newest;
    };
    let Ok(source) = text.parse();
    match source {
        // Whoever sets a variable means a path as their shell does.
        ZoneSource::Folder(data) if value.is_of_file() => ZoneSource::Folder(folder.join(data)),
        source => source,
    }
}

fn refuse_zone_data(top: &Section<'_>, problems: &Problems<'_>, error: &anyhow::Error) {
    let fix = "use newest, bundled, system or a zoneinfo folder";
    match top.get("tzdb") {
        Some(value) => value.refuse(format!("{error:#}"), fix),
        None => problems.add(&Place::Nowhere, "tzdb", format!("{error:#}"), fix),
    }
}

fn read_default_zone(top: &Section<'_>, problems: &Problems<'_>, zones: &Zones) -> Option<Zone> {
    let given = top.get("default_timezone");
    let own = given.and_then(|value| value.text().and_then(|name| read_zone(value, name, zones)));
    let zone = own.or_else(|| zones.get("UTC").ok());
    if zone.is_none() {
        let fix = "set default_timezone, or use other zone data";
        problems.add(&Place::Nowhere, "default_timezone", "the zone data has no UTC", fix);
    }
    zone
}

fn read_engine(top: &Section<'_>, overrides: &Overrides, problems: &Problems<'_>) -> EngineConfig {
    let given = top.get("engine").and_then(|value| value.section(&ENGINE));
    let mut section = given.unwrap_or_else(|| Section::absent(problems, "engine", &ENGINE));
    overrides.apply_engine(&mut section);
    let number =
        |key, range, default| section.get(key).and_then(|value| value.integer(range)).unwrap_or(default) as u32;
    EngineConfig {
        lease_duration_seconds: number("lease_duration_seconds", 1..=3_600, 30),
        executor_pool_size: number("executor_pool_size", 1..=10_000, 8),
        max_running: section.get("max_running").and_then(read_cap),
        drain_seconds: number("drain_seconds", 0..=86_400, 30),
        min_interval_seconds: number("min_interval_seconds", 1..=86_400, 300),
        approval_wait_seconds: number("approval_wait_seconds", 1..=31_536_000, 86_400),
        runs_per_day_warning: number("runs_per_day_warning", 1..=1_000_000, 500),
    }
}

fn read_project_caps(value: &Value<'_>) -> BTreeMap<String, NonZeroU32> {
    let entries = value.named().unwrap_or_default().into_iter();
    entries.filter_map(|(project, value)| Some((project.to_owned(), read_cap(&value)?))).collect()
}

/// Reads the tables of a table whose keys are names. What was refused stays, as `None`, for others to refer to.
fn read_named<T>(
    top: &Section<'_>,
    key: &str,
    read: impl Fn(&str, &Value<'_>) -> Option<T>,
) -> BTreeMap<String, Option<T>> {
    let tables = top.get(key).and_then(Value::named).unwrap_or_default();
    let one = |(name, value): (&str, Value<'_>)| (name.to_owned(), read(name, &value).filter(|_| value.is_name(name)));
    tables.into_iter().map(one).collect()
}

fn read_calendar(name: &str, value: &Value<'_>, default_zone: &Zone, zones: &Zones) -> Option<Calendar> {
    let section = value.section(&CALENDAR)?;
    let own = section.get("zone").map(|value| value.text().and_then(|name| read_zone(value, name, zones)));
    let zone = own.unwrap_or_else(|| Some(default_zone.clone()))?;
    section.deserialize(&[("name", name), ("zone", zone.name())])
}

fn read_schedules(top: &Section<'_>, known: &Known<'_>) -> Vec<FileSchedule> {
    let mut schedules: Vec<FileSchedule> = vec![];
    let mut seen: BTreeMap<(Option<String>, String), String> = BTreeMap::new();
    for value in top.get("schedules").and_then(Value::list).unwrap_or_default() {
        let Some(schedule) = FileSchedule::read(&value, known) else { continue };
        let key = (schedule.project.clone(), schedule.name.clone());
        if let Some(first) = seen.insert(key, value.path.clone()) {
            let problem = format!("the name {} is that of {first} already", short(&schedule.name));
            value.refuse(problem, "use another name or another project");
        }
        schedules.push(schedule);
    }
    schedules
}
