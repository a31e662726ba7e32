//! The fields of a schedule as the API has them, and what they mean.
//!
//! A request for a new schedule gives some of them. A change reads those of the schedule as it is, lays the request over them
//! and takes the result for a request: so both follow the same rules.

use std::num::NonZeroU32;

use jiff::Timestamp;
use punctual_core::run::{Backoff, RetryPolicy};
use punctual_core::schedule::{
    At, Bounds, CatchUp, CatchUpMode, Crons, DstPolicy, GapPolicy, Immediate, InputType, InputsPolicy, MaxDelay,
    Overlap, Pass, Pause, PauseKind, Policy, Priority, RepeatPolicy, Schedule, ScheduleState, Trigger, Work,
};
use punctual_core::time::{Cron, Dialect, Every, TimesOfDay, Zone};
use punctual_core::{Elapsed, ParseError};
use punctual_engine::roster::AgentInfo;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;

/// A schedule as it is asked for. In a change, what is absent or null stays as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ScheduleFields {
    /// The agent that it starts, one of the configuration.
    #[schema(example = "reporter")]
    pub(crate) agent_id: Option<String>,
    /// Its name, once in its project. Without one, an agent has one schedule in a project.
    #[schema(example = "morning-report")]
    pub(crate) name: Option<String>,
    /// Whether it produces runs; true unless it says otherwise.
    pub(crate) enabled: Option<bool>,
    /// The IANA name of its zone; the configured default when absent.
    #[schema(example = "America/Denver")]
    pub(crate) timezone: Option<String>,
    /// What makes it fire.
    pub(crate) schedule_type: Option<ScheduleType>,
    /// For `CRON`: 5, 6 (seconds first) or 7 fields, or a macro.
    #[schema(example = "0 9 * * MON-FRI")]
    pub(crate) cron_expr: Option<String>,
    /// How the day fields of `cronExpr` are read; `unix` for 5 fields and `spring` for 6 and 7 when absent.
    #[schema(value_type = Option<String>, example = "unix")]
    pub(crate) dialect: Option<Dialect>,
    /// For `FIXED_TIMES`: times of day.
    #[schema(example = json!(["09:00", "17:00"]))]
    pub(crate) times_of_day: Option<Vec<String>>,
    /// For `INTERVAL`: minutes between two runs.
    #[schema(example = 30)]
    pub(crate) interval_minutes: Option<u32>,
    /// For `AT`: an instant, or a local time in its zone.
    #[schema(example = "2026-03-09T09:00:00")]
    pub(crate) run_at: Option<String>,
    /// Whether it belongs to a project.
    pub(crate) project_scope: Option<ProjectScope>,
    /// The project that it belongs to.
    pub(crate) project_id: Option<String>,
    /// What the agent is asked to do.
    pub(crate) prompt: Option<String>,
    /// What the agent is given.
    #[schema(value_type = Option<Object>)]
    pub(crate) inputs: Option<Map<String, Value>>,
    /// What the agent is to read.
    pub(crate) inputs_policy: Option<InputsFields>,
    /// How its runs are carried out.
    pub(crate) executor_policy: Option<ExecutorFields>,
    /// What happens when a run is due while another is at work; `queue` when absent.
    #[schema(value_type = Option<String>, example = "queue")]
    pub(crate) overlap: Option<Overlap>,
    /// Which slots that an outage missed are run; `latest` when absent.
    #[schema(value_type = Option<String>, example = "latest")]
    pub(crate) catch_up: Option<CatchUpMode>,
    /// At most so many, under `all`.
    pub(crate) catch_up_max: Option<u32>,
    /// Only those that are not older.
    #[schema(example = "6h")]
    pub(crate) catch_up_window: Option<String>,
    /// How late a run may start: `day`, `none` or a duration.
    #[schema(example = "day")]
    pub(crate) max_delay: Option<String>,
    /// Each run is due up to so much later.
    #[schema(example = "0s")]
    pub(crate) jitter: Option<String>,
    /// No slot before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) start_at: Option<Timestamp>,
    /// No slot behind.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) end_at: Option<Timestamp>,
    /// How many runs may start.
    pub(crate) max_runs: Option<u64>,
    /// What becomes of a time of day that the clock jumps over: `after` or `skip`.
    #[schema(value_type = Option<String>, example = "after")]
    pub(crate) dst_gap: Option<GapPolicy>,
    /// What becomes of a time of day that the clock shows twice: `once` or `both`.
    #[schema(value_type = Option<String>, example = "once")]
    pub(crate) dst_repeat: Option<RepeatPolicy>,
    /// A calendar of the configuration: slots outside are skipped.
    pub(crate) calendar: Option<String>,
}

