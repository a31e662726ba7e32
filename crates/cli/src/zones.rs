//! Zone data: bundled, the system's when that is newer, or a folder of the operator's choice.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs};

use anyhow::Context;
use jiff::tz::TimeZoneDatabase;
use punctual_core::time::Zones;
use punctual_core::time::zone::{bundled_version, is_newer};

/// Where systems keep their zone data.
const SYSTEM_FOLDERS: [&str; 4] =
    ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];

/// The setting `tzdb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ZoneSource {
    /// The bundled data, unless the system's is newer.
    Newest,
    /// The data compiled into this binary.
    Bundled,
    /// The system's data, whatever its age.
    System,
    /// A zoneinfo folder.
    Folder(PathBuf),
}

impl FromStr for ZoneSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<ZoneSource, Self::Err> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "newest" => ZoneSource::Newest,
            "bundled" => ZoneSource::Bundled,
            "system" => ZoneSource::System,
            _ => ZoneSource::Folder(text.into()),
        })
    }
}

impl fmt::Display for ZoneSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZoneSource::Newest => f.write_str("newest"),
            ZoneSource::Bundled => f.write_str("bundled"),
            ZoneSource::System => f.write_str("system"),
            ZoneSource::Folder(folder) => folder.display().fmt(f),
        }
    }
}

impl ZoneSource {
    /// Opens the zone data that the setting asks for.
    pub(crate) fn open(&self) -> anyhow::Result<Zones> {
        match self {
            ZoneSource::Bundled => Ok(Zones::bundled()),
            ZoneSource::Folder(folder) => open_folder(folder),
            ZoneSource::System => {
                let folder = system_folder().with_context(|| {
                    format!("this system has no zone data in {}; use --tzdb bundled", SYSTEM_FOLDERS.join(", "))
                })?;
                open_folder(&folder)
            }
            ZoneSource::Newest => match system_folder() {
                Some(folder) if is_newer(&folder_version(&folder), bundled_version()) => open_folder(&folder),
                _ => Ok(Zones::bundled()),
            },
        }
    }
}

fn system_folder() -> Option<PathBuf> {
    SYSTEM_FOLDERS.iter().map(PathBuf::from).find(|folder| folder.join("UTC").is_file())
}

fn open_folder(folder: &Path) -> anyhow::Result<Zones> {
    let what = || {
        let shown = folder.display().to_string();
        format!("{shown:?} is not a zoneinfo folder; use --tzdb newest, bundled, system or such a folder")
    };
    let database = TimeZoneDatabase::from_dir(folder).with_context(what)?;
    let zones = Zones::from_database(database, &folder_version(folder));
    anyhow::ensure!(!zones.names().is_empty(), what());
    Ok(zones)
}

/// The version that a zoneinfo folder names itself, or `unknown`.
fn folder_version(folder: &Path) -> String {
    let first_line = |name: &str| {
        let mut line = String::new();
        BufReader::new(fs::File::open(folder.join(name)).ok()?).read_line(&mut line).ok()?;
        Some(line.trim().trim_start_matches("# version ").to_owned())
    };
    let named = ["tzdata.zi", "+VERSION", "version"].into_iter().find_map(first_line);
    named.filter(|version| version.starts_with("20") && version.len() < 10).unwrap_or_else(|| "unknown".to_owned())
}
