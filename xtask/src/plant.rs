//! `cargo xtask plant`: a test that cannot fail proves nothing, so bugs are planted and must be caught.
//!
//! Each bug is a replacement or two in a copy of the workspace. What has to catch it runs there: the tests of its field, or
//! the simulation. If all is well, the bug has survived, and a test or a rule is missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fmt, fs};

use anyhow::{Context, bail, ensure};

use crate::shell::{command, root};

mod core;
mod seed;
mod sim;
mod store;

/// What is wrong, the file, what stands there, and what is planted instead.
type Bug = (&'static str, &'static str, &'static str, &'static str);

/// The file, what stands there, and what is planted instead.
type Place = (&'static str, &'static str, &'static str);

/// Known bugs, and what must catch them.
struct Field {
    name: &'static str,
    /// Where its files are.
    folder: &'static str,
    bugs: Vec<Planted>,
    trial: Trial,
}

/// A bug, wherever it is planted.
struct Planted {
    what: &'static str,
    places: Vec<Place>,
    /// The rules that may notice it. A test may be any.
    rules: &'static [&'static str],
}

/// What runs against a bug.
enum Trial {
    /// `cargo test` with these arguments.
    Tests(&'static [&'static str]),
    /// The simulation, seed after seed.
    Simulation,
}

/// What noticed that something is wrong.
struct Caught {
    by: String,
    after_seeds: Option<u64>,
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by {}", self.by)?;
        self.after_seeds.map_or(Ok(()), |seeds| write!(f, " after {seeds} seeds"))
    }
}

fn fields() -> [Field; 5] {
    let in_one_place = |bugs: &[Bug]| {
        let planted = |(what, file, stands, planted): &Bug| Planted {
            what,
            places: vec![(*file, *stands, *planted)],
            rules: &[],
        };
        bugs.iter().map(planted).collect::<Vec<_>>()
    };
    let sim_bugs = sim::BUGS.iter().map(|(what, rules, places)| Planted { what, places: places.to_vec(), rules });
    let core_tests = &["-p", "punctual-core", "--lib", "--tests"];
    let store_tests = &["-p", "punctual-store", "--test", "memory", "--test", "differential", "--", "--skip", "sqlite"];
    let sums_tests = &["-p", "punctual-store", "--test", "sqlite_sums", "--test", "sqlite_conformance", "--", "sums"];
    let seed_tests = &["-p", "punctual-server", "--test", "seed", "--", "sqlite"];
    [
        Field {
            name: "core",
            folder: "crates/core/src",
            bugs: in_one_place(core::BUGS),
            trial: Trial::Tests(core_tests),
        },
        Field { name: "store", folder: "crates", bugs: in_one_place(store::BUGS), trial: Trial::Tests(store_tests) },
        Field { name: "sums", folder: "crates", bugs: in_one_place(store::SUMS), trial: Trial::Tests(sums_tests) },
        Field { name: "seed", folder: "crates", bugs: in_one_place(seed::BUGS), trial: Trial::Tests(seed_tests) },
        Field { name: "sim", folder: "crates", bugs: sim_bugs.collect(), trial: Trial::Simulation },
    ]
}

/// Plants each bug in turn, of one field or of all, or those that `words` are of; fails if one survives.
pub(crate) fn plant(only: Option<&str>, words: Option<&str>) -> anyhow::Result<()> {
    let mut fields = Vec::from(fields());
    fields.retain(|field| only.is_none_or(|only| only == field.name));
    ensure!(!fields.is_empty(), "there is no field of that name; there are core, store, sums, seed and sim");
    for field in &mut fields {
        field.bugs.retain(|bug| words.is_none_or(|words| bug.what.contains(words)));
    }
    let scratch = root().join("target/planted");
    let tree = scratch.join("tree");
    copy_workspace(&tree)?;
    let mut survivors = vec![];
    for field in &fields {
        println!("{}: all must be well without a bug, and not with each of {}.", field.name, field.bugs.len());
        // Whoever asks for some bugs has seen the rest.
        if words.is_none()
            && let Some(caught) = field.trial.catches(&tree, &scratch)?
        {
            bail!("something is wrong without any bug planted, noticed {caught}");
        }
        for bug in &field.bugs {
            let before = bug.plant(&tree.join(field.folder))?;
            let caught = field.trial.catches(&tree, &scratch)?;
            before.into_iter().try_for_each(|(path, text)| fs::write(path, text))?;
            println!("{}", bug.told(caught.as_ref()));
            survivors.extend((!bug.is_caught(caught.as_ref())).then_some(bug.what));
        }
    }
    let count: usize = fields.iter().map(|field| field.bugs.len()).sum();
    println!("{} of {count} planted bugs caught", count - survivors.len());
    if !survivors.is_empty() {
        bail!("no test or rule catches: {}", survivors.join(", "));
    }
    Ok(())
}

