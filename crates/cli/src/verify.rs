//! `punctual verify`: does the journal add up to what the database says?

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::database::{DatabaseArgs, wait};
use crate::output::print;
use crate::progress::Progress;

/// Check the database: rebuild everything from the journal and compare.
///
/// Reads every entry, checks its checksum, folds the journal and compares it with what the database says. Exits with 1 and a
/// list when anything differs. Works beside a running server.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: VerifyArgs) -> anyhow::Result<ExitCode> {
    let store = args.database.read()?;
    let progress = Progress::spinner("rebuilding everything from the journal");
    let (head, differences) = wait(async {
        let differences = store.verify().await.context("reading the journal")?;
        anyhow::Ok((store.head().await?, differences))
    })??;
    drop(progress);
    if args.json {
        print(&format!("{:#}\n", json!({ "entries": head.seq, "differences": differences })))?;
    } else if differences.is_empty() {
        print(&format!("{}: the journal adds up, {} entries\n", args.database.database, head.seq))?;
    } else {
        let list: String = differences.iter().map(|difference| format!("  {difference}\n")).collect();
        print(&format!("{}: {} differences\n{list}", args.database.database, differences.len()))?;
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
