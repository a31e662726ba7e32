//! A real PostgreSQL server that lives as long as a command: its own folder, its own port, nothing left behind.
//!
//! In: [`Server::start`], for commands that run tests. Out: two variables, by which tests find the server.
//! Not here: where the programs come from (`programs`, `install`), and who makes sure of the end (`keeper`).

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};

use crate::shell::{answers, exit_code, run};
use account::Account;
use keeper::Keeper;
use launch::{Process, end_of, launch};
use programs::Programs;

mod account;
mod install;
mod keeper;
mod launch;
mod programs;

/// Tests find the server's address here.
const ADDRESS: &str = "PUNCTUAL_TEST_POSTGRES";

/// Tests that need a server of their own find the programs' folder here.
const PROGRAMS: &str = "PUNCTUAL_TEST_POSTGRES_BIN";

/// Between choosing a free port and listening on it, another program may take it.
const PORTS_MAX: usize = 5;

/// What a commit is worth.
#[derive(Clone, Copy)]
pub(crate) enum Durability {
    /// Nothing waits for the disk: fast, and worth nothing after a crash.
    Off,
    /// As in production.
    On,
}

/// A running server. Dropping it stops it and removes its folder; so does the end of this process, however it comes.
pub(crate) struct Server {
    programs: Programs,
    process: Process,
    port: u16,
    /// Its end is the server's.
    keeper: Keeper,
}

impl Server {
    /// Starts an empty server on a free port, and waits until it accepts connections.
    ///
    /// Belongs on the main thread: where the server is told that its parent has died, it is the thread that counts.
    pub(crate) fn start(durability: Durability) -> anyhow::Result<Server> {
        let programs = Programs::find_or_install()?;
        let account = Account::for_programs()?;
        let keeper = Keeper::make_folder(&programs, account)?;
        let mut initdb = program(&programs, account, &keeper, "initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        let made = initdb.arg("--pgdata").arg(keeper.data()).output().context("starting initdb")?;
        if !made.status.success() {
            bail!("initdb ended with {}:\n{}", made.status, String::from_utf8_lossy(&made.stderr));
        }
        for _ in 0..PORTS_MAX {
            let port = free_port()?;
            let mut postgres = program(&programs, account, &keeper, "postgres");
            postgres.args(settings(port, durability)).arg("-D").arg(keeper.data());
            postgres.arg("-c").arg(format!("unix_socket_directories={}", keeper.folder().display()));
            if let Some(process) = launch(&mut postgres, &keeper.log())? {
                return Ok(Server { programs, process, port, keeper });
            }
        }
        bail!("{PORTS_MAX} ports were free and then taken before PostgreSQL could listen on them")
    }

    /// Where it listens. Every connection from this machine is trusted.
    pub(crate) fn address(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Lets a command know about the server.
    pub(crate) fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(ADDRESS, self.address()).env(PROGRAMS, &self.programs.folder)
    }

    /// Runs a command that knows about the server; see [`run`].
    pub(crate) fn run(&self, command: &mut Command) -> anyhow::Result<()> {
        run(self.tell(command))
    }
}

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
        println!("PostgreSQL {} listens. To connect, and to test against it:\n", server.programs.version);
        println!("  psql {}", server.address());
        println!("  {ADDRESS}={} {PROGRAMS}={} cargo test", server.address(), server.programs.folder.display());
        println!("\nIts log is {}. Ctrl-C stops it and removes everything.", server.keeper.log().display());
        let status = server.process.join().expect("following a server does not panic")?;
        bail!("PostgreSQL ended with {status}:\n{}", end_of(&server.keeper.log()));
    };
    let status = server.tell(Command::new(name).args(args)).status();
    Ok(exit_code(status.with_context(|| format!("starting {name}"))?))
}

/// One of PostgreSQL's programs, at home in the keeper's folder. Where that can be asked, it does not outlive this process.
fn program(programs: &Programs, account: Option<Account>, keeper: &Keeper, name: &str) -> Command {
    let path = programs.folder.join(name);
    // Only on Linux, and not on every one: it is the quickest end, not the only one, as there is the keeper. To each of
    // the programs, INT means to clean up and go.
    let tied = ["--pdeathsig", "INT"];
    let mut command = if answers("setpriv", &[&tied[..], &["true"]].concat()) {
        let mut command = Command::new("setpriv");
        command.args(tied).arg(path);
        command
    } else {
        Command::new(path)
    };
    account::run_as(&mut command, account);
    // The settings of whoever runs this are about other servers.
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("PG") {
            command.env_remove(variable);
        }
    }
    command.env("LC_ALL", "C").current_dir(keeper.folder()).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// What differs from what initdb wrote down.
fn settings(port: u16, durability: Durability) -> Vec<String> {
    let port = format!("port={port}");
    let mut settings = vec!["listen_addresses=127.0.0.1", &port, "max_connections=200"];
    match durability {
        Durability::Off => settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"]),
        Durability::On => {}
    }
    settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting.to_owned()]).collect()
}

/// A port on which nobody listens just now.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_without_durability_forgoes_the_disk() {
        let has = |durability, setting: &str| settings(5432, durability).iter().any(|given| given == setting);
        for setting in ["fsync=off", "synchronous_commit=off", "full_page_writes=off"] {
            assert!(has(Durability::Off, setting) && !has(Durability::On, setting), "{setting}");
        }
        assert!(has(Durability::On, "port=5432") && has(Durability::Off, "port=5432"));
    }
}
