//! Where PostgreSQL's server programs are. Many systems keep them out of the path.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::install;
use crate::apt;
use crate::shell::said;

/// The oldest version that the store promises to work with.
const VERSION_MIN: u32 = 14;

/// What a server is made, run and stopped with.
const NEEDED: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

/// The server programs of one version, in one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) folder: PathBuf,
    /// The first number of the version: 15 for 15.18.
    pub(super) version: u32,
}

impl Programs {
    /// The programs that are there, or, where it may be done without asking, that are then installed.
    pub(super) fn find_or_install() -> anyhow::Result<Programs> {
        let find = || choose(&found(chosen_places()), &found(usual_places()));
        if let Some(programs) = find() {
            return Ok(programs);
        }
        if apt::is_possible() {
            install::install()?;
            if let Some(programs) = find() {
                return Ok(programs);
            }
        }
        bail!("no PostgreSQL of version {VERSION_MIN} or newer is on this machine.\n{}", install::ADVICE)
    }

    /// The programs in a folder, if all of them are there and say what they are.
    fn in_folder(folder: &Path) -> Option<Programs> {
        // A link leads to the folder where the clients and libraries of the same version are, too.
        let folder = folder.join("postgres").canonicalize().ok()?.parent()?.to_owned();
        let complete = NEEDED.iter().all(|name| folder.join(name).is_file());
        let version = said(folder.join("postgres").to_str()?, &["--version"]).filter(|_| complete)?;
        Some(Programs { version: version_in(&version)?, folder })
    }
}

/// The first that somebody chose, by the path or by `pg_config`; or else the newest that is installed.
fn choose(chosen: &[Programs], installed: &[Programs]) -> Option<Programs> {
    let fits = |programs: &&Programs| programs.version >= VERSION_MIN;
    let newest = || installed.iter().filter(fits).max_by_key(|programs| programs.version);
    chosen.iter().find(fits).or_else(newest).cloned()
}

fn found(folders: Vec<PathBuf>) -> Vec<Programs> {
    folders.iter().filter_map(|folder| Programs::in_folder(folder)).collect()
}

/// Where whoever runs this wants them to be found.
fn chosen_places() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(said("pg_config", &["--bindir"]).map(PathBuf::from)).collect()
}

/// Where Debian, PostgreSQL's own packages for Fedora, Homebrew on both kinds of Mac, and `make install` put them.
fn usual_places() -> Vec<PathBuf> {
    let with_versions = [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/opt/homebrew/opt", "postgresql@"),
        ("/usr/local/opt", "postgresql@"),
    ];
    let mut places: Vec<PathBuf> = ["/opt/homebrew/bin", "/usr/local/pgsql/bin"].map(PathBuf::from).into();
    for (parent, beginning) in with_versions {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning));
        places.extend(named.map(|entry| entry.path().join("bin")));
    }
    places
}

/// The first number of what `postgres --version` says.
fn version_in(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("(PostgreSQL) ")?;
    let digits = version.split(|character: char| !character.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_every_packager_writes_them() {
        let cases = [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some(15)),
            ("postgres (PostgreSQL) 16.2", Some(16)),
            ("postgres (PostgreSQL) 17.5 (Homebrew)", Some(17)),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("postgres (PostgreSQL) 19devel", Some(19)),
            ("postgres (PostgreSQL) 9.6.24", Some(9)),
            ("postgres (PostgreSQL) unknown", None),
            ("mysqld  Ver 8.0.36", None),
            ("", None),
        ];
        for (text, version) in cases {
            assert_eq!(version_in(text), version, "{text}");
        }
    }

    #[test]
    fn what_somebody_chose_comes_first_then_the_newest() {
        let of = |version: u32| Programs { folder: PathBuf::from(format!("/{version}")), version };
        let check = |chosen: &[u32], installed: &[u32], expected: Option<u32>| {
            let all = |versions: &[u32]| versions.iter().copied().map(of).collect::<Vec<_>>();
            assert_eq!(choose(&all(chosen), &all(installed)), expected.map(of), "{chosen:?} {installed:?}");
        };
        check(&[15, 17], &[18], Some(15));
        check(&[], &[9, 15, 17, 16], Some(17));
        check(&[13], &[15], Some(15));
        check(&[13, 14], &[15], Some(14));
        check(&[13], &[9], None);
        check(&[], &[], None);
    }
}