/// What makes a schedule fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum ScheduleType {
    /// A cron expression.
    Cron,
    /// The same times every day.
    FixedTimes,
    /// Elapsed time.
    Interval,
    /// Once, as soon as it exists and whenever it is enabled again.
    Immediate,
    /// Once, then.
    At,
    /// An event. Not to be asked for here.
    Event,
}

/// Whether a schedule belongs to a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum ProjectScope {
    /// It belongs to none.
    Global,
    /// It belongs to `projectId`.
    Project,
}

/// What the agent is to read.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct InputsFields {
    /// `threads_since_last_run`, `latest_intake_window`, `all` or `none`.
    #[schema(value_type = Option<String>, example = "threads_since_last_run")]
    pub(crate) input_type: Option<InputType>,
    /// How long the window of the latest intake is.
    #[schema(minimum = 1)]
    pub(crate) window_minutes: Option<u32>,
    /// Which threads, by lifecycle or tag.
    pub(crate) thread_filter: Option<String>,
}

/// How the runs of a schedule are carried out.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ExecutorFields {
    /// How many runs of its agent may be at work when one of its own starts; 1 when absent.
    #[schema(example = 1, minimum = 1)]
    pub(crate) max_concurrent: Option<u32>,
    /// How urgent its runs are: 1 to 10; 5 when absent.
    #[schema(example = 5, minimum = 1, maximum = 10)]
    pub(crate) priority: Option<u8>,
    /// Tries in all; 3 when absent.
    #[schema(example = 3, minimum = 1)]
    pub(crate) max_attempts: Option<u32>,
    /// The rest between two tries; 60,000 when absent.
    #[schema(example = 60_000)]
    pub(crate) retry_backoff_ms: Option<u64>,
    /// Whether a person has to approve each run of an agent that may write or execute.
    pub(crate) risk_gate: Option<bool>,
}

/// A name that stands for an agent's one schedule without a name in a project.
fn unnamed(agent: &str) -> String {
    format!("@{agent}")
}

/// The name that people gave a schedule.
pub(crate) fn given_name(schedule: &Schedule) -> Option<&str> {
    schedule.name.as_deref().filter(|name| !name.starts_with('@'))
}

impl ScheduleFields {
    /// The fields of a schedule as it is.
    pub(crate) fn of(schedule: &Schedule) -> ScheduleFields {
        let work = &schedule.work;
        let policy = &schedule.policy;
        let mut fields = ScheduleFields {
            agent_id: Some(work.agent().to_owned()),
            name: given_name(schedule).map(str::to_owned),
            enabled: Some(
                !matches!(&schedule.state, ScheduleState::Paused(pause) if pause.kind == PauseKind::Disabled),
            ),
            timezone: Some(String::clone(&schedule.zone)),
            project_scope: Some(if schedule.project.is_some() { ProjectScope::Project } else { ProjectScope::Global }),
            project_id: Option::clone(&schedule.project),
            prompt: Some(work.prompt().to_owned()),
            inputs: Some(work.inputs().clone()),
            inputs_policy: work.inputs_policy().map(InputsFields::of),
            executor_policy: Some(ExecutorFields::of(policy)),
            overlap: Some(policy.overlap),
            catch_up: Some(policy.catch_up.mode),
            catch_up_max: Some(policy.catch_up.max),
            catch_up_window: policy.catch_up.window.map(|window| window.to_string()),
            max_delay: Some(match policy.max_delay {
                MaxDelay::Day => "day".to_owned(),
                MaxDelay::None => "none".to_owned(),
                MaxDelay::Duration(delay) => delay.to_string(),
            }),
            jitter: Some(schedule.jitter.to_string()),
            start_at: schedule.bounds.start_at(),
            end_at: schedule.bounds.end_at(),
            max_runs: schedule.bounds.max_runs(),
            dst_gap: Some(policy.dst.gap),
            dst_repeat: Some(policy.dst.repeat),
            calendar: Option::clone(&schedule.calendar),
            ..ScheduleFields::default()
        };
        fields.set_trigger(&schedule.trigger);
        fields
    }

