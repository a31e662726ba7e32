//! `punctual schedule edit`.

use clap::Args;
use serde_json::{Map, Value};

use super::fields::{FieldArgs, OPTIONS};
use super::{difference, path, shown, warnings};
use crate::client::{self, ClientArgs, Failure, Query, read};
use crate::output::{clean, print, print_json};
use crate::times::ZoneArgs;
use crate::views::Schedule;

/// Change a schedule: what is not named stays as it is.
///
/// The plan follows in the same moment. If somebody else changes it meanwhile, nothing is done, and the exit code is 6.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual schedule edit morning-report --cron \"0 8 * * MON-FRI\" --dry-run
  punctual schedule edit morning-report --prompt \"What changed, and what is next?\"")]
pub(super) struct EditArgs {
    /// The schedule, by name, id or either end of its id
    #[arg(value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: String,

    /// Another agent
    #[arg(long, value_name = "AGENT", add = crate::completions::agents())]
    agent: Option<String>,

    #[command(flatten)]
    fields: FieldArgs,

    /// Only show what would change
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: EditArgs) -> anyhow::Result<()> {
    let change = args.fields.body(args.agent.as_deref())?;
    if change.is_empty() {
        return Err(Failure::input("what is to change? name at least one field, like --prompt TEXT").into());
    }
    let client = args.client.server().await?;
    let before = client::schedule(&client, &args.schedule).await?;
    let schedule: Schedule = read(&before)?;
    let wall = ZoneArgs::default_wall()?;
    let query = Query::default().with("dryRun", args.dry_run.then_some(true));
    let answer = client.put(&path(&schedule), &query, schedule.version, &Value::from(change.clone())).await;
    let answer = answer.map_err(|failure| failure.naming(&OPTIONS))?;
    if args.client.json {
        return print_json(&answer);
    }
    if args.dry_run {
        return print(&(changes(&before, &change, "") + &difference(&read(&answer)?, &wall)));
    }
    let after: Schedule = read(&answer)?;
    print(&(shown(&answer, &after, &wall) + &warnings(&after.warnings)))
}

/// The fields that change, as they are and as they would be.
fn changes(before: &Value, change: &Map<String, Value>, under: &str) -> String {
    let mut text = String::new();
    for (name, wanted) in change {
        let (name_whole, is) = (format!("{under}{name}"), &before[name]);
        match wanted {
            Value::Object(inner) if is.is_object() && name != "inputs" => {
                text += &changes(is, inner, &format!("{name_whole}."));
            }
            _ if is == wanted => {}
            _ => {
                if !is.is_null() {
                    text += &clean(&format!("- {name_whole}: {is}"));
                    text.push('\n');
                }
                text += &clean(&format!("+ {name_whole}: {wanted}"));
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_names_what_changes_and_nothing_else() {
        let before =
            json!({"prompt": "old", "cronExpr": "0 9 * * *", "executorPolicy": {"priority": 5, "maxAttempts": 3}});
        let change =
            json!({"prompt": "new", "cronExpr": "0 9 * * *", "jitter": "5m", "executorPolicy": {"priority": 7}});
        let text = changes(&before, change.as_object().unwrap(), "");
        assert_eq!(
            text,
            "- executorPolicy.priority: 5\n+ executorPolicy.priority: 7\n+ jitter: \"5m\"\n- prompt: \"old\"\n+ prompt: \"new\"\n"
        );
    }
}
