//! Settings from the environment: `PUNCTUAL_ENGINE__LEASE_DURATION_SECONDS=60`.
//!
//! Two underscores lead into a section. Only single values of the top level and of `[engine]` can be set this way.

use toml::de::DeValue;

use super::error::{Place, Problems};
use super::keys::{ENGINE, Key, Keys, TOP};
use super::section::Section;
use crate::suggest::nearest;

const PREFIX: &str = "PUNCTUAL_";
/// What a run is told in its environment; a Punctual that is itself a run must not trip over it.
const RUN_PREFIX: &str = "PUNCTUAL_RUN_";
const SECTION: &str = "engine";

/// Values that stand in for those of the file.
#[derive(Default)]
pub(super) struct Overrides {
    top: Vec<Override>,
    engine: Vec<Override>,
}

struct Override {
    key: &'static Key,
    variable: String,
    value: DeValue<'static>,
}

impl Overrides {
    /// Takes what is configuration out of an environment; the rest is left alone.
    pub(super) fn read(env: impl IntoIterator<Item = (String, String)>, problems: &Problems<'_>) -> Overrides {
        let mut overrides = Overrides::default();
        for (variable, value) in env {
            let Some(name) = variable.strip_prefix(PREFIX).filter(|_| !variable.starts_with(RUN_PREFIX)) else {
                continue;
            };
            let value = DeValue::String(value.into());
            match name.to_ascii_lowercase().split_once("__") {
                // Not a setting of the file: a token, an address.
                None => {
                    if let Some(key) = scalars().find(|key| key.name == name.to_ascii_lowercase()) {
                        overrides.top.push(Override { key, variable, value });
                    }
                }
                Some((SECTION, key)) => match ENGINE.get(key) {
                    Some(key) => overrides.engine.push(Override { key, variable, value }),
                    None => refuse(&variable, key, ENGINE.keys.iter().map(|key| key.name), problems),
                },
                Some((section, _)) if TOP.get(section).is_some() => {
                    let problem = format!("[{section}] cannot be set by a variable");
                    problems.add(&Place::Variable(variable), "", problem, "write it into the file");
                }
                Some((section, _)) => refuse(&variable, section, [SECTION].into_iter(), problems),
            }
        }
        overrides
    }

    /// Puts the values of the top level in their places.
    pub(super) fn apply_top<'a>(&'a self, section: &mut Section<'a>) {
        apply(&self.top, section);
    }

    /// Puts the values of `[engine]` in their places.
    pub(super) fn apply_engine<'a>(&'a self, section: &mut Section<'a>) {
        apply(&self.engine, section);
    }
}

fn apply<'a>(overrides: &'a [Override], section: &mut Section<'a>) {
    for Override { key, variable, value } in overrides {
        section.overrule(key.name, variable, value);
    }
}

/// The keys of the top level that are single values.
fn scalars() -> impl Iterator<Item = &'static Key> {
    const SCALARS: [&str; 2] = ["default_timezone", "tzdb"];
    let Keys { keys, .. } = TOP;
    keys.iter().filter(|key| SCALARS.contains(&key.name))
}

fn refuse(variable: &str, given: &str, known: impl Iterator<Item = &'static str> + Clone, problems: &Problems<'_>) {
    let upper = |name: &str| name.to_ascii_uppercase();
    let fix = match nearest(given, known.clone()) {
        Some(name) => format!("did you mean {variable_part}?", variable_part = upper(name)),
        None => format!("use one of {}", known.map(upper).collect::<Vec<_>>().join(", ")),
    };
    let problem = format!("{} is no setting", super::value::short(&upper(given)));
    problems.add(&Place::Variable(variable.to_owned()), "", problem, fix);
}
