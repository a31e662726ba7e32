//! Log lines, on standard error.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use super::LogFormat;

/// What is logged unless `PUNCTUAL_LOG` says otherwise.
const DEFAULT: &str = "info";

/// Starts logging.
pub(super) fn start(format: LogFormat) -> anyhow::Result<()> {
    let wanted = std::env::var("PUNCTUAL_LOG").unwrap_or_else(|_| DEFAULT.to_owned());
    let filter = EnvFilter::try_new(&wanted)
        .with_context(|| format!("PUNCTUAL_LOG is {wanted:?}; use error, warn, info, debug or trace"))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}
