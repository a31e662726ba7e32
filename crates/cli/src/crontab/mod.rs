//! `punctual import crontab`: agents and schedules from a crontab.

mod fragment;
mod parse;
mod source;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use punctual_core::time::Zones;
use serde_json::{Value, json};

use crate::client::Failure;
use crate::confirm::ask;
use crate::output::{clean, plural, print, print_json};
use fragment::{Around, Made, Names, fragment};
use parse::Remark;
use source::Source;
use target::Target;

/// The zone where nobody says which.
const UTC: &str = "UTC";

/// What stands above everything.
const HEADER: &str = "\
# Made by `punctual import crontab`. It does as cron did: no retries, no catch-up, a run beside one that still runs, cron's own PATH,
# the home folder. Take out what you do not want to keep so: docs/configuration.md has the defaults. Cron goes on, too, until you
# take the entries out there.
";

/// Make agents and schedules from a crontab.
///
/// Shows what it would make, and what cannot be carried over. With --output it is added to a configuration after a yes, or with
/// --yes; nothing that is there is changed. Cron itself is not touched.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual import crontab                               # what would become of your crontab
  punctual import crontab --output punctual.toml        # add it there, after a yes
  punctual import crontab -u www-data
  punctual import crontab /etc/cron.d --output system.toml --yes")]
pub(crate) struct CrontabArgs {
    /// The crontab, a folder of them, or - for standard input [default: what `crontab -l` prints]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The user whose crontab it is [default: you]
    #[arg(long, short, value_name = "USER")]
    user: Option<String>,

    /// Entries name a user before the command [default: so in /etc/crontab and /etc/cron.d]
    #[arg(long)]
    user_column: bool,

    /// The zone of entries without CRON_TZ [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// Add it to this configuration, which is made if it is not there
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What all crontabs together became.
#[derive(Default)]
struct Import {
    text: String,
    made: Vec<Made>,
    /// Each with the crontab that it is about.
    remarks: Vec<(String, Remark)>,
}

pub(crate) fn run(args: &CrontabArgs) -> anyhow::Result<ExitCode> {
    let target = args.output.as_deref().map(Target::read).transpose()?;
    let names = target.as_ref().map(Target::names).unwrap_or_default();
    let import = import(args, names)?;
    show(args, &import)?;
    let count = plural(import.made.len(), "schedule");
    let Some(target) = target else {
        eprintln!("Nothing was written: --output FILE adds {count} to a configuration.");
        return Ok(ExitCode::SUCCESS);
    };
    let file = target.path.display();
    if import.made.is_empty() {
        eprintln!("There is nothing to add to {file}.");
        return Ok(ExitCode::SUCCESS);
    }
    target.check(&import.text)?;
    let is_wanted = args.yes || ask(&format!("Add {count} to {file}?"))?.unwrap_or(false);
    if !is_wanted {
        eprintln!("Nothing was written to {file}; --yes adds {count}.");
        return Ok(ExitCode::FAILURE);
    }
    target.append(&import.text)?;
    eprintln!(
        "{file} has {count} more; a server that reads it takes them up by itself. Take them out of cron, or they run twice."
    );
    Ok(ExitCode::SUCCESS)
}

fn import(args: &CrontabArgs, mut names: Names) -> anyhow::Result<Import> {
    let zones = Zones::bundled();
    let user = source::this_user();
    let owner = args.user.as_deref().unwrap_or(&user);
    let zone = zone(args, &zones)?;
    let mut import = Import { text: HEADER.to_owned(), ..Import::default() };
    for Source { name, text, has_user } in source::read(args.file.as_deref(), args.user.as_deref(), args.user_column)? {
        let around = Around { source: &name, zone: &zone, zones: &zones, user: &user, owner, home: &source::home };
        let part = fragment(parse::parse(&text, has_user), &around, &mut names);
        import.text += "\n";
        import.text += &part.text;
        import.made.extend(part.made);
        import.remarks.extend(part.remarks.into_iter().map(|remark| (name.clone(), remark)));
    }
    Ok(import)
}

/// The zone that cron goes by: the one that was named, else that of this machine.
fn zone(args: &CrontabArgs, zones: &Zones) -> anyhow::Result<String> {
    let known = |name: &str| zones.get(name).map(|zone| zone.name().to_owned());
    if let Some(name) = &args.zone {
        return known(name).map_err(|error| Failure::input(format!("--zone: {error}")).into());
    }
    match source::system_zone().map(|name| known(&name)) {
        Some(Ok(name)) => Ok(name),
        _ => {
            eprintln!(
                "note: this machine does not say which zone it is in: entries are taken for {UTC}; --zone names another"
            );
            Ok(UTC.to_owned())
        }
    }
}

fn show(args: &CrontabArgs, import: &Import) -> anyhow::Result<()> {
    if args.json {
        let made = import.made.iter().map(|it| {
            json!({
                "source": it.source, "line": it.line, "name": it.name, "cron": it.cron, "zone": it.zone, "command": it.command,
                "enabled": it.is_enabled,
            })
        });
        let remarks = import.remarks.iter().map(
            |(source, it)| json!({ "source": source, "line": it.line, "text": it.text, "leftOut": it.is_left_out }),
        );
        let (made, remarks): (Vec<Value>, Vec<Value>) = (made.collect(), remarks.collect());
        return print_json(&json!({ "made": made, "remarks": remarks, "toml": import.text }));
    }
    print(&import.text)?;
    for (source, remark) in &import.remarks {
        let word = if remark.is_left_out { "left out" } else { "note" };
        eprintln!("{word}: {}:{}: {}", clean(source), remark.line, clean(&remark.text));
    }
    Ok(())
}
