//! `punctual conductor import`: every schedule of a Conductor server, saved here and held against what it was there.
//!
//! In: the schedules of a running server, over its API. Out: the same schedules of a running Punctual, over its own. One that is
//! refused keeps no other from coming over. Nothing is changed on the other server unless `--pause-there` says so.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use punctual_agents::workflow::StartRequest;
use punctual_engine::clock::now;
use serde_json::{Value, json};

use super::line::{Fate, Line, TheirPause};
use super::next::{Next, Question, has_zone, questions, unbounded};
use super::theirs::{TheirArgs, Theirs};
use crate::client::{Client, ClientArgs, Failure, Kind, Query};
use crate::output::{clean, print, print_json};
use crate::progress::Progress;
use crate::table::{Column, table};
use crate::times::{Wall, ZoneArgs};

/// Its columns, with their turn to give way.
const COLUMNS: [Column; 7] = [
    Column::text("NAME", 0, 12),
    Column::text("CRON", 2, 10),
    Column::whole("ZONE", 1),
    Column::whole("STATE", 3),
    Column::whole("THEIRS", 4),
    Column::whole("OURS", 5),
    Column::text("RESULT", 0, 16),
];

const SCHEDULES: &str = "/api/scheduler/schedules";

const PREVIEW: &str = "/api/scheduler/nextFewSchedules";

/// Why schedules are paused on the other server. Whoever reads it there knows where they went, and so does the next import.
const MOVED: &str = "moved to Punctual";

/// What is the server's own to say.
const THEIR_OWN: [&str; 4] = ["createTime", "updatedTime", "nextRunTime", "warnings"];

/// How often times are asked for again when one of them comes while they are compared.
const COMPARED_MAX: usize = 3;

/// How many names are told at the end.
const TOLD_MAX: usize = 20;

/// Save all schedules of a running Conductor in the running Punctual.
///
/// Each is saved with everything it has: crons and zones, workflow, bounds, catch-up, tags, who made it, and whether it is paused
/// and why. When it fires next is compared with what the other server says. A name that exists here already is left alone,
/// unless --replace says otherwise. Exits with 1 if something was refused, fires at another time, or could not be paused there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual conductor import --from http://host:8080/api --dry-run        # what would be done
  punctual conductor import --from http://host:8080/api --pause-there    # move over
  punctual conductor import --from https://host/api --key-id 4f2a --key-secret-env CONDUCTOR_SECRET")]
pub(super) struct ImportArgs {
    #[command(flatten)]
    theirs: TheirArgs,

    /// Change nothing: say what would be done, and compare the times
    #[arg(long)]
    dry_run: bool,

    /// Replace schedules whose names exist here already
    #[arg(long)]
    replace: bool,

