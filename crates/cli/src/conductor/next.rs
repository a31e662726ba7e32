//! When a schedule fires next, there and here, and whether that is the same.

use jiff::Timestamp;
use serde_json::Value;

use crate::times::Wall;

/// When a schedule fires next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nobody says.
    Unknown,
    /// Never again.
    Never,
    At(Timestamp),
}

impl Next {
    /// The earliest of times that a server tells; unknown if it tells nothing.
    pub(super) fn of(told: Option<Vec<i64>>) -> Next {
        let Some(times) = told else { return Next::Unknown };
        let Some(first) = times.into_iter().min() else { return Next::Never };
        Timestamp::from_millisecond(first).map_or(Next::Unknown, Next::At)
    }

    /// What a schedule says of itself, if that is still to come.
    pub(super) fn of_schedule(schedule: &Value, now: Timestamp) -> Next {
        let told = schedule["nextRunTime"].as_i64().map(|millis| vec![millis]);
        match Next::of(told) {
            Next::At(at) if now < at => Next::At(at),
            _ => Next::Unknown,
        }
    }

    /// The earlier of two crons of a schedule.
    pub(super) fn or_earlier(self, other: Next) -> Next {
        match (self, other) {
            (Next::Unknown, _) | (_, Next::Unknown) => Next::Unknown,
            (Next::Never, other) | (other, Next::Never) => other,
            (Next::At(one), Next::At(other)) => Next::At(one.min(other)),
        }
    }

    /// Whether its time has come: then it says nothing about what is next.
    pub(super) fn is_past(self, now: Timestamp) -> bool {
        matches!(self, Next::At(at) if at <= now)
    }

    /// Whether another says something else. Whoever says nothing says nothing else.
    pub(super) fn differs(self, other: Next) -> bool {
        self != other && self != Next::Unknown && other != Next::Unknown
    }

    pub(super) fn shown(self, wall: &Wall) -> String {
        match self {
            Next::Unknown => "-".to_owned(),
            Next::Never => "never".to_owned(),
            Next::At(at) => wall.date_time(at),
        }
    }

    pub(super) fn millis(self) -> Option<i64> {
        match self {
            Next::At(at) => Some(at.as_millisecond()),
            Next::Unknown | Next::Never => None,
        }
    }
}

/// A question for the next time of a cron: what stands behind `nextFewSchedules`.
pub(super) type Question = Vec<(&'static str, String)>;

/// One question for each cron of a schedule, in its own zone, or in a zone that is given.
pub(super) fn questions(schedule: &Value, zone: Option<&str>) -> Vec<Question> {
    let own = &schedule["zoneId"];
    let listed = schedule["cronSchedules"].as_array().filter(|crons| !crons.is_empty());
    let crons: Vec<(&Value, &Value)> = match listed {
        Some(crons) => crons.iter().map(|entry| (&entry["cronExpression"], &entry["zoneId"])).collect(),
        None => vec![(&schedule["cronExpression"], own)],
    };
    let named = |zone: &Value| zone.as_str().filter(|zone| !zone.trim().is_empty()).map(str::to_owned);
    let question = |(cron, cron_zone): (&Value, &Value)| {
        let zone = zone.map(str::to_owned).or_else(|| named(cron_zone)).or_else(|| named(own));
        let bound = |field: &'static str| Some((field, schedule[field].as_i64().filter(|at| 0 < *at)?.to_string()));
        let cron = ("cronExpression", cron.as_str().unwrap_or_default().to_owned());
        let rest = [zone.map(|zone| ("zoneId", zone)), bound("scheduleStartTime"), bound("scheduleEndTime")];
        let limit = ("limit", "1".to_owned());
        [cron, limit].into_iter().chain(rest.into_iter().flatten()).collect()
    };
    crons.into_iter().map(question).collect()
}

/// The same questions without the bounds of the schedule.
pub(super) fn unbounded(questions: Vec<Question>) -> Vec<Question> {
    let is_kept = |(name, _): &(&'static str, String)| !matches!(*name, "scheduleStartTime" | "scheduleEndTime");
    questions.into_iter().map(|question| question.into_iter().filter(is_kept).collect()).collect()
}

/// Whether a zone of a schedule makes a difference.
pub(super) fn has_zone(schedule: &Value) -> bool {
    let zones = questions(schedule, None).into_iter().flatten().filter(|(name, _)| *name == "zoneId");
    zones.into_iter().any(|(_, zone)| zone != "UTC")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn what_lies_behind_is_not_what_comes_next() {
        let schedule = json!({"nextRunTime": 1_000});
        assert_eq!(Next::of_schedule(&schedule, at(999)), Next::At(at(1_000)));
        assert_eq!(Next::of_schedule(&schedule, at(1_000)), Next::Unknown);
        assert_eq!(Next::of_schedule(&json!({"nextRunTime": null}), at(0)), Next::Unknown);
        assert_eq!(Next::of_schedule(&json!({}), at(0)), Next::Unknown);
    }

    #[test]
    fn whoever_says_nothing_says_nothing_else() {
        let (one, other) = (Next::At(at(1)), Next::At(at(2)));
        assert!(one.differs(other) && one.differs(Next::Never) && !one.differs(one) && !one.differs(Next::Unknown));
        assert_eq!((one.or_earlier(other), one.or_earlier(Next::Never)), (one, one));
        assert_eq!(one.or_earlier(Next::Unknown), Next::Unknown);
    }

    #[test]
    fn each_cron_is_asked_about_in_its_own_zone_and_within_the_bounds() {
        let text = |question: &Question| {
            question.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
        };
        let one = json!({"cronExpression": "0 0 9 * * *", "zoneId": "Asia/Tokyo", "scheduleStartTime": 0,
            "scheduleEndTime": 7});
        assert_eq!(
            text(&questions(&one, None)[0]),
            "cronExpression=0 0 9 * * *&limit=1&zoneId=Asia/Tokyo&scheduleEndTime=7"
        );
        assert_eq!(text(&unbounded(questions(&one, Some("UTC")))[0]), "cronExpression=0 0 9 * * *&limit=1&zoneId=UTC");
        let several = json!({"cronExpression": "x", "zoneId": "UTC",
            "cronSchedules": [{"cronExpression": "a", "zoneId": "Asia/Tokyo"}, {"cronExpression": "b"}]});
        let asked: Vec<String> = questions(&several, None).iter().map(text).collect();
        assert_eq!(asked, ["cronExpression=a&limit=1&zoneId=Asia/Tokyo", "cronExpression=b&limit=1&zoneId=UTC"]);
        assert!(has_zone(&several) && !has_zone(&json!({"cronExpression": "a", "zoneId": "UTC"})));
    }
}
