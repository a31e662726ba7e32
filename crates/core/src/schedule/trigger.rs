//! Triggers: what makes a schedule fire.

use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ParseError, quoted};
use crate::storable;
use crate::time::civil::{datetime_of, local_of};
use crate::time::zone::{Zone, instant};
use crate::time::{Cron, Dialect, Elapsed, Every, TimesOfDay};

/// What makes a schedule fire: times, or an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Trigger {
    /// One cron or several; the same instant from two of them is one slot.
    Cron(Crons),
    /// The same times every day.
    Times(TimesOfDay),
    /// Elapsed time from an anchor.
    Every(Every),
    /// One instant.
    At(At),
    /// A delay from an instant.
    After(After),
    /// As soon as the schedule exists.
    Immediate(Immediate),
    /// An event, and a delay behind it. Events make runs; time makes none.
    OnEvent(OnEvent),
}

impl Trigger {
    /// What the trigger means, in plain English, for a schedule whose own zone is `zone`.
    pub fn describe(&self, zone: &str) -> String {
        match self {
            Trigger::Cron(crons) => crons.describe(zone),
            Trigger::Times(times) => format!("{}, {zone}", times.describe()),
            Trigger::Every(every) => {
                format!("Every {} from {}, {zone}", every.interval().describe(), every.anchor())
            }
            Trigger::At(At(at)) => format!("Once at {at}, {zone}"),
            Trigger::After(after) => {
                format!("Once, {} after {}, {zone}", after.delay.describe(), after.from)
            }
            Trigger::Immediate(_) => format!("Once, at once, {zone}"),
            Trigger::OnEvent(on) if on.delay.is_zero() => {
                format!("On each event {}, {zone}", quoted(&on.event))
            }
            Trigger::OnEvent(on) => {
                format!("{} after each event {}, {zone}", on.delay.describe(), quoted(&on.event))
            }
        }
    }
}

/// The most crons that one trigger may have.
const CRONS_MAX: usize = 100;

/// The crons of a trigger: at least one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<ZonedCron>", into = "Vec<ZonedCron>")]
#[schemars(with = "Vec<ZonedCron>")]
pub struct Crons(Box<[ZonedCron]>);

impl Crons {
    /// Checks that there is at least one cron, and not too many.
    pub fn new(crons: Vec<ZonedCron>) -> Result<Crons, ParseError> {
        if crons.is_empty() || CRONS_MAX < crons.len() {
            let problem = format!("there are {} crons", crons.len());
            return Err(ParseError::value("cron", problem, format!("use 1 to {CRONS_MAX}")));
        }
        Ok(Crons(crons.into()))
    }

    /// One cron in the schedule's own zone.
    pub fn one(cron: Cron) -> Crons {
        Crons(Box::new([ZonedCron { cron, zone: None }]))
    }

    /// The crons in the order in which they were listed.
    pub fn iter(&self) -> std::slice::Iter<'_, ZonedCron> {
        self.0.iter()
    }

    fn describe(&self, schedule_zone: &str) -> String {
        let one = |entry: &ZonedCron| {
            // The name has not been looked up yet: whatever it is, it stays on the line.
            let zone = entry.zone_in(schedule_zone);
            format!("{}, {}", entry.cron.describe(), zone.escape_debug())
        };
        let all: Vec<String> = self.iter().map(one).collect();
        all.join("; and ")
    }
}

/// A cron with a zone of its own, or that of the schedule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ZonedCronText", into = "ZonedCronText")]
#[schemars(with = "ZonedCronText")]
pub struct ZonedCron {
    /// The expression.
    pub cron: Cron,
    /// The IANA name of its zone; the schedule's when absent.
    pub zone: Option<String>,
}

impl ZonedCron {
    /// The name of its zone, in a schedule of this zone.
    pub fn zone_in<'a>(&'a self, schedule_zone: &'a str) -> &'a str {
        self.zone.as_deref().unwrap_or(schedule_zone)
    }
}

/// A cron as it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with an `expression`")]
#[schemars(rename = "Cron")]
struct ZonedCronText {
    /// 5, 6 or 7 fields, or a macro.
    expression: String,
    /// How the day fields are read; `unix` for 5 fields and `spring` for 6 and 7 when absent.
    #[serde(default)]
    dialect: Option<Dialect>,
    /// The IANA zone of this cron; the schedule's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
}

impl TryFrom<ZonedCronText> for ZonedCron {
    type Error = ParseError;

    fn try_from(text: ZonedCronText) -> Result<ZonedCron, ParseError> {
        Ok(ZonedCron { cron: Cron::parse(&text.expression, text.dialect)?, zone: text.zone })
    }
}

