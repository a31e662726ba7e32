//! What makes a schedule of the file fire.

use jiff::Timestamp;
use punctual_core::Elapsed;
use punctual_core::schedule::{At, Bounds, Crons, DstPolicy, Pass, Trigger};
use punctual_core::time::{Calendar, Dialect, Every, TimesOfDay, Timetable, Zone, Zones};
use serde_json::{Map, Value as Json};

use super::section::Section;
use super::value::{Value, short};
use super::words::Word;
use crate::suggest::nearest;
use crate::zoned_cron;

/// The ways to say when.
const FORMS: [&str; 6] = ["cron", "times", "every", "at", "after", "immediate"];

/// How many slots are looked at for one that is not skipped.
const LOOKED_AT_MAX: usize = 10_000;

/// What makes a schedule of the file fire.
///
/// What counts from somewhere counts from when the store first saw the schedule, which the file cannot know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileTrigger {
    /// Crons, times of day or one instant: the file says it all.
    Fixed(Trigger),
    /// Elapsed time, at least [`INTERVAL_MIN`](punctual_core::time::INTERVAL_MIN).
    Every(Elapsed),
    /// A delay.
    After(Elapsed),
    /// As soon as the schedule is seen.
    Immediate,
}

/// When the slots of a trigger are let through.
pub(super) struct Gate<'a> {
    pub(super) dst: DstPolicy,
    pub(super) bounds: Bounds,
    pub(super) calendar: Option<&'a Calendar>,
}

impl FileTrigger {
    /// Reads the one form that a schedule uses.
    pub(super) fn read(section: &Section<'_>, zone: &Zone, zones: &Zones) -> Option<FileTrigger> {
        let is_given = |form: &&str| section.get(form).is_some_and(|value| *form != "immediate" || value.is_set());
        let given: Vec<&str> = FORMS.into_iter().filter(is_given).collect();
        let form = match given[..] {
            [form] => form,
            [] => {
                section.refuse("nothing says when it runs", format!("add one of {}", FORMS.join(", ")));
                return None;
            }
            _ => {
                section.refuse(format!("{} are given together", given.join(" and ")), "keep one of them");
                // Whichever is kept is right then.
                given.iter().for_each(|form| drop(FileTrigger::read_form(section, form, zone, zones)));
                return None;
            }
        };
        if let Some(value) = section.get("dialect")
            && form != "cron"
        {
            value.refuse("it goes with cron alone", "leave it out");
        }
        FileTrigger::read_form(section, form, zone, zones)
    }

    fn read_form(section: &Section<'_>, form: &str, zone: &Zone, zones: &Zones) -> Option<FileTrigger> {
        let dialect = section.get("dialect");
        let value = section.get(form)?;
        match form {
            "cron" => read_crons(value, dialect.and_then(Value::word), zones),
            "times" => read_times(value),
            "every" => read_every(value),
            "at" => read_instant(value, zone).map(|at| FileTrigger::Fixed(Trigger::At(At(at)))),
            "after" => value.duration().map(FileTrigger::After),
            _ => value.boolean().map(|_| FileTrigger::Immediate),
        }
    }

    /// Reports a trigger that fires at no time at all.
    ///
    /// One that merely has no time left is fine: the file outlives its one-shots. Too many skipped slots in a row end
    /// the search in favour of the trigger.
    pub(super) fn refuse_never(&self, section: &Section<'_>, zone: &Zone, gate: &Gate<'_>, zones: &Zones) {
        let FileTrigger::Fixed(trigger) = self else { return };
        let timetable = Timetable::new(trigger, zone.name(), gate.dst, zones).ok();
        let bounded = timetable.map(|timetable| timetable.with_bounds(gate.bounds));
        let gated = match gate.calendar {
            None => bounded,
            Some(calendar) => bounded.and_then(|timetable| timetable.with_calendar(calendar, zones).ok()),
        };
        let Some(timetable) = gated else { return };
        // No year of a cron lies before; an instant may.
        let from = if matches!(trigger, Trigger::At(_)) { Timestamp::MIN } else { Timestamp::UNIX_EPOCH };
        let mut slots = timetable.slots(from).looking_at(LOOKED_AT_MAX);
        let mut skipped = 0_usize;
        for slot in slots.by_ref() {
            if slot.skipped.is_none() {
                return;
            }
            skipped += 1;
        }
        if slots.cut_at().is_some() {
            return;
        }
        let fix = match (skipped, gate.bounds == Bounds::default()) {
            (0, true) => "use days, months and years that come together",
            (0, false) => "use a time between start_at and end_at",
            _ => "use a time at which the clock and the calendar let it run",
        };
        let form = FORMS.iter().find_map(|form| section.get(form));
        form.expect("a trigger has been read").refuse("this never fires", fix);
    }

