//! Saving a schedule: what it says is checked here, and it replaces the one of its name.

use std::num::NonZeroU32;

use jiff::Timestamp;
use punctual_core::run::{Backoff, RetryPolicy};
use punctual_core::schedule::{
    Bounds, CatchUp, CatchUpMode, Crons, DstPolicy, Face, GapPolicy, MaxDelay, Overlap, Pause, PauseKind, Policy,
    RepeatPolicy, Schedule, ScheduleState, Trigger, Work, Workflow, ZonedCron,
};
use punctual_core::time::{Cron, Dialect, Zone};
use punctual_core::{Elapsed, ParseError};
use punctual_engine::checks;
use punctual_engine::edit::EditError;
use punctual_engine::roster::STARTER;

use super::error::refused;
use super::find::{find, project_of};
use super::model::{TagView, WorkflowSchedule};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// How often it is tried when others save the same name at the same moment.
const TRIES_MAX: usize = 20;

/// The longest name.
const NAME_MAX: usize = 256;

/// How long the start of a workflow may take.
const START_TIMEOUT: Elapsed = Elapsed::from_seconds(60);

/// How long a workflow is followed.
const FOLLOW_TIMEOUT: Elapsed = Elapsed::from_seconds(7 * 86_400);

/// How often a server that fails is asked to start a workflow.
const START_TRIES: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);

/// What a request asks for, checked.
pub(super) struct Wanted {
    schedule: Schedule,
    tags: Option<Vec<TagView>>,
    warnings: Vec<String>,
}

