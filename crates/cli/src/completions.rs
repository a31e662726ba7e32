//! `punctual completions`: what a shell needs to complete commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::output::print;

/// Print a script that lets a shell complete commands and flags.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual completions bash > ~/.local/share/bash-completion/completions/punctual
  punctual completions zsh  > ~/.zfunc/_punctual
  punctual completions fish > ~/.config/fish/completions/punctual.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: CompletionsArgs) -> anyhow::Result<()> {
    let mut script = vec![];
    generate(args.shell, &mut crate::Cli::command(), "punctual", &mut script);
    print(&String::from_utf8_lossy(&script))
}