    fn set_trigger(&mut self, trigger: &Trigger) {
        let kind = match trigger {
            Trigger::Cron(crons) => {
                let first = crons.iter().next();
                self.cron_expr = first.map(|first| first.cron.text().to_owned());
                self.dialect = first.map(|first| first.cron.dialect());
                ScheduleType::Cron
            }
            Trigger::Times(times) => {
                self.times_of_day = serde_json::to_value(times).and_then(serde_json::from_value).ok();
                ScheduleType::FixedTimes
            }
            Trigger::Every(every) => {
                self.interval_minutes = u32::try_from(every.interval().milliseconds() / 60_000).ok();
                ScheduleType::Interval
            }
            Trigger::At(At(at)) => {
                self.run_at = Some(at.to_string());
                ScheduleType::At
            }
            Trigger::After(after) => {
                self.run_at = after.instant().map(|at| at.to_string());
                ScheduleType::At
            }
            Trigger::Immediate(_) => ScheduleType::Immediate,
            Trigger::OnEvent(_) => ScheduleType::Event,
        };
        self.schedule_type = Some(kind);
    }

    /// Whether a change touches what makes it fire.
    fn says_when(&self) -> bool {
        self.schedule_type.is_some()
            || self.cron_expr.is_some()
            || self.dialect.is_some()
            || self.times_of_day.is_some()
            || self.interval_minutes.is_some()
            || self.run_at.is_some()
    }

    /// These fields, with those of a change laid over them.
    pub(crate) fn changed_by(mut self, change: ScheduleFields) -> ScheduleFields {
        // Another kind of trigger has fields of its own; the text of another cron may be of another dialect.
        if change.schedule_type.is_some_and(|kind| Some(kind) != self.schedule_type) {
            (self.cron_expr, self.dialect, self.times_of_day) = (None, None, None);
            (self.interval_minutes, self.run_at) = (None, None);
        }
        if change.cron_expr.is_some() && change.cron_expr != self.cron_expr {
            self.dialect = None;
        }
        // Whoever names a project means one.
        if change.project_id.is_some() && change.project_scope.is_none() {
            self.project_scope = Some(ProjectScope::Project);
        }
        if change.project_scope == Some(ProjectScope::Global) && change.project_id.is_none() {
            self.project_id = None;
        }
        let executor = match (self.executor_policy, change.executor_policy) {
            (Some(before), Some(change)) => Some(before.changed_by(change)),
            (before, change) => change.or(before),
        };
        ScheduleFields {
            agent_id: change.agent_id.or(self.agent_id),
            name: change.name.or(self.name),
            enabled: change.enabled.or(self.enabled),
            timezone: change.timezone.or(self.timezone),
            schedule_type: change.schedule_type.or(self.schedule_type),
            cron_expr: change.cron_expr.or(self.cron_expr),
            dialect: change.dialect.or(self.dialect),
            times_of_day: change.times_of_day.or(self.times_of_day),
            interval_minutes: change.interval_minutes.or(self.interval_minutes),
            run_at: change.run_at.or(self.run_at),
            project_scope: change.project_scope.or(self.project_scope),
            project_id: change.project_id.or(self.project_id),
            prompt: change.prompt.or(self.prompt),
            inputs: change.inputs.or(self.inputs),
            inputs_policy: change.inputs_policy.or(self.inputs_policy),
            executor_policy: executor,
            overlap: change.overlap.or(self.overlap),
            catch_up: change.catch_up.or(self.catch_up),
            catch_up_max: change.catch_up_max.or(self.catch_up_max),
            catch_up_window: change.catch_up_window.or(self.catch_up_window),
            max_delay: change.max_delay.or(self.max_delay),
            jitter: change.jitter.or(self.jitter),
            start_at: change.start_at.or(self.start_at),
            end_at: change.end_at.or(self.end_at),
            max_runs: change.max_runs.or(self.max_runs),
            dst_gap: change.dst_gap.or(self.dst_gap),
            dst_repeat: change.dst_repeat.or(self.dst_repeat),
            calendar: change.calendar.or(self.calendar),
        }
    }

