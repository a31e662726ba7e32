//! The text of a crontab, as cron reads it.
//!
//! In: a text, and whether its entries name a user. Out: entries with the settings that hold for them, and a word about each line that
//! is none. What cron does with a command is here (`%`, settings); what Punctual makes of an entry is `fragment.rs`.

use std::collections::BTreeMap;

/// More lines than any crontab has.
const LINES_MAX: usize = 10_000;

/// Macros that stand for five fields.
const MACROS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// An entry: when, what, and under which settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The line, counted from 1.
    pub(super) line: usize,
    /// Five fields with a space between them, or a macro.
    pub(super) cron: String,
    /// The user that it is for, if the crontab names one.
    pub(super) user: Option<String>,
    /// What the shell is given.
    pub(super) command: String,
    /// What the command reads, if the entry says so.
    pub(super) stdin: Option<String>,
    /// The settings above it.
    pub(super) settings: BTreeMap<String, String>,
}

/// Something to know about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    /// The line, counted from 1.
    pub(super) line: usize,
    /// What there is to know, and what to do.
    pub(super) text: String,
    /// Whether nothing came of the line.
    pub(super) is_left_out: bool,
}

/// What a crontab says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Crontab {
    pub(super) entries: Vec<Entry>,
    pub(super) remarks: Vec<Remark>,
}

/// Reads a crontab. A line that cannot be read costs that line.
pub(super) fn parse(text: &str, has_user: bool) -> Crontab {
    let mut crontab = Crontab::default();
    let mut settings = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        // What comes from another system may end in CR.
        let line = line.trim();
        let mut leave_out = |text: String| crontab.remarks.push(Remark { line: number, text, is_left_out: true });
        if LINES_MAX < number {
            leave_out(format!("the rest is left out: more than {LINES_MAX} lines"));
            break;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.contains(|c: char| c.is_control() && c != '\t') {
            leave_out("it holds a control character".to_owned());
            continue;
        }
        if let Some((name, value)) = setting(line) {
            settings.insert(name, value);
            continue;
        }
        match entry(line, has_user) {
            Ok(parts) => {
                let Parts { cron, user, command, stdin } = parts;
                crontab.entries.push(Entry { line: number, cron, user, command, stdin, settings: settings.clone() });
            }
            Err(problem) => leave_out(problem),
        }
    }
    crontab
}

/// `NAME = value`, each of them in quotes if need be. Nothing is replaced in the value.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, rest) = match line.chars().next()? {
        quote @ ('"' | '\'') => line[1..].split_once(quote)?,
        _ => line.split_at(line.find(|c: char| c.is_whitespace() || c == '=')?),
    };
    let value = rest.trim_start().strip_prefix('=')?.trim();
    let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    (!name.is_empty()).then(|| (name.to_owned(), unquoted.unwrap_or(value).to_owned()))
}

struct Parts {
    cron: String,
    user: Option<String>,
    command: String,
    stdin: Option<String>,
}

fn entry(line: &str, has_user: bool) -> Result<Parts, String> {
    // Cronie's way to keep an entry out of the system log.
    let line = line.strip_prefix('-').unwrap_or(line);
    let is_macro = line.starts_with('@');
    let count = if is_macro { 1 } else { 5 } + usize::from(has_user);
    let mut rest = line;
    let mut words = vec![];
    for _ in 0..count {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        words.push(word);
        rest = after.trim_start();
    }
    if rest.is_empty() {
        let expected = if has_user { "times, a user and a command" } else { "times and a command" };
        return Err(format!("it is no entry: cron wants {expected}"));
    }
    let user = has_user.then(|| words.pop().unwrap_or_default().to_owned());
    let cron = words.join(" ");
    if is_macro {
        known_macro(&cron)?;
    }
    let (command, stdin) = split_at_percent(rest);
    if command.trim().is_empty() {
        return Err("there is no command before the %".to_owned());
    }
    Ok(Parts { cron: if is_macro { cron.to_ascii_lowercase() } else { cron }, user, command, stdin })
}

fn known_macro(name: &str) -> Result<(), String> {
    if MACROS.contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(match name.eq_ignore_ascii_case("@reboot") {
        true => "@reboot is no time: have the system start it, as a service does, or with `punctual trigger` after `punctual up`"
            .to_owned(),
        false => format!("{name} is not known; write five fields"),
    })
}

/// The command up to the first `%`, and what it reads: each further `%` begins a line. `\%` is a percent sign.
fn split_at_percent(text: &str) -> (String, Option<String>) {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\\' if chars.peek() == Some(&'%') => parts.last_mut().expect("there is one").extend(chars.next()),
            '%' => parts.push(String::new()),
            other => parts.last_mut().expect("there is one").push(other),
        }
    }
    let command = parts.remove(0);
    // Cron ends the last line, if there is one.
    let lines = parts.join("\n");
    let stdin = match lines.is_empty() || lines.ends_with('\n') {
        true => lines,
        false => lines + "\n",
    };
    (command, Some(stdin).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_name_and_a_value_with_or_without_quotes() {
        for (line, expected) in [
            ("PATH=/bin:/usr/bin", Some(("PATH", "/bin:/usr/bin"))),
            ("MAILTO = ada@example.org", Some(("MAILTO", "ada@example.org"))),
            ("MAILTO=\"\"", Some(("MAILTO", ""))),
            ("\"A B\" = ' c '", Some(("A B", " c "))),
            ("A=\"half", Some(("A", "\"half"))),
            ("A=$HOME/bin # no comment", Some(("A", "$HOME/bin # no comment"))),
            ("* * * * * A=1 true", None),
            ("0 9 * * 1 x=y", None),
            ("@daily A=1 true", None),
            ("=x", None),
            ("A", None),
        ] {
            let found = setting(line);
            let found = found.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_percent_sign_ends_the_command_and_begins_lines() {
        for (text, command, stdin) in [
            ("date +\\%F", "date +%F", None),
            ("cat", "cat", None),
            ("cat %", "cat ", None),
            ("mail ada%Hello%you", "mail ada", Some("Hello\nyou\n")),
            ("mail ada%100\\%%", "mail ada", Some("100%\n")),
            ("echo \\\\ \\n", "echo \\\\ \\n", None),
        ] {
            assert_eq!(split_at_percent(text), (command.to_owned(), stdin.map(str::to_owned)), "{text}");
        }
    }
}
