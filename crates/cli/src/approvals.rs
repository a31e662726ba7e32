//! `punctual approvals`, `punctual approve` and `punctual deny`: runs that wait for a person's word.

use clap::Args;
use serde_json::{Value, json};

use crate::client::{Client, ClientArgs, Failure, Query, read};
use crate::confirm::Irreversible;
use crate::ids;
use crate::output::{clean, facts, print, print_json};
use crate::table::{Column, table};
use crate::times::{Wall, ZoneArgs};
use crate::views::Approval;

/// The columns of the list, with their turn to give way.
const COLUMNS: [Column; 7] = [
    Column::whole("SCHEDULED", 0),
    Column::whole("LEFT", 3),
    Column::text("SCHEDULE", 0, 12),
    Column::text("AGENT", 2, 8),
    Column::whole("RISK", 1),
    Column::text("PROMPT", 4, 16),
    Column::whole("RUN", 0),
];

/// Show the runs that wait for approval.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual approvals")]
pub(crate) struct ApprovalsArgs {
    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// Let a run begin that waits for approval.
///
/// On a terminal, prompt and inputs are shown first, and a yes is asked for; without a terminal it needs --yes. What is approved is
/// exactly that: if it changes meanwhile, the approval does not count.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  punctual approve morning-report --reason \"looked at it\"\n  punctual approve 0198c5d2 --yes            # in a script"
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    decision: DecisionArgs,
}

/// End a run that waits for approval without a try.
///
/// On a terminal, prompt and inputs are shown first, and a yes is asked for; without a terminal it needs --yes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual deny morning-report --reason \"not before the release\"")]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    decision: DecisionArgs,
}

#[derive(Debug, Args)]
struct DecisionArgs {
    /// The run, by id, either end of its id, or the name of its schedule or agent
    #[arg(value_name = "RUN", add = crate::completions::runs())]
    run: String,

    /// Why, for whoever reads it later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn list(args: ApprovalsArgs) -> anyhow::Result<()> {
    let body = args.client.look().await?.get("/api/approvals", &Query::default()).await?;
    if args.client.json {
        return print_json(&body);
    }
    let waiting: Vec<Approval> = read(&body["items"])?;
    if waiting.is_empty() {
        return print("Nothing waits for approval.\n");
    }
    let wall = args.zone.wall()?;
    let rows = waiting.iter().map(|it| {
        vec![
            wall.date_time(it.scheduled_at).into(),
            it.expires_at.map_or_else(|| "-".to_owned(), |at| wall.left(at)).into(),
            it.schedule_name.clone().unwrap_or_else(|| "-".to_owned()).into(),
            it.agent_id.clone().into(),
            it.risk.clone().unwrap_or_default().into(),
            it.prompt.clone().into(),
            ids::shown(it.run_id).into(),
        ]
    });
    let text = table(&COLUMNS, rows);
    print(&format!("{text}\n{}", wall.named()))
}

pub(crate) async fn approve(args: ApproveArgs) -> anyhow::Result<()> {
    decide(args.decision, "approve", "Approve it?", "approved").await
}

pub(crate) async fn deny(args: DenyArgs) -> anyhow::Result<()> {
    decide(args.decision, "deny", "Deny it?", "denied").await
}

async fn decide(args: DecisionArgs, verb: &str, question: &str, done: &str) -> anyhow::Result<()> {
    let client = args.client.server().await?;
    let approval = find(&client, &args.run).await?;
    let shown = shown(&approval, &ZoneArgs::default_wall()?);
    Irreversible { shown: &shown, question, declined: "Nothing was decided." }.confirm(args.yes)?;
    let body = json!({ "digest": approval.digest, "reason": args.reason });
    let answer = client.post(&format!("/api/approvals/{}/{verb}", approval.run_id), &Query::default(), &body).await?;
    if args.client.json {
        return print_json(&answer);
    }
    print(&format!("Run {} is {done}.\n", approval.run_id))
}

/// The one that waits and is meant.
async fn find(client: &Client, text: &str) -> Result<Approval, Failure> {
    let body = client.get("/api/approvals", &Query::default()).await?;
    let waiting: Vec<Approval> = read(&body["items"])?;
    let is_meant = |it: &&Approval| {
        ids::has_piece(&it.run_id.to_string(), text) || it.schedule_name.as_deref() == Some(text) || it.agent_id == text
    };
    let meant: Vec<&Approval> = waiting.iter().filter(is_meant).collect();
    match meant[..] {
        [one] => Ok(one.clone()),
        [] => Err(Failure::not_found(format!(
            "no run {text:?} waits for approval; `punctual approvals` shows those that do"
        ))),
        _ => {
            let list: String = meant.iter().map(|it| format!("\n  {}", it.run_id)).collect();
            Err(Failure::input(format!("{text:?} may be any of {} runs; use the id of one:{list}", meant.len())))
        }
    }
}

/// All that an approval is about.
fn shown(approval: &Approval, wall: &Wall) -> String {
    let time = |at| format!("{} {}", wall.date_time(at), wall.zone.name());
    let mut text = facts(&[
        ("run", approval.run_id.to_string()),
        ("schedule", approval.schedule_name.clone().unwrap_or_default()),
        ("agent", approval.agent_id.clone()),
        ("project", approval.project_id.clone().unwrap_or_default()),
        ("risk", approval.risk.clone().unwrap_or_default()),
        ("scheduled", time(approval.scheduled_at)),
        ("expires", approval.expires_at.map(time).unwrap_or_default()),
    ]);
    text += "prompt\n";
    text += &approval.prompt.lines().map(|line| format!("  {}\n", clean(line))).collect::<String>();
    text += "inputs\n";
    let inputs = format!("{:#}", Value::from(approval.inputs.clone()));
    text + &inputs.lines().map(|line| format!("  {}\n", clean(line))).collect::<String>()
}
