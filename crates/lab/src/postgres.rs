//! A real PostgreSQL server that lives as long as its owner: its own folder, its own port, nothing left behind.
//!
//! Not here: where the programs come from (`programs`, `install`), and who makes sure of the end (`keeper`).

use std::ffi::OsStr;
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
    /// What differs from what initdb wrote down.
    settings: Vec<String>,
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
        Server::start_with(durability, &[])
    }

    /// The same, with settings like `max_connections=20`.
    pub fn start_with(durability: Durability, settings: &[&str]) -> anyhow::Result<Server> {
        let programs = Programs::find_or_install()?;
        let account = Account::for_programs()?;
        let keeper = Keeper::make_folder(&programs, account)?;
        let mut initdb = program(&programs, account, &keeper, "initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        let made = initdb.arg("--pgdata").arg(keeper.data()).output().context("starting initdb")?;
        if !made.status.success() {
            bail!("initdb ended with {}:\n{}", made.status, String::from_utf8_lossy(&made.stderr));
        }
        let settings = all_settings(durability, settings);
        let mut server = Server { programs, account, settings, process: None, port: 0, keeper };
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
        let own =
            [format!("port={}", self.port), format!("unix_socket_directories={}", self.keeper.folder().display())];
        postgres.args(own.iter().chain(&self.settings).flat_map(|setting| ["-c", setting]));
        postgres.arg("-D").arg(self.keeper.data());
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

    /// Keeps a copy of its data, while it is stopped.
    pub fn keep_copy(&self) -> anyhow::Result<()> {
        self.run("cp", &["-a".as_ref(), self.data().as_ref(), self.keeper.copy().as_ref()])
    }

    /// Puts the copy in the place of its data, while it is stopped: what was written since is lost.
    pub fn put_copy_back(&self) -> anyhow::Result<()> {
        self.run("rm", &["-r".as_ref(), self.data().as_ref()])?;
        self.run("mv", &[self.keeper.copy().as_ref(), self.data().as_ref()])
    }

    fn run(&self, name: &str, args: &[&OsStr]) -> anyhow::Result<()> {
        let mut command = Command::new(name);
        command.args(args).current_dir(self.keeper.folder());
        account::run_as(&mut command, self.account);
        let done = command.output().with_context(|| format!("starting {name}"))?;
        if !done.status.success() {
            bail!("{name} ended with {}:\n{}", done.status, String::from_utf8_lossy(&done.stderr));
        }
        Ok(())
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

/// What differs from what initdb wrote down, for any server; of two for one thing, the later counts.
fn all_settings(durability: Durability, wanted: &[&str]) -> Vec<String> {
    let mut settings = vec!["listen_addresses=127.0.0.1", "max_connections=200"];
    match durability {
        Durability::Off => settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"]),
        Durability::On => {}
    }
    settings.extend(wanted);
    settings.into_iter().map(str::to_owned).collect()
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
        let has = |durability, setting: &str| all_settings(durability, &[]).iter().any(|given| given == setting);
        for setting in ["fsync=off", "synchronous_commit=off", "full_page_writes=off"] {
            assert!(has(Durability::Off, setting) && !has(Durability::On, setting), "{setting}");
        }
    }
}
