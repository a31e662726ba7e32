//! What an agent needs and this machine does not have: looked for in the same places as when a run begins.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::agent::ProcessAgent;
use crate::secrets::SecretSource;

/// Where programs are when no `PATH` says so, as the C library has it.
const PATH_DEFAULT: &str = "/bin:/usr/bin";

/// What an agent needs of the machine that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Its working directory.
    Folder,
    /// The program of its command.
    Program,
    /// The value of a secret, by the variable that the work gets it in.
    Secret(String),
}

/// Something that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is needed.
    pub need: Need,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub fix: &'static str,
    /// Whether any server on this machine lacks it. Variables for secrets are often given to the server alone.
    pub is_certain: bool,
}

impl ProcessAgent {
    /// What this machine lacks for the agent, for a server with this environment. It may come and go while the server runs.
    pub fn lacks(&self, variable: impl Fn(&str) -> Option<OsString>) -> Vec<Lack> {
        let here = PathBuf::from(".");
        let folder = self.folder.as_ref().unwrap_or(&here);
        let mut lacks = vec![];
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {
                lacks.extend(self.command.first().and_then(|program| self.without_program(program, folder, &variable)));
            }
            // Whatever is relative to it cannot be looked for.
            Ok(_) => lacks.push(folder_lack(format!("{} is no folder", folder.display()))),
            Err(error) => lacks.push(folder_lack(format!("{}: {error}", folder.display()))),
        }
        lacks.extend(self.secrets.iter().filter_map(|(name, source)| secret_lack(name, source, &variable)));
        lacks
    }

    fn without_program(
        &self,
        program: &str,
        folder: &Path,
        variable: &impl Fn(&str) -> Option<OsString>,
    ) -> Option<Lack> {
        let lack = |problem: String, fix| Some(Lack { need: Need::Program, problem, fix, is_certain: true });
        if program.contains('/') {
            let path = folder.join(program);
            return match runs(&path) {
                Ok(()) => None,
                Err(problem) => lack(format!("{} {problem}", path.display()), "name a program that can be run"),
            };
        }
        let own = self.env.get("PATH").map(OsString::from);
        let path = own.or_else(|| variable("PATH")).unwrap_or_else(|| PATH_DEFAULT.into());
        // A relative folder on the path starts where the work does.
        if std::env::split_paths(&path).any(|place| runs(&folder.join(place).join(program)).is_ok()) {
            return None;
        }
        let problem = format!("there is no program {program:?} on the PATH {}", path.to_string_lossy());
        lack(problem, "install it, write its whole path, or give the agent another PATH in env")
    }
}

fn folder_lack(problem: String) -> Lack {
    Lack { need: Need::Folder, problem, fix: "make it, or name another", is_certain: true }
}

fn secret_lack(name: &str, source: &SecretSource, variable: &impl Fn(&str) -> Option<OsString>) -> Option<Lack> {
    let lack = |problem, fix, is_certain| Some(Lack { need: Need::Secret(name.to_owned()), problem, fix, is_certain });
    match source {
        SecretSource::Env(from) => match variable(from) {
            Some(_) => None,
            None => lack(format!("the variable {from} is not set here"), "start the server with it", false),
        },
        SecretSource::File(_) => match source.read() {
            Ok(_) => None,
            Err(error) => lack(error.to_string(), "put the secret there, for the server's user alone", true),
        },
    }
}

/// Whether a file can be run by this user.
fn runs(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Err(error) => Err(format!("cannot be run: {error}")),
        Ok(found) if !found.is_file() => Err("is no file".to_owned()),
        Ok(_) => accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|error| format!("cannot be run: {error}; `chmod +x` makes it a program")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_not_there_is_told_and_looked_for_where_the_work_would() {
        let folder = std::env::temp_dir().join(format!("punctual-lacks-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).unwrap();
        let write = |name: &str, mode: u32| {
            fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        write("bin/tool", 0o755);
        write("plain", 0o644);
        write("secret", 0o600);
        write("open", 0o644);
        let check = |command: &str, path: Option<&str>, expected: Option<&str>| {
            let agent = ProcessAgent { folder: Some(folder.clone()), ..ProcessAgent::new([command]) };
            let lacks = agent.lacks(|name| path.filter(|_| name == "PATH").map(OsString::from));
            let told = lacks.first().map(|lack| lack.problem.as_str());
            assert_eq!(told.is_some(), expected.is_some(), "{command} {path:?}: {told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{command}: {told:?}");
        };
        check("sh", Some("/bin"), None);
        check("sh", None, None);
        check("tool", Some("/nowhere:bin"), None);
        check("tool", Some("/nowhere"), Some("there is no program \"tool\" on the PATH /nowhere"));
        check("bin/tool", None, None);
        check("./plain", None, Some("chmod +x"));
        check("bin/", None, Some("is no file"));
        check("./missing", None, Some("No such file"));

        let secrets = [
            ("A", SecretSource::Env("THERE".to_owned())),
            ("B", SecretSource::Env("GONE".to_owned())),
            ("C", SecretSource::File(folder.join("secret"))),
            ("D", SecretSource::File(folder.join("open"))),
            ("E", SecretSource::File(folder.join("gone"))),
        ];
        let secrets = secrets.into_iter().map(|(name, source)| (name.to_owned(), source)).collect();
        let agent = ProcessAgent { secrets, folder: Some(folder.join("plain")), ..ProcessAgent::new(["sh"]) };
        let lacks = agent.lacks(|name| (name == "THERE").then(OsString::new));
        let told: Vec<_> = lacks.iter().map(|lack| (lack.need.clone(), lack.is_certain)).collect();
        let secret = |name: &str| Need::Secret(name.to_owned());
        assert_eq!(
            told,
            [(Need::Folder, true), (secret("B"), false), (secret("D"), true), (secret("E"), true)],
            "{lacks:?}"
        );
        fs::remove_dir_all(&folder).ok();
    }
}
