//! The screen that answers are shown on: how wide it is, whether it has colours, and what fits.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use clap::{Args, ValueEnum};

/// How answers look, whatever the command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ScreenArgs {
    /// Show states in colour: on a terminal unless NO_COLOR is set, always or never
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", hide_default_value = true)]
    color: ColorWhen,

    /// Show every column of a table with whole texts and ids, however narrow the terminal is
    #[arg(long, global = true)]
    wide: bool,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in a file or a pipe
    Always,
    /// Nowhere
    Never,
}

/// What a table and a line are fitted to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Screen {
    /// How wide it is; none where everything is shown, as in a file, in a pipe and with `--wide`.
    pub(crate) width: Option<usize>,
    /// Whether states are in colour.
    pub(crate) has_color: bool,
    /// Whether it knows more than ASCII.
    pub(crate) is_utf8: bool,
}

static SCREEN: OnceLock<Screen> = OnceLock::new();

impl Screen {
    /// The screen of this process. Nothing is cut before [`ScreenArgs::apply`] has said what it is.
    pub(crate) fn get() -> Screen {
        SCREEN.get().copied().unwrap_or_default()
    }
}

impl ScreenArgs {
    /// Looks at standard output, once, before anything is shown.
    pub(crate) fn apply(&self) {
        let is_terminal = io::stdout().is_terminal();
        let has_color = has_color(self.color, is_terminal, |name| std::env::var(name).ok());
        let width = (is_terminal && !self.wide).then(width);
        SCREEN.set(Screen { width, has_color, is_utf8: is_utf8() }).ok();
    }
}

/// Whether colours are used. `NO_COLOR` counts if it is not empty, as <https://no-color.org> has it.
fn has_color(when: ColorWhen, is_terminal: bool, var: impl Fn(&str) -> Option<String>) -> bool {
    let is_refused = var("NO_COLOR").is_some_and(|text| !text.is_empty()) || var("TERM").as_deref() == Some("dumb");
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => is_terminal && !is_refused,
    }
}

/// How wide the terminal is.
pub(crate) fn width() -> usize {
    const UNKNOWN: usize = 100;
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let asked = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    told.or_else(asked).filter(|width| 0 < *width).unwrap_or(UNKNOWN)
}

/// Whether the terminal knows more than ASCII.
pub(crate) fn is_utf8() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    named.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

/// What a word is painted with, by what it means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Paint {
    /// As everything else.
    #[default]
    Plain,
    /// It went well.
    Good,
    /// It failed.
    Bad,
    /// It is in progress.
    Busy,
    /// Somebody or something has to be waited for.
    Waiting,
    /// Nothing became of it.
    Quiet,
}

impl Paint {
    /// The paint of a state of a run or a schedule, by its first word.
    pub(crate) fn of_state(state: &str) -> Paint {
        match state.split([' ', ':', ',']).next().unwrap_or_default() {
            "succeeded" | "done" => Paint::Good,
            "failed" | "unknown" => Paint::Bad,
            "running" | "taken" => Paint::Busy,
            "waiting" | "retrying" | "paused" => Paint::Waiting,
            "skipped" | "cancelled" | "disabled" | "ended" | "finished" => Paint::Quiet,
            _ => Paint::Plain,
        }
    }

    /// A text in this paint, if the screen has colours.
    pub(crate) fn on(self, text: &str, screen: Screen) -> String {
        let code = match self {
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Busy => "36",
            Paint::Waiting => "33",
            Paint::Quiet => "2",
            Paint::Plain => return text.to_owned(),
        };
        if screen.has_color && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let none = |_: &str| None;
        let refused = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let empty = |name: &str| (name == "NO_COLOR").then(String::new);
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(has_color(ColorWhen::Auto, true, none));
        assert!(has_color(ColorWhen::Auto, true, empty), "an empty NO_COLOR says nothing");
        assert!(!has_color(ColorWhen::Auto, true, refused));
        assert!(!has_color(ColorWhen::Auto, true, dumb));
        assert!(!has_color(ColorWhen::Auto, false, none));
        assert!(has_color(ColorWhen::Always, false, refused), "who asks for it gets it");
        assert!(!has_color(ColorWhen::Never, true, none));
    }

    #[test]
    fn a_state_is_painted_by_its_first_word() {
        let screen = Screen { has_color: true, ..Screen::default() };
        assert_eq!(Paint::of_state("paused: the target is down"), Paint::Waiting);
        assert_eq!(Paint::of_state("active"), Paint::Plain);
        assert_eq!(Paint::of_state("failed").on("failed", screen), "\u{1b}[31mfailed\u{1b}[0m");
        assert_eq!(Paint::Bad.on("failed", Screen::default()), "failed");
    }
}
