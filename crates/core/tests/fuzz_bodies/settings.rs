//! What a text is tried with: a zone, an instant, a dialect, policies.

use std::sync::LazyLock;

use jiff::Timestamp;
use punctual_core::schedule::{DstPolicy, GapPolicy, RepeatPolicy};
use punctual_core::time::{Dialect, Zone, Zones};

/// Zones whose clocks do unusual things, and two that do nothing at all.
const UNUSUAL: [&str; 12] = [
    "UTC",
    "Asia/Kolkata",
    "America/New_York",
    "Europe/Dublin",       // Its winter time is the exception.
    "Africa/Cairo",        // Midnights that do not exist.
    "Africa/Casablanca",   // Two changes in Ramadan.
    "America/St_Johns",    // Changes at 00:01.
    "Australia/Lord_Howe", // Changes by half an hour.
    "Antarctica/Troll",    // Changes by two hours.
    "Pacific/Apia",        // A day that does not exist.
    "America/Juneau",      // A day that came twice.
    "Asia/Pyongyang",
];

pub(crate) struct Settings {
    pub(crate) zone: Zone,
    pub(crate) at: Timestamp,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) dst: DstPolicy,
}

impl Settings {
    /// Splits an input into its text and its settings; `None` for what is not text.
    pub(crate) fn read(data: &[u8]) -> Option<(&str, Settings)> {
        let input = std::str::from_utf8(data).ok()?;
        let (text, line) = input.rsplit_once("\n@ ").unwrap_or((input, ""));
        let mut random = Random::new(hash(data));
        let words: Vec<&str> = line.split_whitespace().collect();
        let zone = words.iter().find_map(|word| zones().get(word).ok());
        let at = words.iter().find_map(|word| word.parse().ok());
        let dialect = words.iter().find_map(|word| match *word {
            "unix" => Some(Some(Dialect::Unix)),
            "spring" => Some(Some(Dialect::Spring)),
            "quartz" => Some(Some(Dialect::Quartz)),
            "none" => Some(None),
            _ => None,
        });
        let dialects = [None, Some(Dialect::Unix), Some(Dialect::Spring), Some(Dialect::Quartz)];
        let settings = Settings {
            zone: zone.unwrap_or_else(|| any_zone(&mut random)),
            at: at.unwrap_or_else(|| any_instant(&mut random)),
            dialect: dialect.unwrap_or(dialects[random.below(4) as usize]),
            dst: DstPolicy {
                gap: [GapPolicy::After, GapPolicy::Skip][random.below(2) as usize],
                repeat: [RepeatPolicy::Once, RepeatPolicy::Both][random.below(2) as usize],
            },
        };
        Some((text, settings))
    }
}

pub(crate) fn zones() -> &'static Zones {
    static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);
    &ZONES
}

fn any_zone(random: &mut Random) -> Zone {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| zones().names());
    // Names that the database lists but does not stand for a place, such as `Etc/Unknown`, are not zones of ours.
    let listed = &NAMES[random.below(NAMES.len() as u64) as usize];
    let unusual = UNUSUAL[random.below(UNUSUAL.len() as u64) as usize];
    let name = if random.below(2) == 0 { listed } else { unusual };
    zones().get(name).or_else(|_| zones().get(unusual)).expect("the database has these zones")
}

/// Mostly between 1900 and 2200, sometimes anywhere in time, sometimes between two seconds.
fn any_instant(random: &mut Random) -> Timestamp {
    let (from, until) = match random.below(4) {
        0 => (Timestamp::MIN.as_second(), Timestamp::MAX.as_second()),
        _ => (-2_208_988_800, 7_258_118_400),
    };
    let second = from + random.below((until - from) as u64) as i64;
    let nanosecond = if random.below(2) == 0 { 0 } else { random.below(1_000_000_000) as i32 };
    Timestamp::new(second, nanosecond).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// FNV-1a.
pub(crate) fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Xorshift: the same numbers for the same seed, today and in ten years.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A number from 0 to `end` - 1.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}