    /// The change of a schedule that fields ask for.
    pub(crate) fn apply_to(self, before: &Schedule, app: &App, by: &str, now: Timestamp) -> Result<Schedule, ApiError> {
        let (says_when, zone_changes) = (self.says_when(), self.timezone.as_ref().is_some_and(|it| before.zone != *it));
        let wanted = ScheduleFields::of(before).changed_by(self).into_schedule(app, by, now)?;
        let trigger = match (&*before.trigger, &*wanted.trigger) {
            // What counts from somewhere goes on counting from there.
            (Trigger::Every(old), Trigger::Every(new)) if old.interval() == new.interval() && !zone_changes => {
                Trigger::Every(*old)
            }
            // What the API cannot say in one field is left as it is, unless somebody says something else.
            (old, _) if !says_when => old.clone(),
            (_, new) => new.clone(),
        };
        let state = match (&before.state, &wanted.state) {
            // Enabled is not resumed: a pause has a verb of its own.
            (ScheduleState::Paused(pause), ScheduleState::Active) if pause.kind == PauseKind::Paused => {
                before.state.clone()
            }
            (ScheduleState::Paused(pause), ScheduleState::Paused(_)) => ScheduleState::Paused(pause.clone()),
            (ScheduleState::Ended(_), ScheduleState::Active) if !says_when => before.state.clone(),
            (_, wanted) => wanted.clone(),
        };
        let was_disabled = matches!(&before.state, ScheduleState::Paused(pause) if pause.kind == PauseKind::Disabled);
        let trigger = match trigger {
            Trigger::Immediate(_) if was_disabled && state == ScheduleState::Active => {
                Trigger::Immediate(Immediate { at: now })
            }
            Trigger::Immediate(_) if matches!(*before.trigger, Trigger::Immediate(_)) => {
                Trigger::clone(&before.trigger)
            }
            trigger => trigger,
        };
        Ok(Schedule { id: before.id, origin: before.origin, trigger: trigger.into(), state, ..wanted })
    }

    /// The schedule that fields ask for. Id, version and cursor come from the engine.
    pub(crate) fn into_schedule(self, app: &App, by: &str, now: Timestamp) -> Result<Schedule, ApiError> {
        let agent = self.agent_id.clone().ok_or_else(|| missing("agentId", "the name of an agent"))?;
        let info = app.agent(&agent)?;
        let name = match &self.name {
            Some(name) => checked_name("name", name)?,
            None => unnamed(&agent),
        };
        let project = self.project()?;
        let zone = self.zone(app)?;
        let trigger = self.trigger(&zone, now)?;
        if let Some(max) = self.max_runs.filter(|max| i64::MAX as u64 <= *max) {
            return Err(ApiError::invalid("maxRuns", format!("{max} is out of range"), "use less, or leave it out"));
        }
        let bounds = Bounds::new(self.start_at, self.end_at, self.max_runs);
        let bounds = bounds.map_err(|error| ApiError::unreadable(bound_field(&error), error))?;
        let jitter = self.jitter.as_deref().map(|text| duration("jitter", text)).transpose()?.unwrap_or_default();
        if let Some(calendar) = self.calendar.as_ref().filter(|name| !app.settings.calendars.contains_key(*name)) {
            let known: Vec<&str> = app.settings.calendars.keys().map(String::as_str).collect();
            let fix = match known.is_empty() {
                true => "the configuration has none".to_owned(),
                false => format!("use one of the configuration: {}", known.join(", ")),
            };
            return Err(ApiError::invalid("calendar", format!("there is no calendar {calendar:?}"), fix));
        }
        let policy = self.policy(&info)?;
        let state = match self.enabled {
            Some(false) => {
                let (kind, source) = (PauseKind::Disabled, by.to_owned());
                ScheduleState::Paused(Box::new(Pause { kind, at: now, source, reason: None, until: None }))
            }
            _ => ScheduleState::Active,
        };
        let work = Work::Agent {
            agent: agent.into(),
            prompt: self.prompt.unwrap_or_default().into(),
            inputs: self.inputs.unwrap_or_default(),
            inputs_policy: self.inputs_policy.map(InputsFields::into_policy).transpose()?.into(),
        };
        Ok(Schedule {
            name: Some(name),
            project: project.into(),
            calendar: self.calendar.into(),
            bounds: bounds.into(),
            jitter,
            policy: policy.into(),
            state,
            ..Schedule::draft(work, trigger, zone.name(), now)
        })
    }

    fn project(&self) -> Result<Option<String>, ApiError> {
        match (self.project_scope, &self.project_id) {
            (Some(ProjectScope::Global), Some(_)) => {
                Err(ApiError::invalid("projectId", "a GLOBAL schedule has none", "leave it out, or use scope PROJECT"))
            }
            (Some(ProjectScope::Project), None) => Err(missing("projectId", "a project, or use scope GLOBAL")),
            (_, project) => project.as_deref().map(|name| checked_name("projectId", name)).transpose(),
        }
    }

