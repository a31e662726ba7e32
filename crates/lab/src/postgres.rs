//! A real PostgreSQL server that lives as long as its owner: its own folder, its own port, nothing left behind.
//!
//! Not here: where the programs come from (`programs`, `install`), and who makes sure of the end (`keeper`).

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, bail};

use crate::shell::answers;
use account::Account;
use keeper::Keeper;
use launch::{Process, end_of, launch};
use programs::Programs;

mod account;
mod install;
mod keeper;
mod launch;
mod programs;

/// Tests find the address of a server that they share here.
pub const ADDRESS: &str = "PUNCTUAL_TEST_POSTGRES";

/// Between choosing a free port and listening on it, another program may take it.
const PORTS_MAX: usize = 5;

/// What a commit is worth.
#[derive(Debug, Clone, Copy)]
pub enum Durability {
    /// Nothing waits for the disk: fast, and worth nothing after a crash.
    Off,
    /// As in production.
    On,
}

/// A running server. Dropping it stops it and removes its folder; so does the end of this process, however it comes.
pub struct Server {
    programs: Programs,
    account: Option<Account>,
    durability: Durability,
    process: Option<Process>,
    port: u16,
    /// Its end is the server's.
    keeper: Keeper,
}

impl Server {
    /// Starts an empty server on a free port, and waits until it accepts connections.
    ///
    /// Belongs on the main thread: where the server is told that its parent has died, it is the thread that counts.
    pub fn start(durability: Durability) -> anyhow::Result<Server> {
        let programs = Programs::find_or_install()?;
        let account = Account::for_programs()?;
        let keeper = Keeper::make_folder(&programs, account)?;
        let mut initdb = program(&programs, account, &keeper, "initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        let made = initdb.arg("--pgdata").arg(keeper.data()).output().context("starting initdb")?;
        if !made.status.success() {
            bail!("initdb ended with {}:\n{}", made.status, String::from_utf8_lossy(&made.stderr));
        }
        let mut server = Server { programs, account, durability, process: None, port: 0, keeper };
        for _ in 0..PORTS_MAX {
            server.port = free_port()?;
            if server.launch()? {
                return Ok(server);
            }
        }
        bail!("{PORTS_MAX} ports were free and then taken before PostgreSQL could listen on them")
    }

    /// Starts the process. Whether its port was still free.
    fn launch(&mut self) -> anyhow::Result<bool> {
        let mut postgres = program(&self.programs, self.account, &self.keeper, "postgres");
        postgres.args(settings(self.port, self.durability)).arg("-D").arg(self.keeper.data());
        postgres.arg("-c").arg(format!("unix_socket_directories={}", self.keeper.folder().display()));
        self.process = launch(&mut postgres, &self.keeper.log())?;
        Ok(self.process.is_some())
    }

    /// Stops it as a crash would: `immediate` ends everything in the middle, and the next start recovers from the log.
    pub fn crash(&mut self) -> anyhow::Result<()> {
        self.stop("immediate")
    }

    /// Stops it in one of the modes of `pg_ctl`.
    pub fn stop(&mut self, mode: &str) -> anyhow::Result<()> {
        let mut pg_ctl = program(&self.programs, self.account, &self.keeper, "pg_ctl");
        pg_ctl.args(["stop", "--mode", mode, "--pgdata"]).arg(self.keeper.data());
        let stopped = pg_ctl.output().context("starting pg_ctl")?;
        if !stopped.status.success() {
            bail!("pg_ctl ended with {}:\n{}", stopped.status, String::from_utf8_lossy(&stopped.stderr));
        }
        if let Some(process) = self.process.take() {
            process.join().expect("following a server does not panic")?;
        }
        Ok(())
    }

    /// Starts it again, on the same port.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        if self.launch()? {
            return Ok(());
        }
        bail!("port {} was taken while PostgreSQL was down", self.port)
    }

    /// Where it keeps its data.
    pub fn data(&self) -> std::path::PathBuf {
        self.keeper.data()
    }

    /// Where its log is.
    pub fn log(&self) -> std::path::PathBuf {
        self.keeper.log()
    }

    /// The release of its programs.
    pub fn version(&self) -> u32 {
        self.programs.version
    }

    /// Waits for an end that nobody asked for, and says what it was.
    pub fn wait(mut self) -> anyhow::Result<(ExitStatus, String)> {
        let process = self.process.take().context("it is not running")?;
        let status = process.join().expect("following a server does not panic")?;
        Ok((status, end_of(&self.keeper.log())))
    }

    /// Where it listens. Every connection from this machine is trusted.
    pub fn address(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets a command know about the server.
    pub fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(ADDRESS, self.address())
    }
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
