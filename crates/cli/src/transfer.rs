//! `punctual export` and `punctual import`: moving house.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use punctual_engine::clock::now;
use punctual_store::{postgres, sqlite, transfer};
use serde_json::json;

use crate::database::{Database, DatabaseArgs, wait};
use crate::output::print;
use crate::part_file::PartFile;
use crate::progress::Progress;

/// Write everything that the database has to a file that any other database can take in.
///
/// The file has one JSON object a line: the journal, from which everything else follows. Works beside running servers, and
/// gives one moment of the database; stop them first if nothing more is to happen here.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Where to; the file must not exist
    #[arg(value_name = "FILE")]
    to: PathBuf,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make a database from an export: SQLite from PostgreSQL, PostgreSQL from SQLite, or a copy.
///
/// The database must be empty, or not exist. Whoever held a run before holds it no more, and slots since the export are decided
/// by the schedules' catch-up. The result is verified before it counts.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The export
    #[arg(value_name = "FILE")]
    pub(crate) from: PathBuf,

    #[command(flatten)]
    pub(crate) database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let entries = export_to(&args.database, &args.to)?;
    if args.json {
        return print(&format!("{:#}\n", json!({ "export": args.to, "entries": entries })));
    }
    print(&format!("{}: {entries} entries of {}\n", args.to.display(), args.database.database))
}

/// Writes an export. It has its name only when it is whole and on the disk.
pub(crate) fn export_to(database: &DatabaseArgs, to: &Path) -> anyhow::Result<u64> {
    anyhow::ensure!(!to.exists(), "{} exists already", to.display());
    let store = database.read()?;
    // What agents were told and what they said is nobody else's to read.
    let mut part = PartFile::create(to).with_context(|| format!("creating {}", to.display()))?;
    let mut file = BufWriter::new(&mut part.file);
    let progress = Progress::bar("exporting");
    let exported = wait(transfer::export(&*store, &mut file, |done, total| progress.show(done, total)))?;
    let entries = exported.with_context(|| format!("exporting {}", database.database))?;
    file.flush().with_context(|| format!("writing {}", to.display()))?;
    drop(file);
    let is_new = part.put_new().with_context(|| format!("writing {}", to.display()))?;
    anyhow::ensure!(is_new, "{} exists already", to.display());
    Ok(entries)
}

pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let entries = import_from(&args.database, &args.from)?;
    if args.json {
        return print(&format!(
            "{:#}\n",
            json!({ "database": args.database.database.to_string(), "entries": entries })
        ));
    }
    print(&format!("{}: {entries} entries from {}, checked\n", args.database.database, args.from.display()))
}

/// Takes an export in.
pub(crate) fn import_from(database: &DatabaseArgs, from: &Path) -> anyhow::Result<u64> {
    let file = File::open(from).with_context(|| format!("opening {}", from.display()))?;
    let mut file = BufReader::new(file);
    let progress = Progress::bar("importing");
    let shown = |done, total| progress.show(done, total);
    let imported = match &database.database {
        Database::Sqlite(path) => sqlite::import(&mut file, path, now(), shown),
        Database::Postgres(address) => postgres::import(&mut file, address, now(), shown),
    };
    let entries = imported.with_context(|| format!("importing {} to {}", from.display(), database.database))?;
    Ok(entries)
}
