//! The `punctual` binary: one file or folder per subcommand.

mod agents;
mod approvals;
mod backup;
mod cancel;
mod client;
mod completions;
mod conductor;
mod config;
mod confirm;
mod crontab;
mod database;
mod doctor;
mod history;
mod ids;
mod import;
mod local_zone;
mod logs;
mod machine;
mod moment;
mod nodes;
mod output;
mod part_file;
mod plan;
mod preview;
mod progress;
mod schedule;
mod screen;
mod show;
mod suggest;
mod table;
mod timers;
mod times;
mod token;
mod transfer;
mod trigger;
mod up;
mod verify;
mod views;
mod why;
mod zoned_cron;
mod zones;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use database::wait;
use punctual_core::time::zone::bundled_version;

/// One durable scheduler for AI agents, workflows and commands.
#[derive(Debug, Parser)]
#[command(
    name = "punctual",
    version,
    long_version = long_version(),
    max_term_width = 110,
    after_help = client::EXIT_CODES,
)]
struct Cli {
    #[command(flatten)]
    screen: screen::ScreenArgs,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(Box<up::UpArgs>),
    Schedule(schedule::ScheduleArgs),
    Pause(schedule::PauseArgs),
    Resume(schedule::ResumeArgs),
    Trigger(trigger::TriggerArgs),
    Cancel(cancel::CancelArgs),
    Plan(plan::PlanArgs),
    Timers(timers::TimersArgs),
    History(history::HistoryArgs),
    Show(show::ShowArgs),
    Why(why::WhyArgs),
    Logs(logs::LogsArgs),
    Approvals(approvals::ApprovalsArgs),
    Approve(approvals::ApproveArgs),
    Deny(approvals::DenyArgs),
    Agents(agents::AgentsArgs),
    Nodes(nodes::NodesArgs),
    Token(token::TokenArgs),
    Preview(Box<preview::PreviewArgs>),
    Verify(verify::VerifyArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Export(transfer::ExportArgs),
    Import(import::SourceArgs),
    Conductor(conductor::ConductorArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
}

/// `--version` also names the zone data that this binary carries.
fn long_version() -> String {
    format!("{}\nzone data: tzdata {} (bundled)", env!("CARGO_PKG_VERSION"), bundled_version())
}

/// Runs are made on one thread and let go on another, thousands a second: this one takes a sixth less time for it than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A server starts this program once more for each run of a process agent.
    if let Some(code) = punctual_agents::process::supervise_if_asked() {
        return code;
    }
    completions::answer_if_asked();
    let cli = Cli::parse();
    cli.screen.apply();
    carry_out(cli.command).unwrap_or_else(|error| {
        if let Some(declined) = error.downcast_ref::<confirm::Declined>() {
            eprintln!("{declined}");
            return ExitCode::FAILURE;
        }
        eprintln!("error: {error:#}");
        client::exit_code(&error)
    })
}

fn carry_out(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => up::run(*args)?,
        Command::Schedule(args) => wait(schedule::run(args))??,
        Command::Pause(args) => wait(schedule::pause(args))??,
        Command::Resume(args) => wait(schedule::resume(args))??,
        Command::Trigger(args) => return wait(trigger::run(args))?,
        Command::Cancel(args) => wait(cancel::run(args))??,
        Command::Plan(args) => wait(plan::run(args))??,
        Command::Timers(args) => wait(timers::run(args))??,
        Command::History(args) => wait(history::run(args))??,
        Command::Show(args) => wait(show::run(args))??,
        Command::Why(args) => return wait(why::run(args))?,
        Command::Logs(args) => wait(logs::run(args))??,
        Command::Approvals(args) => wait(approvals::list(args))??,
        Command::Approve(args) => wait(approvals::approve(args))??,
        Command::Deny(args) => wait(approvals::deny(args))??,
        Command::Agents(args) => wait(agents::run(args))??,
        Command::Nodes(args) => wait(nodes::run(args))??,
        Command::Token(args) => wait(token::run(args))??,
        Command::Preview(args) => preview::run(*args)?,
        Command::Verify(args) => return verify::run(args),
        Command::Backup(args) => backup::backup(&args)?,
        Command::Restore(args) => backup::restore(&args)?,
        Command::Export(args) => transfer::export(&args)?,
        Command::Import(args) => return import::run(args),
        Command::Conductor(args) => return wait(conductor::run(args))?,
        Command::Config(args) => return config::run(args),
        Command::Doctor(args) => return wait(doctor::run(args))?,
        Command::Completions(args) => completions::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    /// Every command below one, with what is typed for it.
    fn walk(command: &mut Command, path: &str, visit: &mut impl FnMut(&str, &mut Command)) {
        let path = format!("{path} {}", command.get_name());
        visit(path.trim(), command);
        for inner in command.get_subcommands_mut() {
            walk(inner, &path, visit);
        }
    }

    #[test]
    fn every_help_page_is_whole() {
        let mut root = super::Cli::command();
        root.build();
        walk(&mut root, "", &mut |path, command| {
            if path.ends_with(" help") || path.contains(" help ") {
                return;
            }
            assert!(
                command.get_about().is_some_and(|about| !about.to_string().trim().is_empty()),
                "{path}: says nothing"
            );
            let pages = [command.render_help().to_string(), command.render_long_help().to_string()];
            for page in pages {
                assert!(!page.contains("///"), "{path}: a comment in the help:\n{page}");
                assert_eq!(page.matches('`').count() % 2, 0, "{path}: a backtick without its other half:\n{page}");
                assert!(!page.contains("``"), "{path}: {page}");
            }
            for option in command.get_arguments().filter(|it| !it.is_hide_set()) {
                let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.trim().is_empty(), "{path}: {} says nothing", option.get_id());
                assert!(!help.ends_with('.'), "{path}: {}: {help}", option.get_id());
            }
        });
    }

    #[test]
    fn every_command_that_answers_has_json() {
        // A server, what draws a shell's script, and those that only group others.
        const OTHERS: [&str; 2] = ["punctual up", "punctual completions"];
        let mut root = super::Cli::command();
        root.build();
        walk(&mut root, "", &mut |path, command| {
            let is_group = command.has_subcommands();
            if is_group || path.contains(" help") || OTHERS.contains(&path) {
                return;
            }
            assert!(command.get_arguments().any(|it| it.get_id() == "json"), "{path} has no --json");
        });
    }

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
