//! `punctual doctor`: what protects runs, and what is missing.

use clap::Args;
use punctual_agents::process::{Strength, protections};
use serde_json::{Value, json};

use crate::output::{print, table};

/// Show which protections this machine and this user give to the runs of process agents, and which are missing.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let all = protections();
    if args.json {
        let view = |it: &punctual_agents::process::Protection| json!({ "name": it.name, "strength": word(it.strength), "meaning": it.meaning });
        return print(&format!("{:#}\n", Value::from(all.iter().map(view).collect::<Vec<_>>())));
    }
    let rows = all.iter().map(|it| vec![it.name.to_owned(), word(it.strength).to_owned(), it.meaning.to_owned()]);
    print(&table(&["PROTECTION", "HERE", "MEANING"], rows))
}

fn word(strength: Strength) -> &'static str {
    match strength {
        Strength::Full => "yes",
        Strength::Partial => "partly",
        Strength::Missing => "missing",
        Strength::Unused => "not used",
    }
}