    /// The keys of the forms and their values; `null` for those not used.
    pub(super) fn settings(&self) -> Map<String, Json> {
        let mut settings: Map<String, Json> = FORMS.into_iter().map(|form| (form.to_owned(), Json::Null)).collect();
        settings.insert("immediate".to_owned(), (*self == FileTrigger::Immediate).into());
        let mut dialect = Json::Null;
        let (form, value) = match self {
            FileTrigger::Immediate => ("immediate", true.into()),
            FileTrigger::After(delay) => ("after", delay.to_string().into()),
            FileTrigger::Every(interval) => ("every", interval.to_string().into()),
            FileTrigger::Fixed(Trigger::Cron(crons)) => {
                dialect = one_dialect(crons).map_or(Json::Null, |dialect| dialect.word().into());
                ("cron", crons.iter().map(zoned_cron::show).collect())
            }
            FileTrigger::Fixed(Trigger::Times(times)) => ("times", Vec::<String>::from(times.clone()).into()),
            FileTrigger::Fixed(Trigger::At(At(at))) => ("at", at.to_string().into()),
            FileTrigger::Fixed(_) => unreachable!("the file has no other form"),
        };
        settings.insert(form.to_owned(), value);
        settings.insert("dialect".to_owned(), dialect);
        settings
    }
}

/// The dialect of all crons; where they differ, each has that of its number of fields.
fn one_dialect(crons: &Crons) -> Option<Dialect> {
    let mut dialects = crons.iter().map(|entry| entry.cron.dialect());
    let first = dialects.next()?;
    dialects.all(|dialect| dialect == first).then_some(first)
}

/// Reads an instant, or a local time in a zone.
pub(super) fn read_instant(value: &Value<'_>, zone: &Zone) -> Option<Timestamp> {
    let text = value.time_text()?;
    let at = At::parse(&text, zone, Pass::First).map_err(|error| value.refuse_text(&text, &error, false)).ok()?;
    Some(at.0)
}

fn read_crons(value: &Value<'_>, dialect: Option<Dialect>, zones: &Zones) -> Option<FileTrigger> {
    let values = if value.is_list() { value.list()? } else { vec![value.clone()] };
    let mut crons = vec![];
    for value in &values {
        let Some(text) = value.text() else { continue };
        let parsed =
            zoned_cron::parse(text, dialect).map_err(|error| value.refuse_text(text, &error, error.field != "cron"));
        let Ok(mut entry) = parsed else { continue };
        if let Some(name) = &entry.zone {
            let Some(zone) = read_zone(value, name, zones) else { continue };
            entry.zone = Some(zone.name().to_owned());
        }
        crons.push(entry);
    }
    if crons.len() < values.len() {
        return None;
    }
    let crons = Crons::new(crons).map_err(|error| value.refuse(error.problem, error.fix)).ok()?;
    Some(FileTrigger::Fixed(Trigger::Cron(crons)))
}

fn read_times(value: &Value<'_>) -> Option<FileTrigger> {
    let mut texts = vec![];
    let mut has_problem = false;
    for value in value.list()? {
        let text = value.time_text()?;
        if let Err(error) = TimesOfDay::parse(&[&text]) {
            value.refuse_text(&text, &error, false);
            has_problem = true;
        }
        texts.push(text);
    }
    if has_problem {
        return None;
    }
    let times = TimesOfDay::parse(&texts).map_err(|error| value.refuse(error.problem, error.fix)).ok()?;
    Some(FileTrigger::Fixed(Trigger::Times(times)))
}

fn read_every(value: &Value<'_>) -> Option<FileTrigger> {
    let interval = value.duration()?;
    // Where it counts from does not matter for whether it may be.
    let checked = Every::from_anchor(interval, Timestamp::UNIX_EPOCH);
    checked.map_err(|error| value.refuse(error.problem, error.fix)).ok()?;
    Some(FileTrigger::Every(interval))
}

/// Looks a zone up.
pub(super) fn read_zone(value: &Value<'_>, name: &str, zones: &Zones) -> Option<Zone> {
    let zone = zones.get(name);
    if zone.is_err() {
        let names = zones.names();
        let fix = match nearest(name, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => "use a name like \"Europe/Paris\" or \"UTC\"".to_owned(),
        };
        let problem = format!("{} is not an IANA time zone of tzdata {}", short(name), zones.version());
        value.refuse(problem, fix);
    }
    zone.ok()
}
