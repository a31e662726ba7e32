//! The zone of whoever sits at the terminal: `TZ`, else what this system is set to.

use std::path::{Path, PathBuf};

use punctual_core::time::{Zone, Zones};

/// The zone of this terminal; UTC, with a note, where it has none that the zone data knows.
pub(crate) fn local_zone(zones: &Zones) -> anyhow::Result<Zone> {
    let variable = std::env::var("TZ").ok();
    let link = std::fs::read_link("/etc/localtime").ok();
    let file = std::fs::read_to_string("/etc/timezone").ok();
    let Some(name) = name(variable.as_deref(), link, file.as_deref()) else { return Ok(zones.get("UTC")?) };
    if let Ok(zone) = zones.get(&name) {
        return Ok(zone);
    }
    eprintln!("note: {name:?} (TZ, or the setting of this system) is no IANA time zone; times are those of UTC");
    Ok(zones.get("UTC")?)
}

/// The name of the zone, as `TZ`, `/etc/localtime` and `/etc/timezone` have it, in this order.
fn name(variable: Option<&str>, link: Option<PathBuf>, file: Option<&str>) -> Option<String> {
    if let Some(text) = variable {
        let text = text.strip_prefix(':').unwrap_or(text);
        // An empty TZ means UTC, as it does for every other program.
        let said = if text.starts_with('/') { of_path(Path::new(text)) } else { Some(text.to_owned()) };
        return said.filter(|name| !name.is_empty());
    }
    let said = file.map(|text| text.trim().to_owned()).filter(|name| !name.is_empty());
    link.as_deref().and_then(of_path).or(said)
}

/// The zone whose file it is.
fn of_path(path: &Path) -> Option<String> {
    let (_, name) = path.to_str()?.split_once("zoneinfo/")?;
    let name = name.strip_prefix("posix/").or(name.strip_prefix("right/")).unwrap_or(name);
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_of_a_terminal_is_found_where_systems_keep_it() {
        let link = || Some(PathBuf::from("/usr/share/zoneinfo/Europe/Paris"));
        for (variable, link, file, expected) in [
            (Some("Asia/Tokyo"), link(), None, Some("Asia/Tokyo")),
            (Some(":Asia/Tokyo"), None, None, Some("Asia/Tokyo")),
            (Some("/usr/share/zoneinfo/posix/Asia/Tokyo"), None, None, Some("Asia/Tokyo")),
            (Some(""), link(), None, None),
            (None, link(), Some("Asia/Tokyo\n"), Some("Europe/Paris")),
            (None, Some(PathBuf::from("../etc/elsewhere")), Some("Asia/Tokyo\n"), Some("Asia/Tokyo")),
            (None, None, None, None),
        ] {
            assert_eq!(name(variable, link, file).as_deref(), expected, "{variable:?} {file:?}");
        }
    }
}
