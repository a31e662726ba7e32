//! What becomes of a crontab: agents and schedules of a configuration, as text.
//!
//! Pure. The same happens as under cron, as far as it can: no retry, no catch-up, runs beside each other, the command in a shell in the
//! home folder of the user with cron's own `PATH`. What cannot be carried over is a remark on its line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use punctual_core::time::{Cron, Dialect, Zones};

use super::parse::{Crontab, Entry, Remark};
use crate::output::clean;

/// What cron gives a command to find programs, unless the crontab says otherwise.
const PATH: &str = "/usr/bin:/bin";

/// What cron starts commands with, unless the crontab says otherwise.
const SHELL: &str = "/bin/sh";

/// Shells that understand `exec </dev/null`.
const POSIX_SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// Settings that are for cron and not for commands.
const FOR_CRON: [&str; 9] = [
    "MAILTO",
    "MAILFROM",
    "CRON_TZ",
    "RANDOM_DELAY",
    "CONTENT_TYPE",
    "CONTENT_TRANSFER_ENCODING",
    "START_HOURS_RANGE",
    "LOGNAME",
    "USER",
];

/// Names that only Punctual gives.
const OWN: &str = "PUNCTUAL_";

/// What a part of a command begins with that is not about anything yet.
const GUARDS: [&str; 10] = ["cd", "test", "[", "[[", "sleep", "set", "export", "if", "exit", "umask"];

/// What stands before the program that it is about.
const WRAPPERS: [&str; 12] =
    ["sudo", "nice", "ionice", "env", "flock", "timeout", "exec", "command", "time", "then", "sh", "bash"];

/// The longest name that is made of a command.
const NAME_MAX: usize = 40;

/// What a crontab is turned into a configuration with.
pub(super) struct Around<'a> {
    /// The crontab, for people.
    pub(super) source: &'a str,
    /// The zone of entries that name none.
    pub(super) zone: &'a str,
    pub(super) zones: &'a Zones,
    /// Who would run it all.
    pub(super) user: &'a str,
    /// The home folder of a user, if it is there.
    pub(super) home: &'a dyn Fn(&str) -> Option<String>,
    /// Whose crontab it is, if its entries do not say.
    pub(super) owner: &'a str,
}

/// What there is already.
#[derive(Default)]
pub(super) struct Names {
    /// Names that are taken.
    pub(super) taken: BTreeSet<String>,
    /// Commands that agents of the configuration have, with the agents' names.
    pub(super) commands: BTreeMap<Vec<String>, String>,
}

/// What it became.
pub(super) struct Fragment {
    /// Lines of a configuration.
    pub(super) text: String,
    /// The name, the cron and the command of each schedule.
    pub(super) made: Vec<Made>,
    /// What there is to know, by line.
    pub(super) remarks: Vec<Remark>,
}

/// One agent with its schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) source: String,
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) cron: String,
    pub(super) zone: String,
    pub(super) is_enabled: bool,
    pub(super) command: String,
}

/// Turns a crontab into a configuration.
pub(super) fn fragment(crontab: Crontab, around: &Around<'_>, names: &mut Names) -> Fragment {
    let mut remarks = crontab.remarks;
    let mut made = vec![];
    let mut text = String::new();
    let mut told_of_mail = BTreeSet::new();
    for entry in &crontab.entries {
        let mut own: Vec<Remark> = vec![];
        let remark = |text: String, is_left_out| Remark { line: entry.line, text, is_left_out };
        match one(entry, around, names, &mut own) {
            Ok(agent) => {
                if let Some(mail) = entry.settings.get("MAILTO").filter(|mail| !mail.is_empty())
                    && told_of_mail.insert(mail.clone())
                {
                    let text =
                        format!("what it prints is not mailed to {mail}: `punctual logs {}` shows it", agent.made.name);
                    own.push(remark(text, false));
                }
                text += &agent.text(around, entry, &own);
                made.push(agent.made);
            }
            Err(problem) => own.push(remark(problem, true)),
        }
        remarks.extend(own);
    }
    remarks.sort_by_key(|remark| remark.line);
    for remark in remarks.iter().filter(|remark| remark.is_left_out) {
        writeln!(text, "# {}, line {} is left out: {}", clean(around.source), remark.line, clean(&remark.text))
            .expect("a text takes everything");
    }
    Fragment { text, made, remarks }
}

