//! Where crontabs are, and whose.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

/// The longest crontab.
const SIZE_MAX: u64 = 1024 * 1024;

/// The most crontabs of one folder.
const FILES_MAX: usize = 1_000;

/// The crontabs whose entries name a user.
const SYSTEM: [&str; 2] = ["/etc/crontab", "/etc/cron.d"];

/// A crontab.
pub(super) struct Source {
    /// What people call it.
    pub(super) name: String,
    pub(super) text: String,
    /// Whether entries name a user.
    pub(super) has_user: bool,
}

/// Reads the crontabs that are meant.
pub(super) fn read(file: Option<&Path>, user: Option<&str>, has_user: bool) -> anyhow::Result<Vec<Source>> {
    let Some(file) = file else { return Ok(vec![list(user)?]) };
    if file == Path::new("-") {
        let text = text_of(io::stdin().lock()).context("reading standard input")?;
        return Ok(vec![Source { name: "standard input".to_owned(), text, has_user }]);
    }
    let has_user = has_user || SYSTEM.iter().any(|known| file.starts_with(known));
    if !file.is_dir() {
        return Ok(vec![read_file(file, has_user)?]);
    }
    let reading = || format!("reading the folder {}", file.display());
    let mut paths = vec![];
    for found in std::fs::read_dir(file).with_context(reading)? {
        paths.push(found.with_context(reading)?.path());
        ensure!(paths.len() <= FILES_MAX, "{} has more than {FILES_MAX} files", file.display());
    }
    paths.sort();
    // Cron takes no notice of backups and leftovers of packages either, which it tells by their names.
    let (taken, left): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| is_taken(path));
    left.iter().for_each(|path| eprintln!("note: {} is no crontab, by its name", path.display()));
    taken.iter().map(|path| read_file(path, has_user)).collect()
}

fn is_taken(path: &Path) -> bool {
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    path.is_file() && path.file_name().and_then(|name| name.to_str()).is_some_and(is_plain)
}

fn read_file(path: &Path, has_user: bool) -> anyhow::Result<Source> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let text = text_of(file).with_context(|| format!("reading {}", path.display()))?;
    Ok(Source { name: path.display().to_string(), text, has_user })
}

fn text_of(from: impl Read) -> anyhow::Result<String> {
    let mut bytes = vec![];
    from.take(SIZE_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= SIZE_MAX, "it is longer than {SIZE_MAX} bytes, and no crontab");
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow::anyhow!("line {line} is no UTF-8: convert it first, as with `iconv -t UTF-8`")
    })
}

/// What `crontab -l` prints.
fn list(user: Option<&str>) -> anyhow::Result<Source> {
    let mut command = Command::new("crontab");
    command.args(user.into_iter().flat_map(|user| ["-u", user])).arg("-l").stdin(Stdio::null());
    let output = command.output().context("starting `crontab -l`; name a FILE if there is no such program")?;
    let name = format!("crontab -l{}", user.map(|user| format!(" -u {user}")).unwrap_or_default());
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = text_of(&output.stdout[..]).with_context(|| format!("reading what {name} prints"))?;
    Ok(Source { name, text, has_user: false })
}

/// The name of whoever runs this.
pub(super) fn this_user() -> String {
    let id = rustix::process::geteuid().as_raw().to_string();
    passwd(|fields| fields[2] == id).map_or(id.clone(), |fields| fields[0].clone())
}

/// The home folder of a user, if it is there.
pub(super) fn home(user: &str) -> Option<String> {
    let listed = passwd(|fields| fields[0] == user).map(|fields| fields[5].clone());
    // Users of a directory service are in no file.
    let own = || std::env::var("HOME").ok().filter(|_| user == this_user());
    listed.or_else(own).filter(|home| Path::new(home).is_dir())
}

fn passwd(is_meant: impl Fn(&[String]) -> bool) -> Option<Vec<String>> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let lines = text.lines().map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|fields| fields.len() == 7).find(|fields| is_meant(fields))
}

/// The zone of this machine, as cron sees it: not that of whoever sits in front of it.
pub(super) fn system_zone() -> Option<String> {
    let link = std::fs::canonicalize("/etc/localtime").ok();
    let linked = link.and_then(|path| {
        let text = path.to_str()?;
        Some(text.split_once("/zoneinfo/")?.1.trim_start_matches("posix/").to_owned())
    });
    let named = || Some(std::fs::read_to_string("/etc/timezone").ok()?.trim().to_owned());
    linked.or_else(named).filter(|name| !name.is_empty())
}
