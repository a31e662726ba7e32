//! `cargo xtask plant`: a test that cannot fail proves nothing, so bugs are planted and must be caught.
//!
//! Each bug is one replacement in one file of a copy of the workspace. The tests of its field run against it; if they
//! pass, the bug has survived, and a test is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail, ensure};

use crate::shell::{command, root};

mod core;
mod store;

/// What is wrong, the file, what stands there, and what is planted instead.
type Bug = (&'static str, &'static str, &'static str, &'static str);

/// The bugs of a crate: where its files are, and the tests that must catch them.
struct Field {
    name: &'static str,
    folder: &'static str,
    bugs: &'static [Bug],
    tests: &'static [&'static str],
}

const FIELDS: [Field; 2] = [
    Field {
        name: "core",
        folder: "crates/core/src",
        bugs: core::BUGS,
        tests: &["-p", "punctual-core", "--lib", "--tests"],
    },
    Field {
        name: "store",
        folder: "crates",
        bugs: store::BUGS,
        tests: &["-p", "punctual-store", "--test", "memory", "--test", "differential", "--", "--skip", "sqlite"],
    },
];

/// Plants each bug in turn, of one field or of all; fails if one survives.
pub(crate) fn plant(only: Option<&str>) -> anyhow::Result<()> {
    let fields: Vec<&Field> = FIELDS.iter().filter(|field| only.is_none_or(|only| only == field.name)).collect();
    ensure!(!fields.is_empty(), "there is no field of that name; there are core and store");
    let scratch = root().join("target/planted");
    let tree = scratch.join("tree");
    copy_workspace(&tree)?;
    let mut survivors = vec![];
    for field in &fields {
        println!("{}: the tests must pass without a bug, then fail with each of {}.", field.name, field.bugs.len());
        ensure!(tests_pass(&tree, &scratch, field.tests)?, "the tests fail without any bug planted");
        for (name, file, stands, planted) in field.bugs {
            let path = tree.join(field.folder).join(file);
            let text = fs::read_to_string(&path).with_context(|| format!("reading {file}"))?;
            let stood = text.contains(stands);
            ensure!(stood, "{name}: {file} no longer contains {stands:?}; plant the bug where it is now");
            fs::write(&path, text.replacen(stands, planted, 1))?;
            let survived = tests_pass(&tree, &scratch, field.tests)?;
            fs::write(&path, text)?;
            println!("{} {name} ({file})", if survived { "SURVIVED" } else { "caught  " });
            survivors.extend(survived.then_some(*name));
        }
    }
    let count: usize = fields.iter().map(|field| field.bugs.len()).sum();
    println!("{} of {count} planted bugs caught", count - survivors.len());
    if !survivors.is_empty() {
        bail!("no test catches: {}", survivors.join(", "));
    }
    Ok(())
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
