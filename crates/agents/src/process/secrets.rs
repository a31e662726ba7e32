//! The secrets of an agent, which its work gets in variables.

use super::agent::ProcessAgent;
use super::protocol::Refusal;
use crate::redact::Secrets;

/// The secrets of an agent as they are now, by the variables that the work gets them in, and what hides them.
pub(super) fn read(agent: &ProcessAgent) -> Result<(Vec<(String, String)>, Secrets), Refusal> {
    let (mut values, mut secrets) = (vec![], Secrets::default());
    for (name, source) in &agent.secrets {
        let value = source.read().map_err(|error| Refusal::new(format!("read the secret {name}"), error))?;
        secrets.hide(name, &value);
        values.push((name.clone(), value));
    }
    for name in agent.env_pass.iter().filter(|name| is_telling(name)) {
        if let Ok(value) = std::env::var(name) {
            secrets.hide(name, &value);
        }
    }
    Ok((values, secrets))
}

/// Whether the name of a variable says that its value is a secret.
fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"].iter().any(|word| name.contains(word))
}
