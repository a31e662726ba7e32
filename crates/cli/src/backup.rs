//! `punctual backup` and `punctual restore`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use punctual_engine::clock::now;
use punctual_store::sqlite::{self, Restore};
use serde_json::json;

use crate::client::{Failure, Kind};
use crate::confirm::Irreversible;
use crate::database::{Database, DatabaseArgs};
use crate::output::print;
use crate::progress::Progress;
use crate::transfer::{ImportArgs, export_to, import};

/// Copy the database to a file, while a server uses it or not.
///
/// The copy is one moment of the database, is checked when it is done, and appears under its name only when it is complete. Of a
/// PostgreSQL database it is an export.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Where to; the file must not exist
    #[arg(value_name = "FILE")]
    to: PathBuf,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make the database from a backup. No server may be using it.
///
/// A database that is there is replaced only after a yes, on a terminal, or with --yes. Whoever held a run before the backup was made holds it no more, and slots since then are decided by the schedules' catch-up.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    from: PathBuf,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Replace the database if there is one, and do not ask
    #[arg(long, short, visible_alias = "force")]
    yes: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn backup(args: &BackupArgs) -> anyhow::Result<()> {
    if args.to.exists() {
        let text = format!("{} is there already, and a backup replaces nothing: name another file", args.to.display());
        return Err(Failure::new(Kind::Conflict, text).into());
    }
    match &args.database.database {
        Database::Sqlite(_) => copy_file(args)?,
        Database::Postgres(_) => drop(export_to(&args.database, &args.to)?),
    }
    if args.json {
        return print(&format!("{:#}\n", json!({ "backup": args.to, "bytes": size(&args.to) })));
    }
    print(&format!("{}: a backup of {}, checked\n", args.to.display(), args.database.database))
}

fn copy_file(args: &BackupArgs) -> anyhow::Result<()> {
    let progress = Progress::bar("copying");
    args.database
        .read_file()?
        .backup(&args.to, |done, total| progress.show(done, total))
        .with_context(|| format!("copying {} to {}", args.database.database, args.to.display()))?;
    Ok(())
}

pub(crate) fn restore(args: &RestoreArgs) -> anyhow::Result<()> {
    let to = match &args.database.database {
        Database::Sqlite(path) => path,
        Database::Postgres(_) => {
            anyhow::ensure!(
                !args.yes,
                "--yes is for files: empty the PostgreSQL database yourself, as with dropdb and createdb"
            );
            return import(&ImportArgs { from: args.from.clone(), database: args.database.clone(), json: args.json });
        }
    };
    let overwrites = to.exists();
    if overwrites {
        let question = format!("Replace {}, with all that is in it?", to.display());
        Irreversible { shown: "", question: &question, declined: "Nothing was replaced." }.confirm(args.yes)?;
    }
    let restore = Restore { from: args.from.clone(), to: to.clone(), now: now(), overwrites };
    let progress = Progress::bar("restoring");
    sqlite::restore(&restore, |done, total| progress.show(done, total))
        .with_context(|| format!("restoring {} to {}", args.from.display(), to.display()))?;
    if args.json {
        return print(&format!("{:#}\n", json!({ "database": to, "bytes": size(to) })));
    }
    print(&format!("{}: restored from {}, checked\n", to.display(), args.from.display()))
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