/// What an entry becomes.
struct Agent {
    made: Made,
    command: Vec<String>,
    folder: String,
    env: BTreeMap<String, String>,
    jitter: Option<String>,
}

fn one(entry: &Entry, around: &Around<'_>, names: &mut Names, remarks: &mut Vec<Remark>) -> Result<Agent, String> {
    let mut remark = |text: String| remarks.push(Remark { line: entry.line, text, is_left_out: false });
    Cron::parse(&entry.cron, Some(Dialect::Unix)).map_err(|error| format!("{:?}: {error}", entry.cron))?;
    let zone = match entry.settings.get("CRON_TZ") {
        Some(name) => around.zones.get(name).map_err(|error| format!("CRON_TZ: {error}"))?.name().to_owned(),
        None => around.zone.to_owned(),
    };
    let shell = entry.settings.get("SHELL").map_or(SHELL, String::as_str);
    let command = command(shell, entry);
    if let Some(name) = names.commands.get(&command) {
        return Err(format!("agent {name} has this command already"));
    }
    let user = entry.user.as_deref().unwrap_or(around.owner);
    let is_ours = user == around.user;
    if !is_ours {
        remark(format!(
            "it is for the user {user}, and would run as {}: it is off (enabled = false) until you have seen to that",
            around.user
        ));
    }
    let home = entry.settings.get("HOME").cloned().or_else(|| (around.home)(user));
    let mut env = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
    for (name, value) in entry.settings.iter().filter(|(name, _)| !FOR_CRON.contains(&name.as_str())) {
        match name.starts_with(OWN) {
            true => remark(format!("{name} is not given to it: names that begin with {OWN} are Punctual's own")),
            false => drop(env.insert(name.clone(), value.clone())),
        }
    }
    let delay = entry.settings.get("RANDOM_DELAY").map(|text| text.trim().parse::<u32>());
    let jitter = match delay {
        Some(Ok(minutes @ 1..=1_440)) => Some(format!("{minutes}m")),
        Some(Ok(0)) | None => None,
        Some(_) => {
            remark("RANDOM_DELAY is no number of minutes, and left out".to_owned());
            None
        }
    };
    if entry.settings.contains_key("START_HOURS_RANGE") {
        remark("START_HOURS_RANGE is left out: it is for anacron".to_owned());
    }
    let name = free_name(&name_of(&entry.command, entry.line), &mut names.taken);
    let made = Made {
        source: around.source.to_owned(),
        line: entry.line,
        name,
        cron: entry.cron.clone(),
        zone,
        is_enabled: is_ours,
        command: entry.command.clone(),
    };
    Ok(Agent { made, command, folder: home.unwrap_or_else(|| "/".to_owned()), env, jitter })
}

/// What runs: the same shell with the same text, and on standard input what cron would give it instead of the run's context.
fn command(shell: &str, entry: &Entry) -> Vec<String> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match &entry.stdin {
        Some(stdin) => texts(&["/bin/sh", "-c", "printf %s \"$2\" | \"$0\" -c \"$1\"", shell, &entry.command, stdin]),
        None if POSIX_SHELLS.contains(&shell.rsplit('/').next().unwrap_or_default()) => {
            texts(&[shell, "-c", &format!("exec </dev/null; {}", entry.command)])
        }
        None => texts(&["/bin/sh", "-c", "exec \"$0\" -c \"$1\" </dev/null", shell, &entry.command]),
    }
}