/// Saves a schedule: it is new, or takes the place of the one of its name. What it is now, and what may not be as it was meant.
pub(super) async fn save(
    app: &App,
    caller: &Caller,
    request: WorkflowSchedule,
) -> Result<(Schedule, Vec<String>), ApiError> {
    let now = app.now();
    let wanted = Wanted::read(app, caller, request, now)?;
    let name = wanted.schedule.name.clone().unwrap_or_default();
    let editor = app.editor_for(&caller.by());
    for _ in 0..TRIES_MAX {
        let saved = match find(app, caller, &name).await? {
            None => editor.create(wanted.schedule.clone(), now).await,
            Some(before) => editor.edit(before.id, None, app.now(), |before| wanted.in_place_of(before)).await,
        };
        match saved {
            Ok(saved) => {
                app.nudges.schedules_changed();
                return Ok((saved, wanted.warnings));
            }
            // Somebody else has saved or deleted it meanwhile.
            Err(EditError::NameTaken(_) | EditError::NotFound(_) | EditError::Busy(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::conflict("changed_meanwhile", format!("Schedule '{name}' is being changed by others: try again")))
}

impl Wanted {
    fn read(app: &App, caller: &Caller, request: WorkflowSchedule, now: Timestamp) -> Result<Wanted, ApiError> {
        let name = checked_name(request.name.as_deref())?;
        if request.catch_up_max == Some(0) {
            return Err(refused("catchUpMax", "catchUpMax: use 1 or more, or leave it out"));
        }
        let (trigger, zone) = trigger(app, &request)?;
        let bounds = bounds(&request)?;
        let start = request
            .start_workflow_request
            .ok_or_else(|| refused("startWorkflowRequest", "startWorkflowRequest is required"))?;
        let workflow = start.into_workflow().map_err(|error| {
            let field = format!("startWorkflowRequest.{}", error.field);
            refused(&field, error.within(&field).to_string())
        })?;
        let is_followed = request.follow_workflow == Some(true);
        let workflow = Workflow { started_by: Some(name.clone()), is_followed, ..workflow };
        let workflows = app.settings.roster.now().workflows;
        let agent = workflows.agent_for(&workflow.name).to_owned();
        let mut warnings = vec![];
        if workflows.lacks(&workflow.name) {
            warnings.push(format!(
                "nobody starts workflow '{}': [conductor.workflows] maps it to no agent, and [conductor] has no server_url; \
                 each run will fail",
                workflow.name
            ));
        }
        let policy = policy(
            app,
            &agent,
            &workflow,
            request.run_catchup_schedule_instances,
            request.catch_up_max,
            request.overlap,
        );
        let by = &caller.token.name;
        let state = match request.paused {
            Some(true) => {
                let (kind, source, reason) = (PauseKind::Paused, by.clone(), request.paused_reason);
                ScheduleState::Paused(Box::new(Pause { kind, at: now, source, reason, until: None }))
            }
            _ => ScheduleState::Active,
        };
        let work = Work::Workflow { agent: agent.into(), request: Box::new(workflow) };
        let schedule = Schedule {
            face: Face::Conductor,
            name: Some(name),
            project: project_of(caller)?.into(),
            bounds: bounds.into(),
            jitter: app.rules.conductor.jitter,
            policy: policy.into(),
            state,
            description: request.description.into(),
            created_by: request.created_by.or_else(|| Some(by.clone())).into(),
            updated_by: request.updated_by.or_else(|| Some(by.clone())).into(),
            ..Schedule::draft(work, trigger, zone.name(), now)
        };
        warnings.extend(outlook(app, &schedule, now)?);
        let tags = request.tags;
        let schedule = Schedule { tags: into_tags(tags.clone().unwrap_or_default()).into(), ..schedule };
        Ok(Wanted { schedule, tags, warnings })
    }

    /// What takes the place of a schedule: who made it and when stays, and so does a pause that goes on.
    fn in_place_of(&self, before: &Schedule) -> Schedule {
        let wanted = self.schedule.clone();
        let state = match (&before.state, &wanted.state) {
            (ScheduleState::Paused(pause), ScheduleState::Paused(new)) => {
                let reason = new.reason.clone().or_else(|| pause.reason.clone());
                ScheduleState::Paused(Box::new(Pause { reason, ..Pause::clone(pause) }))
            }
            (_, state) => state.clone(),
        };
        let tags = if self.tags.is_some() { wanted.tags.clone() } else { before.tags.clone() };
        Schedule { id: before.id, created_by: before.created_by.clone(), origin: before.origin, state, tags, ..wanted }
    }
}

fn into_tags(tags: Vec<TagView>) -> Vec<punctual_core::schedule::Tag> {
    tags.into_iter().map(TagView::into_tag).collect()
}

fn checked_name(name: Option<&str>) -> Result<String, ApiError> {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| refused("name", "Schedule name is required"))?;
    if name == "search" {
        return Err(refused("name", "Schedule name: 'search' is a path of this API; use another name"));
    }
    if NAME_MAX < name.chars().count() || name.chars().any(char::is_control) {
        return Err(refused(
            "name",
            format!("Schedule name: use at most {NAME_MAX} characters, and no control characters"),
        ));
    }
    Ok(name.to_owned())
}

/// The crons of a request, and the zone whose days are the schedule's days.
fn trigger(app: &App, request: &WorkflowSchedule) -> Result<(Trigger, Zone), ApiError> {
    let own = request.zone_id.as_deref().filter(|zone| !zone.trim().is_empty());
    let listed = request.cron_schedules.as_deref().unwrap_or_default();
    let missing = || refused("cronExpression", "Cron expression is required");
    if listed.is_empty() {
        let text = request.cron_expression.as_deref().filter(|text| !text.trim().is_empty()).ok_or_else(missing)?;
        return Ok((Trigger::Cron(Crons::one(cron("cronExpression", text)?)), zone(app, "zoneId", own)?));
    }
    let mut crons = vec![];
    for (index, entry) in listed.iter().enumerate() {
        let field = format!("cronSchedules[{index}].cronExpression");
        let text = entry.cron_expression.as_deref().filter(|text| !text.trim().is_empty()).ok_or_else(missing)?;
        let name = entry.zone_id.as_deref().filter(|zone| !zone.trim().is_empty()).or(own);
        let zone = zone(app, &format!("cronSchedules[{index}].zoneId"), name)?;
        crons.push(ZonedCron { cron: cron(&field, text)?, zone: Some(zone.name().to_owned()) });
    }
    let first = crons.first().and_then(|entry| entry.zone.clone());
    let zone = zone(app, "zoneId", own.or(first.as_deref()))?;
    let crons =
        Crons::new(crons).map_err(|error| refused("cronSchedules", format!("Invalid cron schedules: {error}")))?;
    Ok((Trigger::Cron(crons), zone))
}

/// A cron of this face.
pub(super) fn cron(field: &str, text: &str) -> Result<Cron, ApiError> {
    Cron::parse(text, Some(Dialect::Spring)).map_err(|error: ParseError| {
        refused(field, format!("Invalid cron expression '{}': {error}", text.escape_debug()))
    })
}

/// A zone that a request names, or the one that the operator has laid down.
pub(super) fn zone(app: &App, field: &str, name: Option<&str>) -> Result<Zone, ApiError> {
    let Some(name) = name else { return Ok(app.rules.conductor.zone.clone()) };
    app.settings.zones.get(name.trim()).map_err(|error| {
        refused(field, format!("Invalid zoneId '{}': {error}; use an IANA name like Europe/Paris", name.escape_debug()))
    })
}

/// An instant in milliseconds; 0 is none.
pub(super) fn instant(field: &str, millis: Option<i64>) -> Result<Option<Timestamp>, ApiError> {
    let Some(millis) = millis.filter(|millis| 0 < *millis) else { return Ok(None) };
    let at = Timestamp::from_millisecond(millis);
    at.map(Some).map_err(|_| refused(field, format!("{field}: {millis} is no time; use milliseconds since 1970")))
}

fn bounds(request: &WorkflowSchedule) -> Result<Bounds, ApiError> {
    let start = instant("scheduleStartTime", request.schedule_start_time)?;
    let end = instant("scheduleEndTime", request.schedule_end_time)?;
    if start.zip(end).is_some_and(|(start, end)| end <= start) {
        return Err(refused("scheduleEndTime", "scheduleEndTime must be after scheduleStartTime"));
    }
    Bounds::new(start, end, None).map_err(|error| refused("scheduleEndTime", error.to_string()))
}

/// How often a workflow is tried. A start may be asked for again: it has a key. What an agent does is its own to repeat, as it is a
/// workflow's.
pub(super) fn retry_of(agent: &str) -> RetryPolicy {
    let (backoff, delay) = (Backoff::Exponential, Elapsed::from_seconds(1));
    let max_attempts = if agent == STARTER { START_TRIES } else { NonZeroU32::MIN };
    RetryPolicy { max_attempts, backoff, delay, ..RetryPolicy::default() }
}

fn policy(
    app: &App,
    agent: &str,
    workflow: &Workflow,
    catches_up: Option<bool>,
    catch_up_max: Option<u32>,
    overlap: Option<Overlap>,
) -> Policy {
    let catches_up = catches_up == Some(true);
    let timeout = match agent {
        STARTER if workflow.is_followed => FOLLOW_TIMEOUT,
        STARTER => START_TIMEOUT,
        agent => app.settings.roster.now().infos.get(agent).map_or(Policy::default().timeout, |info| info.timeout),
    };
    Policy {
        dst: DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Both },
        catch_up: CatchUp {
            mode: if catches_up { CatchUpMode::All } else { CatchUpMode::First },
            max: catch_up_max.unwrap_or(app.rules.conductor.catch_up_max),
            window: None,
            covers_pauses: catches_up,
        },
        overlap: overlap.unwrap_or(Overlap::Allow),
        max_delay: MaxDelay::None,
        retry: retry_of(agent),
        timeout,
        max_concurrent: NonZeroU32::MAX,
        ..Policy::default()
    }
}

/// What there is to say about the times of a schedule, which has to have some.
fn outlook(app: &App, schedule: &Schedule, now: Timestamp) -> Result<Option<String>, ApiError> {
    let will_fire = |schedule: &Schedule| {
        let checked = checks::will_fire(schedule, &app.settings, now);
        checked.map_err(|error| refused("zoneId", error.to_string()))
    };
    let unbounded = Schedule { bounds: Default::default(), ..schedule.clone() };
    if !will_fire(&unbounded)? {
        let why = "Invalid cron expression: it never fires, no day of the calendar matches it";
        return Err(refused("cronExpression", why));
    }
    let is_over = !will_fire(schedule)?;
    Ok(is_over.then(|| {
        "it does not fire any more: its scheduleEndTime is past, or no time lies between its bounds".to_owned()
    }))
}
