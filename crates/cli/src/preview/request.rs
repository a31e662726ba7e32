//! A request for a preview, as a line of JSON or as flags, and its answer.

use std::fmt;

use jiff::Timestamp;
use punctual_core::schedule::{
    After, At, Bounds, Crons, DstPolicy, GapPolicy, Immediate, OnEvent, Pass, RepeatPolicy, Trigger, ZonedCron,
};
use punctual_core::time::{Calendar, Cron, Dialect, Every, Slot, TimesOfDay, Timetable, UnknownZone, Zones};
use punctual_core::{Elapsed, ParseError, ScheduleId};
use serde::Deserialize;

/// The most slots that one request may ask for.
const COUNT_MAX: usize = 100_000;
/// A schedule of which so many slots in a row are skipped is not searched further.
const SKIPPED_IN_A_ROW_MAX: usize = 10_000;
/// The most slots that are looked at in all, skipped or not.
const LOOKED_AT_MAX: usize = 2 * COUNT_MAX;
const COUNT_DEFAULT: usize = 10;

/// What to preview: one trigger form, its zone and policies, and the stretch of time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// One cron, in `zone`.
    pub(super) cron: Option<String>,
    /// Several crons, each with a zone of its own.
    #[serde(default)]
    pub(super) crons: Vec<ZonedCron>,
    /// The dialect of `cron`; each of `crons` has its own.
    pub(super) dialect: Option<Dialect>,
    #[serde(default)]
    pub(super) times: Vec<String>,
    pub(super) every: Option<String>,
    /// Where `every` counts from; its rule decides when absent.
    pub(super) anchor: Option<Timestamp>,
    pub(super) at: Option<String>,
    pub(super) pass: Option<Pass>,
    /// A delay from `from`.
    pub(super) after: Option<String>,
    #[serde(default)]
    pub(super) immediate: bool,
    pub(super) on_event: Option<String>,
    pub(super) delay: Option<String>,
    #[serde(default = "utc")]
    pub(super) zone: String,
    pub(super) from: Timestamp,
    pub(super) until: Option<Timestamp>,
    /// Without it, 10, or all up to `until`.
    pub(super) count: Option<usize>,
    pub(super) gap: Option<GapPolicy>,
    pub(super) repeat: Option<RepeatPolicy>,
    pub(super) start_at: Option<Timestamp>,
    pub(super) end_at: Option<Timestamp>,
    pub(super) max_runs: Option<u64>,
    pub(super) jitter: Option<String>,
    /// The schedule whose jitter is shown; it differs from schedule to schedule.
    pub(super) schedule_id: Option<ScheduleId>,
    pub(super) calendar: Option<Calendar>,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// The slots of a request, and what its trigger means.
#[derive(Debug)]
pub(super) struct Preview {
    pub(super) description: String,
    pub(super) from: Timestamp,
    pub(super) trigger: Trigger,
    pub(super) timetable: Timetable,
    pub(super) slots: Vec<Slot>,
    pub(super) stopped: Stopped,
}

/// Why a list of slots ends where it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// As many as were asked for.
    AtCount,
    /// As many as may be asked for.
    AtLimit,
    /// What comes next lies behind `until`.
    AtUntil { next_at: Timestamp },
    /// Too many were skipped.
    AfterSkips,
    /// There are no more.
    AtEnd,
}

/// A request that cannot be answered. The text at fault, where there is one, is for the caret below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) position: usize,
    pub(super) text: Option<String>,
}

impl Refusal {
    pub(super) fn plain(message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), position: 0, text: None }
    }

    pub(super) fn of(text: &str) -> impl Fn(ParseError) -> Refusal {
        move |error| Refusal {
            message: error.to_string(),
            position: error.position.unwrap_or(0),
            text: error.position.map(|_| text.to_owned()),
        }
    }
}

impl fmt::Display for Refusal {
    /// The message and, where one text is at fault, that text with a caret below the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.text {
            Some(text) if !text.is_empty() && !text.contains(char::is_control) => {
                write!(f, "\n  {text}\n  {}^", " ".repeat(self.position))
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Refusal {
        Refusal { position: error.position.unwrap_or(0), ..Refusal::plain(error.to_string()) }
    }
}

impl From<UnknownZone> for Refusal {
    fn from(error: UnknownZone) -> Refusal {
        Refusal::plain(error.to_string())
    }
}

impl Request {
    pub(super) fn answer(&self, zones: &Zones) -> Result<Preview, Refusal> {
        if let Some(count) = self.count.filter(|count| COUNT_MAX < *count) {
            return Err(Refusal::plain(format!("count: {count} is out of range; use at most {COUNT_MAX}")));
        }
        let trigger = self.trigger(zones)?;
        let dst = DstPolicy { gap: self.gap.unwrap_or_default(), repeat: self.repeat.unwrap_or_default() };
        let bounds = Bounds::new(self.start_at, self.end_at, self.max_runs)?;
        let mut timetable = Timetable::new(&trigger, &self.zone, dst, zones)?.with_bounds(bounds);
        if let Some(calendar) = &self.calendar {
            timetable = timetable
                .with_calendar(calendar, zones)
                .map_err(|error| Refusal::plain(format!("calendar {:?}: {error}", calendar.name())))?;
        }
        if let Some(jitter) = &self.jitter {
            let max = duration("jitter", jitter)?;
            let schedule_id = self.schedule_id.unwrap_or(ScheduleId(Default::default()));
            timetable = timetable.with_jitter(schedule_id, max);
        }
        let (slots, stopped) = self.slots(&timetable);
        let description = trigger.describe(timetable.zone().name());
        Ok(Preview { description, from: self.from, trigger, timetable, slots, stopped })
    }