impl Agent {
    fn text(&self, around: &Around<'_>, entry: &Entry, remarks: &[Remark]) -> String {
        let Made { name, cron, zone, is_enabled, .. } = &self.made;
        let user = entry.user.as_deref().map(|user| format!("{user} ")).unwrap_or_default();
        let mut lines =
            vec![format!("# {}, line {}: {cron} {user}{}", clean(around.source), entry.line, clean(&entry.command))];
        lines.extend(remarks.iter().map(|remark| format!("# note: {}", clean(&remark.text))));
        lines.push(format!("[agents.{name}]"));
        lines.push("runner = \"process\"".to_owned());
        let command: Vec<String> = self.command.iter().map(|text| quoted(text)).collect();
        lines.push(format!("command = [{}]", command.join(", ")));
        lines.push(format!("folder = {}", quoted(&self.folder)));
        let env: Vec<String> =
            self.env.iter().map(|(name, value)| format!("{} = {}", key(name), quoted(value))).collect();
        lines.push(format!("env = {{ {} }}", env.join(", ")));
        lines.push("timeout = \"1d\"".to_owned());
        lines.push(String::new());
        lines.push("[[schedules]]".to_owned());
        lines.push(format!("name = {}", quoted(name)));
        lines.push(format!("agent = {}", quoted(name)));
        lines.push(format!("cron = {}", quoted(cron)));
        lines.push("dialect = \"unix\"".to_owned());
        lines.push(format!("timezone = {}", quoted(zone)));
        lines.extend(self.jitter.iter().map(|jitter| format!("jitter = \"{jitter}\"")));
        lines.extend(
            ["overlap = \"allow\"", "max_concurrent = 10", "catch_up = \"none\"", "max_attempts = 1"]
                .map(str::to_owned),
        );
        lines.extend((!is_enabled).then(|| "enabled = false".to_owned()));
        lines.join("\n") + "\n\n"
    }
}

/// A text on one line. What JSON writes between quotes, TOML reads; control characters have been refused.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A key, in quotes if it needs them.
fn key(name: &str) -> String {
    let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_bare { name.to_owned() } else { quoted(name) }
}

/// A name that says what a command is about: that of its first program that does something.
fn name_of(command: &str, line: usize) -> String {
    let telling = command.split(['&', '|', ';', '(', ')']).find_map(|part| {
        let words = part.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        let mut words =
            words.filter(|word| !word.is_empty() && !word.starts_with('-') && !word.contains(['=', '$', '<', '>']));
        let program = words.find(|word| !WRAPPERS.contains(&base(word)))?;
        let stem = base(program).split('.').next().unwrap_or_default();
        Some(slug(stem)).filter(|slug| !GUARDS.contains(&program) && slug.contains(|c: char| c.is_ascii_alphabetic()))
    });
    telling.unwrap_or_else(|| format!("cron-{line}"))
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().take(NAME_MAX) {
        match c.is_ascii_alphanumeric() {
            true => slug.push(c.to_ascii_lowercase()),
            false if slug.is_empty() || slug.ends_with('-') => {}
            false => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_owned()
}

fn free_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = |number: usize| if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
    // One more than are taken is free.
    let free = (1..).map(numbered).find(|name| !taken.contains(name)).expect("numbers do not end");
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_telling_name() {
        for (command, name) in [
            ("/usr/local/bin/backup.sh --all", "backup"),
            ("cd /srv/app && ./manage.py clearsessions", "manage"),
            ("test -x /usr/sbin/anacron || ( cd / && run-parts /etc/cron.daily )", "run-parts"),
            ("[ -x /usr/bin/certbot ] && certbot -q renew", "certbot"),
            ("FOO=bar LANG=C /opt/Report_Maker.v2 x", "report-maker"),
            ("$HOME/bin/x", "cron-7"),
            ("\"/opt/my tool/run\"", "my"),
            ("sleep 5; nice -n19 sync-all >/dev/null 2>&1", "sync-all"),
            ("bash /opt/x.sh", "x"),
            ("日本", "cron-7"),
            ("", "cron-7"),
        ] {
            assert_eq!(name_of(command, 7), name, "{command}");
        }
    }
}