    fn zone(&self, app: &App) -> Result<Zone, ApiError> {
        let Some(name) = &self.timezone else { return Ok(app.rules.default_zone.clone()) };
        let zone = app.settings.zones.get(name);
        zone.map_err(|error| ApiError::unknown_zone("timezone", &error))
    }

    fn trigger(&self, zone: &Zone, now: Timestamp) -> Result<Trigger, ApiError> {
        let kind = self
            .schedule_type
            .ok_or_else(|| missing("scheduleType", "CRON, FIXED_TIMES, INTERVAL, IMMEDIATE or AT"))?;
        for (field, is_given, of) in [
            ("cronExpr", self.cron_expr.is_some(), ScheduleType::Cron),
            ("dialect", self.dialect.is_some(), ScheduleType::Cron),
            ("timesOfDay", self.times_of_day.is_some(), ScheduleType::FixedTimes),
            ("intervalMinutes", self.interval_minutes.is_some(), ScheduleType::Interval),
            ("runAt", self.run_at.is_some(), ScheduleType::At),
        ] {
            if is_given && kind != of {
                let fix = format!("leave it out, or use scheduleType {}", word(of));
                return Err(ApiError::invalid(field, format!("it does not go with {}", word(kind)), fix));
            }
        }
        Ok(match kind {
            ScheduleType::Cron => {
                let text =
                    self.cron_expr.as_deref().ok_or_else(|| missing("cronExpr", "a cron like 0 9 * * MON-FRI"))?;
                let cron = Cron::parse(text, self.dialect).map_err(|error| ApiError::unreadable("cronExpr", error))?;
                Trigger::Cron(Crons::one(cron))
            }
            ScheduleType::FixedTimes => {
                let times = self.times_of_day.as_ref().ok_or_else(|| missing("timesOfDay", "times like 09:00"))?;
                Trigger::Times(TimesOfDay::parse(times).map_err(|error| ApiError::unreadable("timesOfDay", error))?)
            }
            ScheduleType::Interval => {
                let minutes = self.interval_minutes.ok_or_else(|| missing("intervalMinutes", "a number of minutes"))?;
                let interval = Elapsed::from_milliseconds(i64::from(minutes) * 60_000);
                let interval =
                    interval.ok_or_else(|| ApiError::invalid("intervalMinutes", "it is too long", "use less"))?;
                let every = Every::anchored(interval, zone, now);
                Trigger::Every(every.map_err(|error| ApiError::unreadable("intervalMinutes", error))?)
            }
            ScheduleType::At => {
                let text = self.run_at.as_deref().ok_or_else(|| missing("runAt", "an instant or a local time"))?;
                let at = At::parse(text, zone, Pass::First);
                Trigger::At(at.map_err(|error| ApiError::unreadable("runAt", error))?)
            }
            ScheduleType::Immediate => Trigger::Immediate(Immediate { at: now }),
            ScheduleType::Event => {
                return Err(ApiError::invalid("scheduleType", "events are declared in apps", "use another type"));
            }
        })
    }

    fn policy(&self, agent: &AgentInfo) -> Result<Policy, ApiError> {
        let default = Policy::default();
        let executor = self.executor_policy.clone().unwrap_or_default();
        let window = self.catch_up_window.as_deref().map(|text| duration("catchUpWindow", text)).transpose()?;
        Ok(Policy {
            dst: DstPolicy { gap: self.dst_gap.unwrap_or_default(), repeat: self.dst_repeat.unwrap_or_default() },
            catch_up: CatchUp {
                mode: self.catch_up.unwrap_or(default.catch_up.mode),
                max: self.catch_up_max.unwrap_or(default.catch_up.max),
                window,
                ..default.catch_up
            },
            overlap: self.overlap.unwrap_or_default(),
            max_delay: self.max_delay.as_deref().map(max_delay).transpose()?.unwrap_or_default(),
            timeout: agent.timeout,
            retry: executor.retry(default.retry)?,
            priority: match executor.priority {
                None => Priority::default(),
                Some(priority) => {
                    Priority::new(priority).map_err(|error| ApiError::unreadable("executorPolicy.priority", error))?
                }
            },
            max_concurrent: match executor.max_concurrent {
                None => default.max_concurrent,
                Some(max) => at_least_one("executorPolicy.maxConcurrent", max)?,
            },
            risk_gate: executor.risk_gate.unwrap_or(false),
            ..default
        })
    }
}

impl InputsFields {
    fn of(policy: &InputsPolicy) -> InputsFields {
        InputsFields {
            input_type: Some(policy.input_type),
            window_minutes: policy.window_minutes,
            thread_filter: policy.thread_filter.clone(),
        }
    }

