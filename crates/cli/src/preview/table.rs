//! A preview for people: a table, or rich JSON.

use jiff::Timestamp;
use jiff::tz::Offset;
use punctual_core::run::SkipReason;
use punctual_core::schedule::Trigger;
use punctual_core::time::{Slot, Zones};
use serde::Serialize;

use super::request::{Preview, Stopped};
use crate::table::{Cell, Column, table};

/// A schedule with more runs a day gets a remark: it may be meant, but it is often a slip.
const RUNS_PER_DAY_WARNING: usize = 500;

/// What `--json` says of a slot.
#[derive(Serialize)]
struct SlotView {
    key: String,
    at: String,
    due_at: String,
    local: String,
    zone: String,
    offset: String,
    fold: u8,
    skipped: Option<SkipReason>,
    note: Option<String>,
}

#[derive(Serialize)]
struct PreviewView {
    description: String,
    zone_data: String,
    slots: Vec<SlotView>,
    remarks: Vec<String>,
}

pub(super) fn json(preview: &Preview, zones: &Zones) -> anyhow::Result<String> {
    let slots = rows(preview, zones)
        .map(|(slot, note)| SlotView {
            key: slot.key().to_string(),
            at: slot.scheduled_at.to_string(),
            due_at: slot.due_at.to_string(),
            local: slot.nominal().to_string(),
            zone: slot.zone().to_owned(),
            offset: show_offset(slot.offset),
            fold: slot.fold(),
            skipped: slot.skipped,
            note,
        })
        .collect();
    let view = PreviewView {
        description: preview.description.clone(),
        zone_data: zones.version().to_owned(),
        slots,
        remarks: remarks(preview),
    };
    Ok(serde_json::to_string_pretty(&view)? + "\n")
}

pub(super) fn text(preview: &Preview, zones: &Zones) -> String {
    let has_zones = preview.slots.iter().any(|slot| slot.zone() != preview.timetable.zone().name());
    let has_jitter = preview.slots.iter().any(|slot| slot.due_at != slot.scheduled_at);
    // Each column with its turn to give way.
    let mut columns = vec![Column::whole("LOCAL", 0), Column::whole("UTC", 2), Column::whole("OFFSET", 3)];
    columns.extend(has_jitter.then_some(Column::whole("DUE (UTC)", 1)));
    columns.extend(has_zones.then_some(Column::whole("ZONE", 4)));
    columns.push(Column::text("NOTE", 0, 16));
    let rows = rows(preview, zones).map(|(slot, note)| {
        let local = slot.nominal();
        let mut row: Vec<Cell> = vec![
            format!("{} {}", local.date().strftime("%a"), local.to_string().replace('T', " ")).into(),
            slot.scheduled_at.to_string().into(),
            show_offset(slot.offset).into(),
        ];
        row.extend(has_jitter.then(|| slot.due_at.to_string().into()));
        row.extend(has_zones.then(|| slot.zone().into()));
        row.push(note.unwrap_or_default().into());
        row
    });
    let mut text = format!("{}\n", preview.description);
    if !preview.slots.is_empty() {
        text += &format!("\n{}", table(&columns, rows));
    }
    for remark in remarks(preview) {
        text += &format!("\n{remark}\n");
    }
    text
}

/// Each slot with a note where the clock, the calendar or a policy touches it.
fn rows<'p>(preview: &'p Preview, zones: &'p Zones) -> impl Iterator<Item = (&'p Slot, Option<String>)> {
    let mut before = preview.from;
    preview.slots.iter().map(move |slot| {
        let since = std::mem::replace(&mut before, slot.scheduled_at);
        (slot, note(slot, since, zones))
    })
}

/// What touches a slot. `since` is the slot before, or where the preview starts.
fn note(slot: &Slot, since: Timestamp, zones: &Zones) -> Option<String> {
    let time = slot.nominal().time();
    if slot.skipped == Some(SkipReason::DstGap) {
        return Some(format!("skipped (dst_gap): the clock jumps over {time}"));
    }
    if let Some(reason) = slot.skipped {
        return Some(format!("skipped ({reason})"));
    }
    if slot.is_in_gap {
        return Some(format!("the clock jumps over {time}: runs at the end of the gap"));
    }
    if slot.is_second_pass {
        return Some("second of two: the clock has gone back".to_owned());
    }
    let zone = zones.get(slot.zone()).ok()?;
    if zone.repeats_later(slot.scheduled_at) {
        return Some("first of two: the clock will go back".to_owned());
    }
    let offset_before = Offset::from_seconds(zone.offset_at(since)).ok()?;
    (offset_before != slot.offset)
        .then(|| format!("the clock has changed: the offset was {}", show_offset(offset_before)))
}

fn show_offset(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", seconds.abs() / 3_600, seconds.abs() / 60 % 60)
}

fn remarks(preview: &Preview) -> Vec<String> {
    let mut remarks = vec![];
    remarks.extend(ending(preview));
    if let Trigger::Every(_) = preview.trigger
        && let Some(change_at) = preview.timetable.zone().next_change(preview.from)
    {
        remarks.push(format!(
            "An interval is elapsed time, so the time on the clock moves when the clock changes, next at {change_at}. \
             For fixed times on the clock use --time or --cron."
        ));
    }
    if let Some(first) = preview.slots.first() {
        let zone = preview.timetable.zone();
        let runs = preview.timetable.count_on(zone.day_of(first.scheduled_at));
        if RUNS_PER_DAY_WARNING < runs {
            remarks.push(format!("That is {runs} runs on its first day, more than {RUNS_PER_DAY_WARNING}."));
        }
    }
    if let Trigger::Cron(crons) = &preview.trigger
        && crons.iter().any(|entry| entry.cron.is_interval_like())
        && preview.slots.windows(2).any(|pair| pair[0].offset != pair[1].offset && pair[0].zone() == pair[1].zone())
    {
        remarks.push(
            "A *, a range or a step in the second, minute or hour makes a rhythm: it has nothing in a gap and fires in \
             both passes of a repeated hour."
                .to_owned(),
        );
    }
    remarks
}

/// Why the list ends where it does, when nobody asked for that.
fn ending(preview: &Preview) -> Option<String> {
    let from = preview.from;
    match &preview.stopped {
        Stopped::AtLimit => Some(format!("Stopped after {} slots; there are more.", preview.slots.len())),
        Stopped::AfterSkips => {
            let looked_until = preview.slots.last().map(|slot| format!(" Looked until {}.", slot.scheduled_at));
            Some(format!("Stopped: too many slots are skipped.{}", looked_until.unwrap_or_default()))
        }
        Stopped::AtUntil { next_at } if preview.slots.is_empty() => {
            Some(format!("Nothing in that time; the next is at {next_at}."))
        }
        Stopped::AtEnd if matches!(preview.trigger, Trigger::OnEvent(_)) => {
            Some("Events make its runs; time alone makes none.".to_owned())
        }
        Stopped::AtEnd if preview.slots.is_empty() => match preview.timetable.before(from).next() {
            Some(last) => Some(format!("Never after {from}; the last was at {}.", last.scheduled_at)),
            None => Some("Never.".to_owned()),
        },
        Stopped::AtCount | Stopped::AtUntil { .. } | Stopped::AtEnd => None,
    }
}
