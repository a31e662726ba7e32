//! Columns: states, ids and JSON as tables have them, in every dialect.

use jiff::Timestamp;
use punctual_core::NodeId;
use punctual_core::journal::checksum;
use punctual_core::run::{Outcome, Run, RunState, Tally, Terms};
use punctual_core::schedule::{Cursor, Schedule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// What a row says cannot be read as what it stands for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Damage(pub(crate) String);

/// A [`RunState`], as columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateColumns {
    pub(crate) state: String,
    pub(crate) ready_at: Option<Timestamp>,
    pub(crate) resumes: bool,
    pub(crate) owner: Option<NodeId>,
    pub(crate) wait_for: Option<String>,
    pub(crate) wait_until: Option<Timestamp>,
    pub(crate) reason: Option<String>,
    pub(crate) tally: Tally,
}

impl StateColumns {
    /// The columns of a state.
    pub(crate) fn of(state: &RunState) -> StateColumns {
        let mut columns = StateColumns {
            state: state.name().to_owned(),
            ready_at: None,
            resumes: false,
            owner: None,
            wait_for: None,
            wait_until: None,
            reason: None,
            tally: state.tally(),
        };
        match state {
            RunState::Planned { due_at, resumes, .. } => {
                (columns.ready_at, columns.resumes) = (Some(*due_at), *resumes);
            }
            RunState::Claimed { owner, resumes, .. } => (columns.owner, columns.resumes) = (Some(*owner), *resumes),
            RunState::Running { owner, .. } => columns.owner = Some(*owner),
            RunState::Waiting { on, wait_until, .. } => {
                (columns.wait_for, columns.wait_until) = (Some(to_word(on)), Some(*wait_until));
            }
            RunState::Finished { outcome: Outcome::Failed(code), .. } => columns.reason = Some(to_word(code)),
            RunState::Finished { outcome: Outcome::Skipped(reason), .. } => columns.reason = Some(to_word(reason)),
            RunState::Finished { .. } => {}
        }
        columns
    }

    /// The state that the columns say, all of them: one that has no place in it is a contradiction.
    pub(crate) fn to_state(&self) -> Result<RunState, Damage> {
        let state = self.named_state()?;
        if StateColumns::of(&state) != *self {
            return Err(Damage(format!("a run that is {} has columns of another state: {self:?}", self.state)));
        }
        Ok(state)
    }

    /// The state that has the name, from the columns that it needs.
    fn named_state(&self) -> Result<RunState, Damage> {
        let StateColumns { resumes, tally, .. } = *self;
        let reason = || self.reason.as_deref().ok_or_else(|| self.lacks("reason"));
        let owner = || self.owner.ok_or_else(|| self.lacks("owner"));
        let outcome = match self.state.as_str() {
            "planned" => {
                let due_at = self.ready_at.ok_or_else(|| self.lacks("time"))?;
                return Ok(RunState::Planned { due_at, resumes, tally });
            }
            "claimed" => return Ok(RunState::Claimed { owner: owner()?, resumes, tally }),
            "running" => return Ok(RunState::Running { owner: owner()?, tally }),
            "waiting" => {
                let on = from_word(self.wait_for.as_deref().ok_or_else(|| self.lacks("wait"))?, "a wait")?;
                let wait_until = self.wait_until.ok_or_else(|| self.lacks("end of its wait"))?;
                return Ok(RunState::Waiting { on, wait_until, tally });
            }
            "succeeded" => Outcome::Succeeded,
            "failed" => Outcome::Failed(from_word(reason()?, "a failure")?),
            "unknown" => Outcome::Unknown,
            "cancelled" => Outcome::Cancelled,
            "skipped" => Outcome::Skipped(from_word(reason()?, "a skip")?),
            other => return Err(Damage(format!("a run has the state {other:?}"))),
        };
        Ok(RunState::Finished { outcome, tally })
    }

    fn lacks(&self, what: &str) -> Damage {
        Damage(format!("a run that is {} has no {what}", self.state))
    }
}

/// Refuses what the life of a run does not come to.
pub(crate) fn check_run(run: &Run) -> Result<(), Damage> {
    let is_running = matches!(run.state, RunState::Running { .. });
    let contradiction = if run.started_at.is_some() != is_running {
        "the start of its attempt"
    } else if run.ended_at.is_some() != run.state.is_final() {
        "its end"
    } else if is_running && !run.has_started {
        "whether its work has begun"
    } else if run.owner().is_some() && run.state.tally().attempt == 0 {
        "its attempts"
    } else {
        return Ok(());
    };
    Err(Damage(format!("run {} is {}, which {contradiction} contradicts", run.id, run.state.name())))
}

/// A number without a sign, in a column that has one: the bits are the same.
pub(crate) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// A count or an epoch. None comes near the end of the numbers.
pub(crate) fn count(number: i64) -> u64 {
    number.max(0).cast_unsigned()
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is stored is plain data")
}

pub(crate) fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Damage> {
    serde_json::from_str(text).map_err(|error| Damage(format!("{what} cannot be read: {error}")))
}

/// The one word that stands for a value, as JSON has it.
pub(crate) fn to_word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => unreachable!("a word stands for it in JSON"),
    }
}

pub(crate) fn from_word<T: DeserializeOwned>(word: &str, what: &str) -> Result<T, Damage> {
    let deserializer = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(word);
    T::deserialize(deserializer).map_err(|error| Damage(format!("{what} cannot be read: {error}")))
}

/// The definition of a schedule: what its cursor and its count do not touch.
pub(crate) fn definition(schedule: &Schedule) -> String {
    let mut schedule = schedule.clone();
    schedule.cursor = Cursor::starting(Timestamp::UNIX_EPOCH);
    schedule.runs_started = 0;
    to_json(&schedule)
}

/// Whether two schedules are told apart by nothing but cursor and count.
pub(crate) fn is_same_definition(a: &Schedule, b: &Schedule) -> bool {
    let moved = Schedule { cursor: b.cursor.clone(), runs_started: b.runs_started, ..a.clone() };
    moved == *b
}

/// The digest that terms are known by.
pub(crate) fn terms_id(terms: &Terms) -> (Uuid, String) {
    let body = to_json(terms);
    let half = |seed| checksum(seed, 0, Timestamp::UNIX_EPOCH, &body);
    (Uuid::from_u64_pair(half(1), half(2)), body)
}
