//! Settings of a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use punctual_core::schedule::Timetables;
use punctual_core::time::{Calendar, Zones};
use punctual_core::{Elapsed, NodeId};
use punctual_store::{About, Keep, Sign};

use crate::roster::{Agents, Class, Roster};

/// What a node is built with, besides its store.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What people call the node.
    pub name: String,
    /// Where clients reach it, if that can be said.
    pub url: Option<String>,
    /// Which machine it is on, for those who compare loopback addresses.
    pub machine: Option<String>,
    /// How long its lease lasts. It is renewed three times in that time.
    pub lease: Elapsed,
    /// The net under the timers: no loop rests longer without a look.
    pub poll: Elapsed,
    /// How many runs it carries out at once as processes.
    pub places: usize,
    /// How many runs it has other servers carry out at once.
    pub remote_places: usize,
    /// The agents that it has, and how many runs may be at work.
    pub roster: Arc<Roster>,
    /// The shortest time between a run and the next one that its agent asks for.
    pub min_interval: Elapsed,
    /// How long an approval may take: after that, silence is a no.
    pub approval_wait: Elapsed,
    /// The zone data.
    pub zones: Arc<Zones>,
    /// The calendars.
    pub calendars: BTreeMap<String, Calendar>,
    /// How long a stopping node waits for what is at work.
    pub drain: Elapsed,
    /// How long the journal is kept, and with it what became of runs.
    pub journal_kept: Elapsed,
    /// How long what runs have printed is kept.
    pub output_kept: Elapsed,
    /// The most runs that are made up for at once after an outage; the rest follow a second apart.
    pub max_recovery_catch_ups: usize,
    /// How many records of started workflows each schedule keeps; all of them, if it is not said.
    pub records_kept: Option<Keep>,
    /// What schedules compile to with this zone data and these calendars, made when it is first asked for.
    pub compiled: Compiled,
}

/// What schedules compile to. A copy begins anew: its owner may have other zone data or calendars.
#[derive(Debug, Default)]
pub struct Compiled(OnceLock<Arc<Timetables>>);

impl Clone for Compiled {
    fn clone(&self) -> Compiled {
        Compiled::default()
    }
}

impl Settings {
    /// The defaults, for a node with these agents.
    pub fn new(name: impl Into<String>, agents: BTreeSet<String>, zones: Zones) -> Settings {
        const DAY: u32 = 86_400;
        Settings {
            name: name.into(),
            url: None,
            machine: None,
            lease: Elapsed::from_seconds(30),
            poll: Elapsed::from_seconds(5),
            places: 8,
            remote_places: 64,
            roster: Arc::new(Roster::new(Agents::named(agents))),
            min_interval: Elapsed::from_seconds(300),
            approval_wait: Elapsed::from_seconds(DAY),
            zones: Arc::new(zones),
            calendars: BTreeMap::new(),
            drain: Elapsed::from_seconds(30),
            journal_kept: Elapsed::from_seconds(90 * DAY),
            output_kept: Elapsed::from_seconds(7 * DAY),
            max_recovery_catch_ups: 1_000,
            records_kept: None,
            compiled: Compiled::default(),
        }
    }

    /// What schedules compile to.
    pub fn timetables(&self) -> &Arc<Timetables> {
        self.compiled.0.get_or_init(|| Arc::new(Timetables::new(Arc::clone(&self.zones), self.calendars.clone())))
    }

    /// How many runs of a class it carries out at once.
    pub fn places_of(&self, class: Class) -> usize {
        match class {
            Class::Process => self.places,
            Class::Remote => self.remote_places,
        }
    }

    /// What a node says of itself at an instant, when so many runs are at work here.
    pub fn sign(&self, node: NodeId, now: Timestamp, running: usize) -> Sign {
        let about = About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            zone_data: self.zones.version().to_owned(),
            places: self.places,
            running,
            // What the store knows better.
            skew: 0,
            url: self.url.clone(),
            machine: self.machine.clone(),
        };
        let (name, lease, agents) = (self.name.clone(), self.lease, self.roster.now().names);
        Sign { node, name, now, lease, agents, about }
    }
}
