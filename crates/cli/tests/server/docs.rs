//! What README and docs/getting-started.md tell newcomers to type is typed here, as it stands there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::Place;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The shell commands of a page, block by block. What builds is built already; what takes hours is left out.
fn blocks(page: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let mut blocks = vec![];
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line != "```sh" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let is_typed = |line: &&&str| !line.starts_with("cargo xtask") && !line.starts_with("cargo install");
        let typed: Vec<String> =
            block.iter().filter(is_typed).map(|line| line.replace("cargo run --release --", "punctual")).collect();
        blocks.push(typed.join("\n"));
    }
    blocks
}

/// A newcomer at two terminals.
struct Newcomer {
    place: Place,
    folder: PathBuf,
    server: Option<Child>,
}

impl Newcomer {
    fn new(test: &str) -> Newcomer {
        let place = Place::new(test, "");
        fs::remove_file(place.path("punctual.toml")).unwrap();
        Newcomer { folder: place.path(""), place, server: None }
    }

    fn shell(&self, script: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_punctual"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", script]).current_dir(&self.folder).env("PATH", path).stdin(Stdio::null());
        shell.env("PUNCTUAL_LISTEN", "127.0.0.1:0").env_remove("PUNCTUAL_TOKEN").env_remove("PUNCTUAL_DATABASE");
        shell
    }

    /// Types a block. A server is left running in its terminal, and the one before it is stopped.
    fn types(&mut self, block: &str) {
        let is_server = |line: &str| line.starts_with("punctual up");
        let (servers, others): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| is_server(line));
        let script = format!("{}\npwd > {}", others.join("\n"), self.place.path("where").display());
        let output = self.shell(&script).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success(), "{block}\n{said}");
        self.folder = self.place.read("where").trim().into();
        for server in servers {
            self.stops();
            self.server = Some(self.shell(&format!("exec {server}")).stdout(Stdio::null()).spawn().unwrap());
            let is_there = self.folder.join("punctual.db.server");
            self.place.until("the server is up", |_| is_there.exists());
        }
    }

    fn stops(&mut self) {
        if let Some(mut server) = self.server.take() {
            let status = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
            assert!(status.success() && server.wait().unwrap().success());
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().ok();
            server.wait().ok();
        }
    }
}

fn check(page: &str, test: &str, commands: usize) {
    let mut newcomer = Newcomer::new(test);
    let blocks = blocks(page);
    let typed = blocks.iter().flat_map(|block| block.lines()).filter(|line| line.starts_with("punctual")).count();
    assert!(commands <= typed, "{page} has {typed} commands");
    blocks.iter().for_each(|block| newcomer.types(block));
    newcomer.stops();
}

#[test]
fn the_commands_of_the_readme_work() {
    check("README.md", "docs-readme", 8);
}

#[test]
fn the_commands_of_getting_started_work() {
    check("docs/getting-started.md", "docs-start", 16);
}