    fn slots(&self, timetable: &Timetable) -> (Vec<Slot>, Stopped) {
        // What is asked for at `from` may be due at `from` itself.
        let is_relative = self.immediate || self.after.is_some();
        let just_before = self.from.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN);
        let from = if is_relative { just_before } else { self.from };
        let asked = self.count.unwrap_or(if self.until.is_some() { COUNT_MAX } else { COUNT_DEFAULT });
        let allowed = self.max_runs.map_or(usize::MAX, |max| max as usize);
        let mut slots = vec![];
        let (mut runs, mut skipped_in_a_row) = (0, 0);
        let mut ahead = timetable.slots(from).looking_at(LOOKED_AT_MAX);
        for slot in ahead.by_ref() {
            if runs == allowed {
                return (slots, Stopped::AtEnd);
            }
            if self.until.is_some_and(|until| until < slot.scheduled_at) {
                return (slots, Stopped::AtUntil { next_at: slot.scheduled_at });
            }
            if runs == asked {
                let is_limit = self.count.is_none() && asked == COUNT_MAX;
                return (slots, if is_limit { Stopped::AtLimit } else { Stopped::AtCount });
            }
            if SKIPPED_IN_A_ROW_MAX <= skipped_in_a_row {
                return (slots, Stopped::AfterSkips);
            }
            if slot.skipped.is_some() {
                skipped_in_a_row += 1;
            } else {
                (runs, skipped_in_a_row) = (runs + 1, 0);
            }
            slots.push(slot);
        }
        let stopped = if ahead.cut_at().is_some() { Stopped::AfterSkips } else { Stopped::AtEnd };
        (slots, stopped)
    }

    fn trigger(&self, zones: &Zones) -> Result<Trigger, Refusal> {
        let given = [
            self.cron.is_some(),
            !self.crons.is_empty(),
            !self.times.is_empty(),
            self.every.is_some(),
            self.at.is_some(),
            self.after.is_some(),
            self.immediate,
            self.on_event.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            let forms = "cron, crons, times, every, at, after, immediate or on_event";
            return Err(Refusal::plain(format!("trigger: give exactly one of {forms}")));
        }
        for (field, is_given, of, is_used) in [
            ("dialect", self.dialect.is_some(), "cron", self.cron.is_some()),
            ("anchor", self.anchor.is_some(), "every", self.every.is_some()),
            ("pass", self.pass.is_some(), "at", self.at.is_some()),
            ("delay", self.delay.is_some(), "on_event", self.on_event.is_some()),
        ] {
            if is_given && !is_used {
                return Err(Refusal::plain(format!("{field}: it goes with {of} alone; leave it out")));
            }
        }
        let zone = zones.get(&self.zone)?;
        if let Some(text) = &self.every {
            let (interval, wrong) = (duration("every", text)?, Refusal::of(text));
            let every = match self.anchor {
                Some(anchor) => Every::from_anchor(interval, anchor),
                None => Every::anchored(interval, &zone, self.from),
            };
            return Ok(Trigger::Every(every.map_err(wrong)?));
        }
        if let Some(text) = &self.at {
            return Ok(Trigger::At(At::parse(text, &zone, self.pass.unwrap_or_default()).map_err(Refusal::of(text))?));
        }
        if let Some(text) = &self.after {
            return Ok(Trigger::After(After { delay: duration("after", text)?, from: self.from }));
        }
        if self.immediate {
            return Ok(Trigger::Immediate(Immediate { at: self.from }));
        }
        if let Some(event) = &self.on_event {
            let delay = self.delay.as_deref().map_or(Ok(Elapsed::ZERO), |text| duration("delay", text))?;
            return Ok(Trigger::OnEvent(OnEvent::new(event, delay).map_err(Refusal::of(event))?));
        }
        if !self.times.is_empty() {
            return Ok(Trigger::Times(TimesOfDay::parse(&self.times)?));
        }
        let mut crons = self.crons.clone();
        if let Some(text) = &self.cron {
            let cron = Cron::parse(text, self.dialect).map_err(Refusal::of(text))?;
            crons.insert(0, ZonedCron { cron, zone: None });
        }
        Ok(Trigger::Cron(Crons::new(crons)?))
    }
}

/// Reads the duration of a field, under its name.
fn duration(field: &str, text: &str) -> Result<Elapsed, Refusal> {
    Elapsed::parse(text).map_err(|error| Refusal::of(text)(error.within(field)))
}