impl Planted {
    /// Plants it, and returns the files as they were, the last changed first.
    fn plant(&self, folder: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
        let mut before = vec![];
        for (file, stands, planted) in &self.places {
            let path = folder.join(file);
            let text = fs::read_to_string(&path).with_context(|| format!("reading {file}"))?;
            let stood = text.contains(stands);
            ensure!(stood, "{}: {file} no longer contains {stands:?}; plant the bug where it is now", self.what);
            fs::write(&path, text.replacen(stands, planted, 1))?;
            before.insert(0, (path, text));
        }
        Ok(before)
    }

    /// Whether it was noticed, and for the right reason: another history may run into another bug.
    fn is_caught(&self, caught: Option<&Caught>) -> bool {
        caught.is_some_and(|caught| self.rules.is_empty() || self.rules.contains(&caught.by.as_str()))
    }

    fn told(&self, caught: Option<&Caught>) -> String {
        let files: BTreeSet<&str> = self.places.iter().map(|(file, ..)| *file).collect();
        let files: Vec<&str> = files.into_iter().collect();
        let how = match caught {
            None => "SURVIVED".to_owned(),
            Some(caught) if self.is_caught(Some(caught)) => format!("caught {caught}"),
            Some(caught) => format!("MISSED, something else noticed {caught}"),
        };
        format!("{how:<28} {} ({})", self.what, files.join(", "))
    }
}

impl Trial {
    /// What says that something is wrong in the copy, if anything does.
    fn catches(&self, tree: &Path, scratch: &Path) -> anyhow::Result<Option<Caught>> {
        match self {
            Trial::Tests(tests) => {
                let caught = || Caught { by: "a test".to_owned(), after_seeds: None };
                Ok((!tests_pass(tree, scratch, tests)?).then(caught))
            }
            Trial::Simulation => sim::catches(tree, scratch),
        }
    }
}

/// Copies the files that git knows, as they are now.
fn copy_workspace(tree: &Path) -> anyhow::Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    let listed = command("git", &["ls-files"]).output().context("listing the files of the workspace")?;
    for file in String::from_utf8(listed.stdout)?.lines().map(PathBuf::from) {
        let to = tree.join(&file);
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::copy(root().join(&file), &to).with_context(|| format!("copying {}", file.display()))?;
    }
    Ok(())
}

/// Whether tests pass in the copy. A bug that does not compile counts as caught by nobody's test.
fn tests_pass(tree: &Path, scratch: &Path, tests: &[&str]) -> anyhow::Result<bool> {
    let until = tests.iter().position(|arg| *arg == "--").unwrap_or(tests.len());
    let mut build = command("cargo", &["test", "--quiet", "--no-run"]);
    build.args(&tests[..until]);
    let mut test = command("cargo", &["test", "--quiet"]);
    test.args(tests);
    for command in [&mut build, &mut test] {
        command.current_dir(tree).env("CARGO_TARGET_DIR", scratch.join("target"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    ensure!(build.status()?.success(), "the planted bug does not compile");
    Ok(test.status()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_can_still_be_planted() {
        for field in fields() {
            for bug in field.bugs {
                for (file, stands, planted) in bug.places {
                    let text = fs::read_to_string(root().join(field.folder).join(file)).unwrap();
                    assert!(text.contains(stands), "{}: {file} no longer contains {stands:?}", bug.what);
                    assert_ne!(stands, planted, "{}", bug.what);
                }
            }
        }
    }
}
