//! Readings: what the clocks of zones have shown.
//!
//! A schedule has one or a few, and there may be a million schedules: so they are a chain, of one piece each, and not a tree, whose
//! smallest node has room for eleven.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Shared;

/// What clocks have shown, by the names of their zones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readings(Option<Box<Reading>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reading {
    zone: Shared<String>,
    shows: DateTime,
    /// Those of zones with later names.
    others: Readings,
}

impl Readings {
    /// Whether no clock has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many clocks have been read.
    pub fn len(&self) -> usize {
        self.readings().count()
    }

    /// What the clock of a zone has shown.
    pub fn get(&self, zone: &str) -> Option<&DateTime> {
        self.readings().find(|reading| **reading.zone == *zone).map(|reading| &reading.shows)
    }

    /// Notes what the clock of a zone shows.
    pub fn set(&mut self, zone: &str, shows: DateTime) {
        let mut place = self;
        while place.0.as_ref().is_some_and(|reading| reading.zone.as_str() < zone) {
            place = &mut place.0.as_mut().expect("it was just seen").others;
        }
        match &mut place.0 {
            Some(reading) if **reading.zone == *zone => reading.shows = shows,
            rest => {
                let others = Readings(rest.take());
                *rest = Some(Box::new(Reading { zone: zone.into(), shows, others }));
            }
        }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, DateTime)> {
        self.readings().map(|reading| (reading.zone.as_str(), reading.shows))
    }

    fn readings(&self) -> impl Iterator<Item = &Reading> {
        std::iter::successors(self.0.as_deref(), |reading| reading.others.0.as_deref())
    }
}

impl<S: AsRef<str>> FromIterator<(S, DateTime)> for Readings {
    fn from_iter<I: IntoIterator<Item = (S, DateTime)>>(readings: I) -> Readings {
        let mut all = Readings::default();
        readings.into_iter().for_each(|(zone, shows)| all.set(zone.as_ref(), shows));
        all
    }
}

impl Serialize for Readings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Readings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Readings, D::Error> {
        Ok(BTreeMap::<String, DateTime>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl JsonSchema for Readings {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Readings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, DateTime>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn they_read_like_a_map() {
        let at = |hour| date(2026, 1, 5).at(hour, 0, 0, 0);
        let mut readings = Readings::default();
        for (zone, hour) in [("UTC", 9), ("Asia/Tokyo", 18), ("Europe/Paris", 10), ("UTC", 11)] {
            readings.set(zone, at(hour));
        }
        assert_eq!((readings.len(), readings.get("UTC"), readings.get("UT")), (3, Some(&at(11)), None));
        let text = serde_json::to_string(&readings).expect("it is plain data");
        assert_eq!(
            text,
            r#"{"Asia/Tokyo":"2026-01-05T18:00:00","Europe/Paris":"2026-01-05T10:00:00","UTC":"2026-01-05T11:00:00"}"#
        );
        assert_eq!(serde_json::from_str::<Readings>(&text).expect("it reads"), readings);
    }
}
