//! A cron with a zone of its own, as one text.

use punctual_core::ParseError;
use punctual_core::schedule::ZonedCron;
use punctual_core::time::{Cron, Dialect};

/// Reads `EXPRESSION` or `EXPRESSION;ZONE`. The zone is not looked up.
pub(crate) fn parse(text: &str, dialect: Option<Dialect>) -> Result<ZonedCron, ParseError> {
    let (expression, zone) = match text.rsplit_once(';') {
        Some((expression, zone)) => (expression, Some(zone.trim().to_owned())),
        None => (text, None),
    };
    Ok(ZonedCron { cron: Cron::parse(expression, dialect)?, zone })
}

/// Writes what [`parse`] reads.
pub(crate) fn show(entry: &ZonedCron) -> String {
    match &entry.zone {
        Some(zone) => format!("{};{zone}", entry.cron.text()),
        None => entry.cron.text().to_owned(),
    }
}