    fn into_policy(self) -> Result<InputsPolicy, ApiError> {
        let input_type = self.input_type.ok_or_else(|| {
            missing("inputsPolicy.inputType", "threads_since_last_run, latest_intake_window, all or none")
        })?;
        if self.window_minutes == Some(0) {
            return Err(ApiError::invalid(
                "inputsPolicy.windowMinutes",
                "a window of no time is empty",
                "use 1 or more",
            ));
        }
        Ok(InputsPolicy { input_type, window_minutes: self.window_minutes, thread_filter: self.thread_filter })
    }
}

impl ExecutorFields {
    fn of(policy: &Policy) -> ExecutorFields {
        ExecutorFields {
            max_concurrent: Some(policy.max_concurrent.get()),
            priority: Some(policy.priority.get()),
            max_attempts: Some(policy.retry.max_attempts.get()),
            retry_backoff_ms: u64::try_from(policy.retry.delay.milliseconds()).ok(),
            risk_gate: Some(policy.risk_gate),
        }
    }

    fn changed_by(self, change: ExecutorFields) -> ExecutorFields {
        ExecutorFields {
            max_concurrent: change.max_concurrent.or(self.max_concurrent),
            priority: change.priority.or(self.priority),
            max_attempts: change.max_attempts.or(self.max_attempts),
            retry_backoff_ms: change.retry_backoff_ms.or(self.retry_backoff_ms),
            risk_gate: change.risk_gate.or(self.risk_gate),
        }
    }

    fn retry(&self, default: RetryPolicy) -> Result<RetryPolicy, ApiError> {
        let delay = match self.retry_backoff_ms {
            None => default.delay,
            Some(rest) => i64::try_from(rest).ok().and_then(Elapsed::from_milliseconds).ok_or_else(|| {
                ApiError::invalid("executorPolicy.retryBackoffMs", format!("{rest} is too long"), "use less")
            })?,
        };
        let max_attempts = match self.max_attempts {
            None => default.max_attempts,
            Some(max) => at_least_one("executorPolicy.maxAttempts", max)?,
        };
        Ok(RetryPolicy {
            max_attempts,
            backoff: Backoff::Fixed,
            delay,
            delay_max: default.delay_max.max(delay),
            ..default
        })
    }
}

fn missing(field: &str, wanted: &str) -> ApiError {
    ApiError::invalid(field, "it is missing", format!("give {wanted}"))
}

fn at_least_one(field: &str, number: u32) -> Result<NonZeroU32, ApiError> {
    NonZeroU32::new(number).ok_or_else(|| ApiError::invalid(field, "0 is out of range", "use 1 or more"))
}

fn duration(field: &'static str, text: &str) -> Result<Elapsed, ApiError> {
    Elapsed::parse(text).map_err(|error| ApiError::unreadable(field, error))
}

fn max_delay(text: &str) -> Result<MaxDelay, ApiError> {
    match text {
        "day" => Ok(MaxDelay::Day),
        "none" => Ok(MaxDelay::None),
        text => duration("maxDelay", text).map(MaxDelay::Duration),
    }
}

/// The field of the API that a bound comes from.
fn bound_field(error: &ParseError) -> &'static str {
    match error.field.as_str() {
        "max_runs" => "maxRuns",
        "start_at" => "startAt",
        _ => "endAt",
    }
}

/// A name that fits on a line and means itself.
pub(crate) fn checked_name(field: &str, name: &str) -> Result<String, ApiError> {
    const LENGTH_MAX: usize = 200;
    let problem = if name.trim().is_empty() {
        "it is empty"
    } else if LENGTH_MAX < name.chars().count() {
        "it is too long"
    } else if name.trim() != name || name.contains(char::is_control) {
        "it begins or ends with space, or holds characters that nobody sees"
    } else if name.starts_with('@') {
        "names that begin with @ are Punctual's own"
    } else {
        return Ok(name.to_owned());
    };
    Err(ApiError::invalid(field, problem, format!("use 1 to {LENGTH_MAX} visible characters")))
}

fn word(kind: ScheduleType) -> &'static str {
    match kind {
        ScheduleType::Cron => "CRON",
        ScheduleType::FixedTimes => "FIXED_TIMES",
        ScheduleType::Interval => "INTERVAL",
        ScheduleType::Immediate => "IMMEDIATE",
        ScheduleType::At => "AT",
        ScheduleType::Event => "EVENT",
    }
}
