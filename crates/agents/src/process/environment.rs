//! The environment of the work: a short list of what it always gets, and what the operator adds.
//!
//! Invariant: nothing of the server's environment arrives unless its name is on a list. Tokens and loader variables of
//! the server stay with the server.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use punctual_engine::runner::RunContext;

use super::agent::ProcessAgent;

/// The run of a process, by which its leftovers are recognised.
pub(super) const RUN_ID: &str = "PUNCTUAL_RUN_ID";
/// Its attempt.
pub(super) const RUN_ATTEMPT: &str = "PUNCTUAL_RUN_ATTEMPT";
const RUN_SCHEDULED_AT: &str = "PUNCTUAL_RUN_SCHEDULED_AT";

/// What every work gets from the server: where programs, home and scratch space are, and how people here write.
const PASSED: [&str; 7] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME"];
const PASSED_PREFIX: &[u8] = b"LC_";

const OWN_PREFIX: &[u8] = b"PUNCTUAL_";

/// Variables that make the loader, the C library or a shell run other code than the command names.
const LOADER_PREFIX: &[u8] = b"LD_";
const LOADER: [&[u8]; 4] = [b"GLIBC_TUNABLES", b"GCONV_PATH", b"BASH_ENV", b"ENV"];

/// Whether only Punctual sets variables of this name.
pub(super) fn is_own_name(name: &[u8]) -> bool {
    name.starts_with(OWN_PREFIX)
}

/// Whether a variable of this name changes which code runs.
pub(super) fn is_loader_name(name: &[u8]) -> bool {
    name.starts_with(LOADER_PREFIX) || LOADER.contains(&name)
}

/// The whole environment of one attempt, given the server's own.
pub(super) fn environment(
    agent: &ProcessAgent,
    secrets: &[(String, String)],
    context: &RunContext,
    server: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut environment: BTreeMap<OsString, OsString> =
        server.into_iter().filter(|(name, _)| is_passed(agent, name)).collect();
    environment.extend(agent.env.iter().map(|(name, value)| (name.into(), value.into())));
    environment.extend(secrets.iter().map(|(name, value)| (name.into(), value.into())));
    environment.retain(|name, _| !is_own_name(name.as_encoded_bytes()));
    environment.insert(RUN_ID.into(), context.run_id.to_string().into());
    environment.insert(RUN_ATTEMPT.into(), context.attempt.to_string().into());
    environment.insert(RUN_SCHEDULED_AT.into(), context.scheduled_at.to_string().into());
    environment.into_iter().collect()
}

fn is_passed(agent: &ProcessAgent, name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let is_listed = PASSED.iter().any(|passed| *passed == name)
        || bytes.starts_with(PASSED_PREFIX)
        || agent.env_pass.iter().any(|passed| passed.as_str() == name);
    is_listed && !is_loader_name(bytes)
}

#[cfg(test)]
mod tests {
    use punctual_core::RunId;

    use super::*;

    fn context() -> RunContext {
        let run_id = RunId("019a8b1c-0000-7000-8000-000000000001".parse().unwrap());
        RunContext {
            run_id,
            execution_id: run_id,
            idempotency_key: run_id.to_string(),
            attempt: 2,
            epoch: 1,
            scheduled_at: "2026-03-09T13:00:00Z".parse().unwrap(),
            scheduled_time: 0,
            execution_time: 0,
            schedule_id: None,
            schedule_name: None,
            agent_id: String::new(),
            project_id: None,
            session_id: None,
            prompt: String::new(),
            inputs: serde_json::Map::new(),
            inputs_policy: None,
            workflow: None,
            manual: false,
        }
    }

    /// The names that arrive, beside the three that always do, of a server that has all of these.
    #[track_caller]
    fn check(agent: &ProcessAgent, server: &[&str], expected: &[&str]) {
        let server = server.iter().map(|name| (OsString::from(name), OsString::from("value")));
        let environment = environment(agent, &[], &context(), server);
        let own = [RUN_ID, RUN_ATTEMPT, RUN_SCHEDULED_AT];
        let (own, others): (Vec<_>, Vec<_>) =
            environment.into_iter().partition(|(name, _)| own.iter().any(|own| own == name));
        assert!(own.iter().all(|(_, value)| value != "value"), "{own:?}");
        assert_eq!(own.len(), 3);
        assert_eq!(others.iter().map(|(name, _)| name.to_str().unwrap()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_not_listed_does_not_arrive() {
        let mut agent = ProcessAgent::new(["true"]);
        let server = ["PATH", "LC_ALL", "LCX", "TOKEN", "LD_PRELOAD", "PUNCTUAL_TOKEN", "PUNCTUAL_RUN_ID"];
        check(&agent, &server, &["LC_ALL", "PATH"]);
        agent.env_pass.push("TOKEN".into());
        check(&agent, &server, &["LC_ALL", "PATH", "TOKEN"]);
    }

    #[test]
    fn settings_that_nobody_checked_change_no_rule() {
        let mut agent = ProcessAgent::new(["true"]);
        agent.env_pass = vec!["LD_PRELOAD".into(), "PUNCTUAL_TOKEN".into()];
        agent.env.insert("PUNCTUAL_URL".into(), "value".into());
        agent.env.insert("LD_LIBRARY_PATH".into(), "lib".into());
        check(&agent, &["LD_PRELOAD", "PUNCTUAL_TOKEN"], &["LD_LIBRARY_PATH"]);
    }
}
