//! What handlers work with.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::schedule::CatchUp;
use punctual_core::time::Zone;
use punctual_core::{By, Elapsed};
use punctual_engine::clock::Clock;
use punctual_engine::edit::Editor;
use punctual_engine::ids::Ids;
use punctual_engine::meters::Meters;
use punctual_engine::node::Nudges;
use punctual_engine::roster::AgentInfo;
use punctual_engine::settings::Settings;
use punctual_store::Store;

use crate::auth::Doors;
use crate::calculations::Calculations;
use crate::error::ApiError;
use crate::pulse::Pulse;

/// Everything that a handler may need.
#[derive(Clone)]
pub struct App {
    /// Where everything is kept, as requests read it: with places and a deadline of their own.
    pub store: Arc<dyn Store>,
    /// Carries out what people ask for.
    pub editor: Editor,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn Ids>,
    /// The settings of this node.
    pub settings: Arc<Settings>,
    /// What operators lay down.
    pub rules: Arc<HouseRules>,
    /// Tells the loops of this node that something has changed.
    pub nudges: Arc<Nudges>,
    /// What this node has counted.
    pub meters: Arc<Meters>,
    /// Who may come in.
    pub doors: Arc<Doors>,
    /// Tells whoever follows the journal that it has grown.
    pub pulse: Pulse,
    /// Where what requests want calculated is calculated.
    pub calculations: Calculations,
}

/// What operators lay down for everybody who comes over the API.
#[derive(Debug, Clone)]
pub struct HouseRules {
    /// The zone of requests that name none.
    pub default_zone: Zone,
    /// The shortest time between two runs of a schedule.
    pub min_interval: Elapsed,
    /// With more runs a day, whoever makes a schedule is warned.
    pub runs_per_day_warning: usize,
    /// What holds for schedules that come over Conductor's API.
    pub conductor: ConductorRules,
}

/// What operators lay down for schedules that come over Conductor's API.
#[derive(Debug, Clone)]
pub struct ConductorRules {
    /// The zone of crons that name none.
    pub zone: Zone,
    /// Each run is due up to so much later.
    pub jitter: Elapsed,
    /// How many missed slots are made up for at most.
    pub catch_up_max: u32,
}

impl ConductorRules {
    /// The rules of an operator who says nothing: crons are in this zone.
    pub fn new(zone: Zone) -> ConductorRules {
        ConductorRules { zone, jitter: Elapsed::ZERO, catch_up_max: CatchUp::UNLIMITED }
    }
}

impl App {
    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The editor, on behalf of somebody.
    pub(crate) fn editor_for(&self, by: &By) -> Editor {
        self.editor.by(by.clone())
    }

    /// An agent of this node that a request names.
    pub(crate) fn agent(&self, name: &str) -> Result<AgentInfo, ApiError> {
        let agents = self.settings.roster.now().infos;
        agents.get(name).filter(|_| !name.contains(':')).cloned().ok_or_else(|| {
            // What is built in is nobody's to name.
            let known: Vec<&str> = agents.keys().map(String::as_str).filter(|name| !name.contains(':')).collect();
            let fix = if known.is_empty() {
                "operators define agents in the configuration".to_owned()
            } else {
                format!("use one of {}", known.join(", "))
            };
            ApiError::invalid("agentId", format!("there is no agent {name:?}"), fix)
        })
    }
}
