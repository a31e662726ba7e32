//! What one seed makes of the world before anything happens in it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::Elapsed;
use punctual_core::plan::Limits;
use punctual_core::time::{Calendar, Zones};
use punctual_engine::roster::{Agents, Roster};
use punctual_engine::settings::Settings;

use crate::random::Random;
use crate::zone_data;

/// The zones that schedules use. Each changes its clock, or does so in an odd way.
pub(crate) const ZONES: [&str; 10] = [
    "UTC",
    "Europe/Paris",
    "America/New_York",
    "Africa/Cairo",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "America/St_Johns",
    "Asia/Kathmandu",
    "America/Havana",
];

/// The agents. The last one is on no node.
pub(crate) const AGENTS: [&str; 5] = ["cleaner", "mailer", "reporter", "rare", "gone"];

/// The projects.
pub(crate) const PROJECTS: [&str; 3] = ["alpha", "beta", "gamma"];

/// What stays the same during one history.
pub(crate) struct Setup {
    /// What the clock shows first.
    pub(crate) start: Timestamp,
    /// How long things go wrong.
    pub(crate) lasts: Duration,
    pub(crate) is_exclusive: bool,
    /// How many nodes there are.
    pub(crate) slots: usize,
    pub(crate) lease: Duration,
    pub(crate) poll: Duration,
    pub(crate) places: usize,
    pub(crate) limits: Arc<Limits>,
    pub(crate) calendars: BTreeMap<String, Calendar>,
    pub(crate) journal_kept: Elapsed,
    pub(crate) max_recovery_catch_ups: usize,
    /// The zone data before and behind an update.
    pub(crate) zones: [Arc<Zones>; 2],
}

impl Setup {
    pub(crate) fn of(seed: u64) -> Setup {
        let mut random = Random::new(seed, "setup");
        let is_exclusive = random.chance(30);
        let lease = Duration::from_secs(*random.pick(&[300, 600, 1_200]));
        let mut zones = [zone_data::bundled(), zone_data::abolished()];
        if random.chance(50) {
            zones.reverse();
        }
        let limit = |random: &mut Random, percent, last| random.chance(percent).then(|| random.between(1, last) as u32);
        let named = |random: &mut Random, names: &[&str], percent| {
            let named = names.iter().filter_map(|name| Some((name.to_string(), limit(random, percent, 3)?)));
            named.collect::<BTreeMap<String, u32>>()
        };
        let limits = Limits {
            agents: named(&mut random, &AGENTS, 40),
            projects: named(&mut random, &PROJECTS, 40),
            global: limit(&mut random, 30, 6),
        };
        Setup {
            start: start(&mut random),
            lasts: Duration::from_secs(random.between(2 * 86_400, 6 * 86_400)),
            is_exclusive,
            slots: if is_exclusive { 1 } else { random.between(1, 5) as usize },
            lease,
            poll: lease / 2,
            places: random.between(1, 8) as usize,
            limits: Arc::new(limits),
            calendars: calendars(),
            journal_kept: Elapsed::from_seconds(random.between(1, 48) as u32 * 3_600),
            max_recovery_catch_ups: *random.pick(&[2, 10, 1_000]),
            zones,
        }
    }

    /// The settings of a node in a slot. Not every node has every agent.
    pub(crate) fn settings(&self, slot: usize, zones: &Arc<Zones>) -> Settings {
        let on_every = AGENTS[..3].iter();
        let agents = on_every.chain((slot == 0).then_some(&AGENTS[3])).map(|agent| agent.to_string());
        let agents = Agents { limits: Arc::clone(&self.limits), ..Agents::named(agents) };
        Settings {
            name: format!("node {slot}"),
            machine: None,
            url: None,
            lease: elapsed(self.lease),
            poll: elapsed(self.poll),
            places: self.places,
            roster: Arc::new(Roster::new(agents)),
            min_interval: Elapsed::from_seconds(300),
            approval_wait: Elapsed::from_seconds(3_600),
            zones: Arc::clone(zones),
            compiled: Default::default(),
            calendars: self.calendars.clone(),
            drain: Elapsed::from_seconds(120),
            journal_kept: self.journal_kept,
            output_kept: Elapsed::from_seconds(7 * 86_400),
            max_recovery_catch_ups: self.max_recovery_catch_ups,
            remote_places: 1,
            records_kept: None,
        }
    }
}

/// Most histories begin shortly before some zone changes its clock.
fn start(random: &mut Random) -> Timestamp {
    let new_year: Timestamp = "2026-01-01T00:00:00Z".parse().expect("it is an instant");
    let day = new_year + SignedDuration::from_secs(random.below(365 * 86_400) as i64);
    if random.chance(25) {
        return day;
    }
    let name = *random.pick(&ZONES);
    let zone = zone_data::bundled().get(name).expect("the zone data has it");
    let change = zone.next_change(day).unwrap_or(day);
    change - SignedDuration::from_secs(random.below(3 * 86_400) as i64)
}

fn calendars() -> BTreeMap<String, Calendar> {
    static CALENDARS: OnceLock<BTreeMap<String, Calendar>> = OnceLock::new();
    let read = || {
        let office = serde_json::json!({
            "name": "office", "zone": "Europe/Paris",
            "weekly": {"mon": ["08:00-18:00"], "tue": ["08:00-18:00"], "wed": ["08:00-18:00"],
                       "thu": ["08:00-18:00"], "fri": ["08:00-16:00"], "sat": ["22:00-02:00"]},
        });
        let office: Calendar = serde_json::from_value(office).expect("it is a calendar");
        [("office".to_owned(), office)].into()
    };
    CALENDARS.get_or_init(read).clone()
}

fn elapsed(time: Duration) -> Elapsed {
    Elapsed::from_milliseconds(time.as_millis() as i64).expect("it is short enough")
}
