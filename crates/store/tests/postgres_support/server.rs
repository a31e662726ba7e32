//! A server of a test's own: it can be killed, stopped, copied and reconfigured, and keeps what it has acknowledged.
//!
//! A small sister of `cargo xtask postgres`, which says where the programs are.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Between choosing a free port and listening on it, another program may take it.
const PORTS_MAX: usize = 5;

/// What a shell does that waits for the end of the test, however it comes: with the programs' folder and the server's.
const KEEPER: &str = r#"
cat
"$1/pg_ctl" stop --pgdata "$2/data" --mode immediate --timeout 30
for _ in 1 2 3 4 5; do rm -rf "$2" && exit 0; sleep 1; done
"#;

/// A server that runs, unless it was stopped. Dropping it ends it and removes its folder.
pub(crate) struct Server {
    programs: PathBuf,
    folder: PathBuf,
    account: Option<(u32, u32)>,
    port: u16,
    keeper: Child,
}

impl Server {
    /// An empty server with these settings besides its own.
    pub(crate) fn start(settings: &[&str]) -> Server {
        let programs = std::env::var_os("PUNCTUAL_TEST_POSTGRES_BIN").map(PathBuf::from).unwrap_or_else(|| {
            panic!("this test needs PostgreSQL: cargo xtask postgres -- cargo nextest run -p punctual-store")
        });
        let account = account();
        let made = as_account(Command::new("mktemp"), account)
            .arg("-d")
            .arg(std::env::temp_dir().join("punctual-test-XXXXXX"))
            .output()
            .expect("mktemp can be started");
        let folder = PathBuf::from(String::from_utf8(made.stdout).expect("a path is text").trim());
        let mut keeper = as_account(Command::new("sh"), account);
        keeper.args(["-c", KEEPER, "keeper"]).arg(&programs).arg(&folder).process_group(0);
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = keeper.spawn().expect("a shell can be started");
        let mut server = Server { programs, folder, account, port: 0, keeper };
        let auth = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
        server.run(server.program("initdb").args(auth).arg("--pgdata").arg(server.data()));
        server.set(&[
            "listen_addresses = '127.0.0.1'",
            &format!("unix_socket_directories = '{}'", server.folder.display()),
        ]);
        server.set(settings);
        for _ in 0..PORTS_MAX {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
            server.port = listener.local_addr().expect("a listener has an address").port();
            drop(listener);
            server.set(&[&format!("port = {}", server.port)]);
            if server.control("start").status().is_ok_and(|status| status.success()) {
                return server;
            }
        }
        panic!("PostgreSQL does not start:\n{}", server.log())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Kills it as a crash would, and starts it again.
    pub(crate) fn crash(&self) {
        self.run(self.control("restart").args(["--mode", "immediate"]));
    }

    /// Stops it in good order.
    pub(crate) fn stop(&self) {
        self.run(self.control("stop").args(["--mode", "fast"]));
    }

    /// Starts it again.
    pub(crate) fn start_again(&self) {
        self.run(&mut self.control("start"));
    }

    /// Keeps a copy of its data, while it is stopped.
    pub(crate) fn keep_copy(&self) {
        self.run(as_account(Command::new("cp"), self.account).arg("-a").arg(self.data()).arg(self.copy()));
    }

    /// Puts the copy in the place of its data, while it is stopped.
    pub(crate) fn put_copy_back(&self) {
        self.run(as_account(Command::new("rm"), self.account).arg("-r").arg(self.data()));
        self.run(as_account(Command::new("mv"), self.account).arg(self.copy()).arg(self.data()));
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn copy(&self) -> PathBuf {
        self.folder.join("copy")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Adds settings, which count from its next start on.
    fn set(&self, settings: &[&str]) {
        let path = self.data().join("postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(path).expect("initdb has made it");
        writeln!(file, "{}", settings.join("\n")).expect("it can be written");
    }

    fn control(&self, action: &str) -> Command {
        let mut control = self.program("pg_ctl");
        control.arg(action).arg("--pgdata").arg(self.data()).args(["--wait", "--timeout", "60"]);
        control.arg("--log").arg(self.folder.join("log"));
        control
    }

    fn program(&self, name: &str) -> Command {
        let mut program = as_account(Command::new(self.programs.join(name)), self.account);
        program.current_dir(&self.folder).env("LC_ALL", "C");
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        program
    }

    fn run(&self, command: &mut Command) {
        let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(status.success(), "{command:?}: {status}\n{}", self.log());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

/// As whom the programs run: PostgreSQL refuses to be root.
fn account() -> Option<(u32, u32)> {
    let id = |args: &[&str]| -> Option<u32> {
        let said = Command::new("id").args(args).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(said.stdout).ok()?.trim().parse().ok()
    };
    if id(&["-u"]) != Some(0) {
        return None;
    }
    let account = |name: &str| Some((id(&["-u", name])?, id(&["-g", name])?));
    Some(account("postgres").or_else(|| account("nobody")).expect("somebody can stand in for root"))
}

fn as_account(mut command: Command, account: Option<(u32, u32)>) -> Command {
    if let Some((user, group)) = account {
        command.uid(user).gid(group);
    }
    command.current_dir(Path::new("/"));
    command
}
