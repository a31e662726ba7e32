//! A pattern: a trigger as text, which the library and the oracle each read in their own way.

use std::fmt;

use punctual_core::schedule::{Crons, DstPolicy, GapPolicy, RepeatPolicy, Trigger, ZonedCron};
use punctual_core::time::{Cron, Dialect, TimesOfDay};

use super::matcher::Matcher;

/// A trigger as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pattern {
    Crons(Vec<CronText>),
    Times(Vec<String>),
}

/// One cron of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CronText {
    pub(crate) text: String,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) zone: Option<String>,
}

/// What the oracle makes of one cron, or of all times of day.
pub(crate) struct Reader {
    pub(crate) matcher: Matcher,
    /// A zone of its own, or else the schedule's.
    pub(crate) zone: Option<String>,
}

impl Pattern {
    /// What the library makes of it.
    pub(crate) fn trigger(&self) -> Result<Trigger, String> {
        let read = |entry: &CronText| {
            let cron = Cron::parse(&entry.text, entry.dialect).map_err(|error| error.to_string())?;
            Ok(ZonedCron { cron, zone: entry.zone.clone() })
        };
        match self {
            Pattern::Crons(crons) => {
                let crons = crons.iter().map(read).collect::<Result<_, String>>()?;
                Crons::new(crons).map(Trigger::Cron).map_err(|error| error.to_string())
            }
            Pattern::Times(times) => {
                let times: Vec<&str> = times.iter().map(String::as_str).collect();
                TimesOfDay::parse(&times).map(Trigger::Times).map_err(|error| error.to_string())
            }
        }
    }

    /// What the oracle makes of it.
    pub(crate) fn readers(&self) -> Vec<Reader> {
        match self {
            Pattern::Crons(crons) => crons
                .iter()
                .map(|entry| Reader { matcher: Matcher::cron(&entry.text, entry.dialect), zone: entry.zone.clone() })
                .collect(),
            Pattern::Times(times) => {
                vec![Reader { matcher: Matcher::times(times), zone: None }]
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Crons(crons) => {
                for (place, CronText { text, dialect, zone }) in crons.iter().enumerate() {
                    let and = if place == 0 { "" } else { " + " };
                    let dialect = match dialect {
                        Some(Dialect::Unix) => "unix",
                        Some(Dialect::Spring) => "spring",
                        Some(Dialect::Quartz) => "quartz",
                        None => "default dialect",
                    };
                    write!(f, "{and}`{text}` ({dialect}")?;
                    if let Some(zone) = zone {
                        write!(f, ", {zone}")?;
                    }
                    f.write_str(")")?;
                }
                Ok(())
            }
            Pattern::Times(times) => write!(f, "times {}", times.join(" ")),
        }
    }
}

/// Every combination of what can be asked for when a clock changes.
pub(crate) const POLICIES: [DstPolicy; 4] = [
    DstPolicy { gap: GapPolicy::After, repeat: RepeatPolicy::Once },
    DstPolicy { gap: GapPolicy::After, repeat: RepeatPolicy::Both },
    DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Once },
    DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Both },
];
