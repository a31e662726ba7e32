//! What became of one schedule: a row for people, an object for programs.

use serde_json::{Value, json};

use super::next::Next;
use crate::output::clean;
use crate::table::Cell;
use crate::times::Wall;

/// One schedule of theirs, and what became of it here.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) cron: String,
    pub(super) zone: String,
    /// Whether it is paused there.
    pub(super) is_paused: bool,
    /// Whether it is here and fires, or would.
    pub(super) is_active_here: bool,
    pub(super) theirs: Next,
    pub(super) ours: Next,
    pub(super) fate: Fate,
    /// Whether it fires next at another time than there.
    pub(super) differs: bool,
    /// What is worth a word about the times.
    pub(super) note: Option<&'static str>,
    /// What the server here thinks of it.
    pub(super) warnings: Vec<String>,
    pub(super) pause: TheirPause,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Imported,
    Replaced,
    Exists,
    Refused(String),
}

/// Whether it is still at work there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TheirPause {
    /// Nobody asked to pause it.
    NotAsked,
    Done,
    Failed(String),
}

impl Line {
    /// A schedule of theirs that nothing was done with.
    pub(super) fn of(schedule: &Value) -> Line {
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let crons = schedule["cronSchedules"].as_array().filter(|crons| !crons.is_empty());
        let own_zone = text(&schedule["zoneId"]);
        let (cron, zone) = match crons {
            None => (text(&schedule["cronExpression"]), own_zone),
            Some(crons) => {
                let all: Vec<String> = crons.iter().map(|entry| text(&entry["cronExpression"])).collect();
                let mut zones: Vec<String> = crons.iter().map(|entry| text(&entry["zoneId"])).collect();
                zones.dedup();
                (all.join(" | "), zones.join(" | "))
            }
        };
        Line {
            name: text(&schedule["name"]),
            cron,
            zone,
            is_paused: schedule["paused"] == true,
            is_active_here: false,
            theirs: Next::Unknown,
            ours: Next::Unknown,
            fate: Fate::Imported,
            differs: false,
            note: None,
            warnings: vec![],
            pause: TheirPause::NotAsked,
        }
    }

    /// Whether it came over as it was.
    pub(super) fn is_well(&self) -> bool {
        !self.differs && !matches!(self.fate, Fate::Refused(_)) && !matches!(self.pause, TheirPause::Failed(_))
    }

    /// Whether it was saved here, or would be.
    pub(super) fn is_saved(&self) -> bool {
        matches!(self.fate, Fate::Imported | Fate::Replaced)
    }

    /// Whether both servers go on firing it.
    pub(super) fn fires_twice(&self) -> bool {
        self.is_active_here && !self.is_paused && self.pause != TheirPause::Done
    }

    /// A row of the table.
    pub(super) fn row(&self, is_dry: bool, wall: &Wall) -> Vec<Cell> {
        vec![
            self.name.clone().into(),
            self.cron.clone().into(),
            self.zone.clone().into(),
            Cell::state(self.state()),
            self.theirs.shown(wall).into(),
            self.ours.shown(wall).into(),
            self.result(is_dry).into(),
        ]
    }

    fn state(&self) -> &'static str {
        if self.is_paused { "paused" } else { "active" }
    }

    /// What became of it, in words.
    fn result(&self, is_dry: bool) -> String {
        let mut text = match (&self.fate, is_dry) {
            (Fate::Imported, false) => "imported".to_owned(),
            (Fate::Imported, true) => "would be imported".to_owned(),
            (Fate::Replaced, false) => "replaced".to_owned(),
            (Fate::Replaced, true) => "would be replaced".to_owned(),
            (Fate::Exists, _) => "exists already".to_owned(),
            (Fate::Refused(why), false) => format!("refused: {}", clean(why)),
            (Fate::Refused(why), true) => format!("would be refused: {}", clean(why)),
        };
        if self.differs {
            text += ", differs";
        }
        if let Some(note) = self.note {
            text += &format!(" ({note})");
        }
        match &self.pause {
            TheirPause::NotAsked => text,
            TheirPause::Done => text + ", paused there",
            TheirPause::Failed(why) => format!("{text}, not paused there: {}", clean(why)),
        }
    }

    /// The same for programs.
    pub(super) fn json(&self, is_dry: bool) -> Value {
        let (result, reason) = match &self.fate {
            Fate::Imported => ("imported", None),
            Fate::Replaced => ("replaced", None),
            Fate::Exists => ("exists", None),
            Fate::Refused(why) => ("refused", Some(why)),
        };
        let (is_paused_there, problem) = match &self.pause {
            TheirPause::NotAsked => (self.is_paused, None),
            TheirPause::Done => (true, None),
            TheirPause::Failed(why) => (false, Some(why)),
        };
        json!({
            "name": self.name, "cron": self.cron, "zone": self.zone, "state": self.state(),
            "theirs": self.theirs.millis(), "ours": self.ours.millis(),
            "result": result, "reason": reason, "differs": self.differs, "dryRun": is_dry, "note": self.note,
            "pausedThere": is_paused_there, "pauseProblem": problem, "warnings": self.warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_crons_are_one_cell_with_their_zones() {
        let line = Line::of(&json!({"name": " a ", "cronExpression": "ignored", "zoneId": "UTC", "paused": true,
            "cronSchedules": [{"cronExpression": "0 0 9 * * *", "zoneId": "Asia/Tokyo"},
                {"cronExpression": "0 0 8 * * *", "zoneId": "Europe/Paris"}]}));
        assert_eq!((line.name.as_str(), line.cron.as_str()), ("a", "0 0 9 * * * | 0 0 8 * * *"));
        assert_eq!((line.zone.as_str(), line.state()), ("Asia/Tokyo | Europe/Paris", "paused"));
    }

    #[test]
    fn the_result_says_what_was_done_and_what_was_not() {
        let line = Line::of(&json!({"name": "a"}));
        assert_eq!(line.result(true), "would be imported");
        let line = Line { fate: Fate::Refused("no\ncron".to_owned()), ..line };
        assert_eq!((line.result(false).as_str(), line.is_well()), ("refused: no cron", false));
        let pause = TheirPause::Failed("404".to_owned());
        let line = Line { fate: Fate::Replaced, differs: true, is_active_here: true, pause, ..line };
        assert_eq!(line.result(false), "replaced, differs, not paused there: 404");
        assert!(line.fires_twice());
    }
}