    /// Pause each schedule on the other server once it is saved here
    #[arg(long, conflicts_with = "dry_run")]
    pause_there: bool,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: ImportArgs) -> anyhow::Result<ExitCode> {
    let wall = args.zone.wall()?;
    let theirs = Theirs::enter(&args.theirs).await?;
    let schedules = theirs.schedules().await?;
    let ours = args.client.server().await?;
    if matches!(&ours, Client::Server(ours) if theirs.url() == format!("{}/api", ours.server().url())) {
        return Err(Failure::input("--from is this server itself; name the one that schedules come from").into());
    }
    let known = by_name(ours.get(SCHEDULES, &Query::default()).await?);
    let mut import = Import { theirs, ours, known, args, tells_of_each: true };
    let (mut lines, mut stopped) = (vec![], None);
    let progress = Progress::bar("importing");
    for schedule in &schedules {
        progress.show(lines.len() as u64, schedules.len() as u64);
        match import.bring(schedule).await {
            Ok(line) => lines.push(line),
            Err(failure) => {
                stopped = Some(failure);
                break;
            }
        }
    }
    drop(progress);
    if !lines.is_empty() || stopped.is_none() {
        import.tell(&lines, &wall)?;
    }
    match stopped {
        Some(failure) => Err(failure.into()),
        None => Ok(if lines.iter().all(Line::is_well) { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
    }
}

fn by_name(schedules: Value) -> BTreeMap<String, Value> {
    let Value::Array(schedules) = schedules else { return BTreeMap::new() };
    schedules.into_iter().filter_map(|it| Some((it["name"].as_str()?.to_owned(), it))).collect()
}

/// The way of schedules from one server to the other.
struct Import {
    theirs: Theirs,
    ours: Client,
    /// What was here before, by name.
    known: BTreeMap<String, Value>,
    args: ImportArgs,
    /// Whether their server may have a path for the times of each schedule.
    tells_of_each: bool,
}

impl Import {
    /// Brings one schedule over. Only what concerns all of them is an error.
    async fn bring(&mut self, schedule: &Value) -> Result<Line, Failure> {
        let mut line = Line::of(schedule);
        let known = self.known.get(&line.name).cloned();
        let here = match known {
            Some(known) if !self.args.replace => {
                line.fate = Fate::Exists;
                Ok(known)
            }
            known => {
                line.fate = if known.is_some() { Fate::Replaced } else { Fate::Imported };
                self.save(body(schedule, known.as_ref())).await
            }
        };
        match here {
            Ok(here) => {
                line.is_active_here = here["paused"] != true;
                let warnings = here["warnings"].as_array().into_iter().flatten();
                line.warnings = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
                self.compare(&mut line, schedule, &here).await?;
            }
            Err(failure) if matches!(failure.kind, Kind::NoServer | Kind::NotAllowed) => return Err(failure),
            Err(failure) => line.fate = Fate::Refused(failure.to_string()),
        }
        if self.args.pause_there && line.is_saved() && !line.is_paused {
            line.pause = match self.theirs.pause(name_there(schedule), MOVED).await {
                Ok(()) => TheirPause::Done,
                Err(failure) => TheirPause::Failed(failure.to_string()),
            };
        }
        Ok(line)
    }

    /// Saves a schedule, or finds out what would be said about it. What it is then.
    async fn save(&self, body: Value) -> Result<Value, Failure> {
        if !self.args.dry_run {
            return self.ours.post(SCHEDULES, &Query::default(), &body).await;
        }
        if let Some(problem) = problem(&body) {
            return Err(Failure::input(problem));
        }
        let asked = questions(&body, None);
        if self.our_next(asked.clone()).await? == Next::Never && self.our_next(unbounded(asked)).await? == Next::Never {
            return Err(Failure::input("Invalid cron expression: it never fires"));
        }
        Ok(body)
    }

    /// Holds the next time here against the one there.
    async fn compare(&mut self, line: &mut Line, schedule: &Value, here: &Value) -> Result<(), Failure> {
        let (mut theirs, mut ours) = (Next::of_schedule(schedule, now()), Next::of_schedule(here, now()));
        let mut is_of_cron = false;
        for _ in 0..COMPARED_MAX {
            if theirs == Next::Unknown {
                (theirs, is_of_cron) = self.their_next(schedule).await;
            }
            if ours == Next::Unknown {
                ours = self.our_next(questions(here, None)).await?;
            }
            let now = now();
            if !theirs.differs(ours) || !theirs.is_past(now) && !ours.is_past(now) {
                break;
            }
            // A time has come between the two questions.
            (theirs, ours) = (Next::Unknown, Next::Unknown);
        }
        line.differs = theirs.differs(ours);
        if line.differs && is_of_cron && has_zone(here) {
            // Most of their servers read every cron that they are asked about in UTC.
            let without_zone = self.our_next(questions(here, Some("UTC"))).await?;
            if without_zone == theirs {
                (line.differs, line.note) = (false, Some("their preview knows no zone"));
            }
        }
        (line.theirs, line.ours) = (theirs, ours);
        Ok(())
    }

    /// When their server fires it next, and whether that is only said of its crons.
    async fn their_next(&mut self, schedule: &Value) -> (Next, bool) {
        if self.tells_of_each {
            match self.theirs.next_of(name_there(schedule)).await {
                Some(times) => return (Next::of(Some(times)), false),
                None => self.tells_of_each = false,
            }
        }
        let mut next = Next::Never;
        for question in questions(schedule, None) {
            next = next.or_earlier(Next::of(self.theirs.preview(&question).await));
        }
        (next, true)
    }

    /// When this server would fire crons next.
    async fn our_next(&self, questions: Vec<Question>) -> Result<Next, Failure> {
        let mut next = Next::Never;
        for question in questions {
            let query =
                question.into_iter().fold(Query::default(), |query, (name, value)| query.with(name, Some(value)));
            let times = self.ours.get(PREVIEW, &query).await?;
            let times = times.as_array().and_then(|times| times.iter().map(Value::as_i64).collect());
            next = next.or_earlier(Next::of(times));
        }
        Ok(next)
    }

    fn tell(&self, lines: &[Line], wall: &Wall) -> anyhow::Result<()> {
        let is_dry = self.args.dry_run;
        if self.args.client.json {
            let all: Vec<Value> = lines.iter().map(|line| line.json(is_dry)).collect();
            return print_json(&json!({"from": self.theirs.url(), "dryRun": is_dry, "schedules": all}));
        }
        if lines.is_empty() {
            return print(&format!("There is no schedule at {}.\n", self.theirs.url()));
        }
        print(&table(&COLUMNS, lines.iter().map(|line| line.row(is_dry, wall))))?;
        for line in lines {
            line.warnings.iter().for_each(|warning| eprintln!("warning: {}: {}", clean(&line.name), clean(warning)));
        }
        eprint!("{}", self.what_to_do(lines));
        Ok(())
    }

    /// What is to be done so that nothing fires on both servers.
    fn what_to_do(&self, lines: &[Line]) -> String {
        let both: Vec<&Line> = lines.iter().filter(|line| line.fires_twice()).collect();
        if both.is_empty() {
            return String::new();
        }
        let mut names: Vec<String> = both.iter().take(TOLD_MAX).map(|line| clean(&line.name)).collect();
        if TOLD_MAX < both.len() {
            names.push(format!("and {} more", both.len() - TOLD_MAX));
        }
        let url = self.theirs.url();
        let verb = if self.args.dry_run { "would be active" } else { "are active" };
        let again = if self.args.dry_run { "--pause-there" } else { "--replace --pause-there" };
        format!(
            "\n{} {verb} here and there, and fire on both: {}\nPause them there: run this again with {again}, or send PUT \
             {url}/scheduler/schedules/NAME/pause (GET, where PUT is a 405).\n",
            both.len(),
            names.join(", ")
        )
    }
}

/// The name of a schedule as their server has it, with every blank.
fn name_there(schedule: &Value) -> &str {
    schedule["name"].as_str().unwrap_or_default()
}

/// What is saved of a schedule of theirs: all that is not its server's own to say.
fn body(schedule: &Value, known: Option<&Value>) -> Value {
    let mut body = schedule.clone();
    if let Some(fields) = body.as_object_mut() {
        THEIR_OWN.iter().for_each(|field| drop(fields.remove(*field)));
    }
    // It is paused there because it is here: an import that comes again does not stop it.
    if let Some(known) = known.filter(|_| schedule["paused"] == true && schedule["pausedReason"] == MOVED) {
        body["paused"] = known["paused"].clone();
        body["pausedReason"] = known["pausedReason"].clone();
    }
    body
}

/// Why a schedule would be refused, as far as that can be told without asking for its times.
fn problem(body: &Value) -> Option<String> {
    if body["name"].as_str().is_none_or(|name| name.trim().is_empty()) {
        return Some("Schedule name is required".to_owned());
    }
    if body["startWorkflowRequest"].is_null() {
        return Some("startWorkflowRequest is required".to_owned());
    }
    match serde_json::from_value::<StartRequest>(body["startWorkflowRequest"].clone()) {
        Err(error) => Some(format!("startWorkflowRequest: {error}")),
        Ok(request) => request.into_workflow().err().map(|error| format!("startWorkflowRequest.{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_all_but_what_a_server_says_of_itself() {
        let theirs = json!({"name": "a", "createTime": 1, "updatedTime": 2, "nextRunTime": 3, "createdBy": "ada",
            "paused": true, "pausedReason": "a rest", "somethingNew": 7});
        let expected =
            json!({"name": "a", "createdBy": "ada", "paused": true, "pausedReason": "a rest", "somethingNew": 7});
        let known = json!({"paused": false});
        assert_eq!(body(&theirs, None), expected);
        assert_eq!(body(&theirs, Some(&known)), expected, "somebody has paused it there");
    }

    #[test]
    fn what_was_paused_there_because_it_is_here_stays_as_it_is_here() {
        let theirs = json!({"name": "a", "paused": true, "pausedReason": MOVED});
        assert_eq!(body(&theirs, None)["paused"], true);
        assert_eq!(body(&theirs, Some(&json!({"paused": false})))["paused"], false);
        let paused = body(&theirs, Some(&json!({"paused": true, "pausedReason": "a rest"})));
        assert_eq!((&paused["paused"], &paused["pausedReason"]), (&json!(true), &json!("a rest")));
    }

    #[test]
    fn what_would_be_refused_is_known_before() {
        let wanted = |request: Value| problem(&json!({"name": "a", "startWorkflowRequest": request}));
        assert_eq!(wanted(json!({"name": "report"})), None);
        for (request, said) in [
            (json!(null), "startWorkflowRequest is required"),
            (json!({"version": 1}), "startWorkflowRequest.name"),
            (json!({"name": "x", "priority": 100}), "startWorkflowRequest.priority"),
            (json!({"name": "x", "version": "one"}), "startWorkflowRequest: invalid type"),
        ] {
            assert!(wanted(request).unwrap().contains(said), "{said}");
        }
        assert!(problem(&json!({"startWorkflowRequest": {"name": "x"}})).unwrap().contains("name is required"));
    }
}
