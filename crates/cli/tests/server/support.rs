//! A real server in a folder of its own: started, looked at, stopped, killed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{kept, terminal};

/// The most that anything here waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a configuration, a database and an agent; gone when it is dropped.
pub(crate) struct Place {
    folder: PathBuf,
    /// Where it keeps everything, if that is not the file in the folder.
    database: Option<String>,
}

/// A running server. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
}

impl Place {
    /// A fresh folder. `agent.sh` appends a line for each attempt to `effects`, then does what `config` makes of it.
    pub(crate) fn new(test: &str, config: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("punctual-{test}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        let place = Place { folder, database: None };
        place.write("punctual.toml", config);
        place
    }

    /// The same folder, with another database.
    pub(crate) fn with_database(mut self, address: &str) -> Place {
        self.database = Some(address.to_owned());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The lines that attempts have left.
    pub(crate) fn effects(&self) -> Vec<String> {
        self.read("effects").lines().map(str::to_owned).collect()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(args).current_dir(&self.folder).env_remove("PUNCTUAL_LOG").stdin(Stdio::null());
        // Times are shown by the clock of whoever looks, which is the same wherever tests run.
        command.env("TZ", "UTC").env_remove("NO_COLOR").env_remove("COLUMNS");
        // Many of them live at once.
        command.env("PUNCTUAL_LISTEN", "127.0.0.1:0").env_remove("PUNCTUAL_TOKEN").env_remove("PUNCTUAL_URL");
        match &self.database {
            Some(address) => command.env("PUNCTUAL_DATABASE", address),
            None => command.env_remove("PUNCTUAL_DATABASE"),
        };
        command
    }

    /// Runs a command to its end.
    pub(crate) fn punctual(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The same, with more in its environment.
    pub(crate) fn punctual_with(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        self.command(args).envs(env.iter().copied()).output().unwrap()
    }

    /// Runs a command that is told something through a pipe.
    pub(crate) fn piped(&self, args: &[&str], text: &str) -> Output {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Whoever does not listen hears nothing.
        child.stdin.take().unwrap().write_all(text.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// Runs a command at a terminal, where somebody answers every question so. What is on the screen in the end.
    pub(crate) fn at_terminal(&self, args: &[&str], answer: &str) -> (String, ExitStatus) {
        terminal::run(self.command(args), None, answer)
    }

    /// What is on the screen of a terminal of so many columns after a command, with more in its environment.
    pub(crate) fn screen(&self, columns: u16, args: &[&str], env: &[(&str, &str)]) -> String {
        let mut command = self.command(args);
        command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm").envs(env.iter().copied());
        let (screen, status) = terminal::run(command, Some(columns), "");
        assert!(status.success(), "{args:?}: {screen}");
        screen.replace("\r\n", "\n")
    }

    /// Runs a command that must succeed and print JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.punctual(args);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }

    /// All history, oldest first.
    pub(crate) fn history(&self) -> Vec<Value> {
        kept::history(&self.address()).unwrap()
    }

    /// All runs, by time.
    pub(crate) fn runs(&self) -> Vec<Value> {
        self.try_runs().unwrap()
    }

    /// The same, where the database may not answer.
    pub(crate) fn try_runs(&self) -> punctual_store::Result<Vec<Value>> {
        kept::runs(&self.address())
    }

    /// All history of another database, whose file may be in this folder.
    pub(crate) fn history_in(&self, address: &str) -> Vec<Value> {
        kept::history(&self.absolute(address)).unwrap()
    }

    fn address(&self) -> String {
        self.absolute(self.database.as_deref().unwrap_or("sqlite:punctual.db"))
    }

    fn absolute(&self, address: &str) -> String {
        match address.strip_prefix("sqlite:") {
            Some(file) => format!("sqlite:{}", self.path(file).display()),
            None => address.to_owned(),
        }
    }

    /// Starts a server whose log goes to `log`.
    pub(crate) fn up(&self) -> Server {
        self.up_with(&[])
    }

    /// The same, with more arguments.
    pub(crate) fn up_with(&self, args: &[&str]) -> Server {
        let mut command = self.command(&["up"]);
        command.args(args);
        self.start(command)
    }

    /// The same, by a command that becomes the server: it gets the binary as its last argument.
    pub(crate) fn up_by(&self, starter: &mut Command) -> Server {
        let mut command = self.command(&[]);
        let mut all = Command::new(starter.get_program());
        all.args(starter.get_args()).arg(command.get_program()).current_dir(&self.folder).stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => all.env(name, value),
                None => all.env_remove(name),
            };
        }
        command = all;
        self.start(command)
    }

    fn start(&self, mut command: Command) -> Server {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Server { child }
    }

    /// Starts a server with more in its environment.
    pub(crate) fn up_in(&self, env: &[(&str, &str)]) -> Server {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = self.command(&["up"]);
        command.envs(env.iter().copied()).stdout(log.try_clone().unwrap()).stderr(log);
        Server { child: command.spawn().unwrap() }
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Place) -> bool) {
        let patience = Deadline::new();
        while !is_so(self) {
            assert!(patience.is_left(), "not in time: {what}\n{}", self.read("log"));
            rest();
        }
    }

    /// The journal adds up.
    pub(crate) fn verify(&self) {
        let output = self.punctual(&["verify"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.folder).ok();
        }
    }
}

impl Server {
    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let patience = Deadline::new();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(patience.is_left(), "the server does not end");
            rest();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// How long a test is patient.
pub(crate) struct Deadline(Instant);

impl Deadline {
    #[expect(clippy::disallowed_methods, reason = "a test of real processes has to give up at some point")]
    pub(crate) fn new() -> Deadline {
        Deadline(Instant::now() + PATIENCE)
    }

    #[expect(clippy::disallowed_methods, reason = "a test of real processes has to give up at some point")]
    pub(crate) fn is_left(&self) -> bool {
        Instant::now() < self.0
    }
}

/// A short rest between two looks at another process.
#[expect(clippy::disallowed_methods, reason = "nothing tells a test when another process has got somewhere")]
pub(crate) fn rest() {
    std::thread::sleep(Duration::from_millis(20));
}

/// A rest of a given length, for a kill at a bad moment.
#[expect(clippy::disallowed_methods, reason = "the bad moment is a matter of time")]
pub(crate) fn rest_for(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// Whether a process lives.
pub(crate) fn is_alive(process: &str) -> bool {
    Path::new("/proc").join(process).exists()
}