impl From<ZonedCron> for ZonedCronText {
    fn from(entry: ZonedCron) -> ZonedCronText {
        let dialect = Some(entry.cron.dialect());
        ZonedCronText { expression: entry.cron.text().to_owned(), dialect, zone: entry.zone }
    }
}

impl TryFrom<Vec<ZonedCron>> for Crons {
    type Error = ParseError;

    fn try_from(crons: Vec<ZonedCron>) -> Result<Crons, ParseError> {
        Crons::new(crons)
    }
}

impl From<Crons> for Vec<ZonedCron> {
    fn from(crons: Crons) -> Vec<ZonedCron> {
        crons.0.into()
    }
}

/// One instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct At(pub Timestamp);

/// Which of two instants a repeated local time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// Before the clock went back.
    #[default]
    First,
    /// After it.
    Second,
}

impl At {
    /// Reads an instant with `Z` or an offset, or a local time in `zone`.
    ///
    /// A local time that the zone's clock jumps over is refused with the nearest ones that exist; one that comes twice
    /// is the given `pass`.
    pub fn parse(text: &str, zone: &Zone, pass: Pass) -> Result<At, ParseError> {
        let unreadable = || {
            let fix =
                "use 2026-03-08T09:00:00Z, 2026-03-08T09:00:00-05:00 or, in the schedule's zone, 2026-03-08T09:00:00";
            ParseError::value("at", format!("{} is not an instant", quoted(text)), fix)
        };
        // A zone in brackets would be a second opinion on which zone is meant.
        if text.contains('[') || !text.contains(['T', 't', ' ']) {
            return Err(unreadable());
        }
        if let Ok(instant) = text.parse::<Timestamp>() {
            return At::kept(instant);
        }
        let datetime: DateTime = text.parse().map_err(|_| unreadable())?;
        let local = local_of(datetime);
        let first = zone.segment_reaching(local);
        if local < first.local_start() && first.gap_before() != 0 {
            let before = datetime_of(first.repeated_until() - 1);
            let after = datetime_of(first.local_start());
            let problem = format!("{datetime} does not exist in {}, where the clock jumps over it", zone.name());
            return Err(ParseError::value("at", problem, format!("use {before} or {after}")));
        }
        let segment = match (pass, zone.segment_after(&first)) {
            (Pass::Second, Some(second)) if second.local_start() <= local && local < second.repeated_until() => second,
            _ => first,
        };
        let second = instant(local - i64::from(segment.offset)).ok_or_else(unreadable)?;
        let fraction = jiff::SignedDuration::from_nanos(datetime.subsec_nanosecond().into());
        second.checked_add(fraction).map_err(|_| unreadable()).and_then(At::kept)
    }

    /// An instant as it is kept, to the microsecond.
    fn kept(instant: Timestamp) -> Result<At, ParseError> {
        if !storable::is_kept(instant) {
            let problem = format!("{instant} lies before the year 1");
            return Err(ParseError::value("at", problem, "use a year from 1 to 9999"));
        }
        Ok(At(storable::instant(instant)))
    }
}

/// A delay from an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// How long after `from`.
    pub delay: Elapsed,
    /// The instant from which the delay counts: when it was asked for.
    pub from: Timestamp,
}

impl After {
    /// The one instant that is meant, if time reaches that far.
    pub fn instant(&self) -> Option<Timestamp> {
        self.from.checked_add(self.delay.duration()).ok()
    }
}

/// As soon as the schedule exists, and again whenever it is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Immediate {
    /// When the schedule was created or last enabled.
    pub at: Timestamp,
}

/// An event, and a delay behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "OnEventText", into = "OnEventText")]
#[schemars(with = "OnEventText")]
pub struct OnEvent {
    event: String,
    delay: Elapsed,
}

impl OnEvent {
    /// Each event of this name, after a delay.
    pub fn new(event: &str, delay: Elapsed) -> Result<OnEvent, ParseError> {
        if event.trim().is_empty() {
            return Err(ParseError::value("on_event", "the event has no name", "name it, like TicketCreated"));
        }
        Ok(OnEvent { event: event.to_owned(), delay })
    }

    /// The name of the event.
    pub fn event(&self) -> &str {
        &self.event
    }

    /// How long after the event.
    pub fn delay(&self) -> Elapsed {
        self.delay
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OnEvent")]
struct OnEventText {
    /// The name of the event.
    event: String,
    /// How long after the event.
    #[serde(default)]
    delay: Elapsed,
}

impl TryFrom<OnEventText> for OnEvent {
    type Error = ParseError;

    fn try_from(text: OnEventText) -> Result<OnEvent, ParseError> {
        OnEvent::new(&text.event, text.delay)
    }
}

impl From<OnEvent> for OnEventText {
    fn from(on: OnEvent) -> OnEventText {
        OnEventText { event: on.event, delay: on.delay }
    }
}
