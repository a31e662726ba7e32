//! `cargo xtask postgres`: a throwaway server around a command.

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use punctual_lab::postgres::{ADDRESS, Durability, Server};

use crate::shell::exit_code;

/// `cargo xtask postgres [--durable] [-- COMMAND ARGS]`: a server around a command, or until Ctrl-C.
pub(crate) fn postgres(args: &[&str]) -> anyhow::Result<ExitCode> {
    let (durability, rest) = match args {
        ["--durable", rest @ ..] => (Durability::On, rest),
        rest => (Durability::Off, rest),
    };
    let command = match rest {
        [] => None,
        ["--", name, args @ ..] => Some((name, args)),
        _ => bail!("use cargo xtask postgres [--durable] [-- COMMAND ARGS]"),
    };
    let server = Server::start(durability)?;
    let Some((name, args)) = command else {
        println!("PostgreSQL {} listens. To connect, and to test against it:\n", server.version());
        println!("  psql {}", server.address());
        println!("  {ADDRESS}={} cargo test", server.address());
        println!("\nIts log is {}. Ctrl-C stops it and removes everything.", server.log().display());
        let (status, said) = server.wait()?;
        bail!("PostgreSQL ended with {status}:\n{said}");
    };
    let status = server.tell(Command::new(name).args(args)).status();
    Ok(exit_code(status.with_context(|| format!("starting {name}"))?))
}
