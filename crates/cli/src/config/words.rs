//! Settings that are one word out of a few.

use punctual_agents::process::Stdin;
use punctual_core::plan::AgentApproval;
use punctual_core::run::{AfterLoss, Backoff};
use punctual_core::schedule::{CatchUpMode, GapPolicy, InputType, Overlap, RepeatPolicy};
use punctual_core::time::Dialect;
use punctual_engine::roster::Risk;

/// A choice that the file writes as a word.
pub(super) trait Word: Copy + PartialEq + 'static {
    /// Every word and what it stands for.
    const WORDS: &'static [(&'static str, Self)];

    /// The word for it.
    fn word(self) -> &'static str {
        let (word, _) = Self::WORDS.iter().find(|(_, value)| *value == self).expect("every choice has a word");
        word
    }
}

impl Word for Overlap {
    const WORDS: &'static [(&'static str, Overlap)] =
        &[("allow", Overlap::Allow), ("skip", Overlap::Skip), ("queue", Overlap::Queue), ("replace", Overlap::Replace)];
}

impl Word for CatchUpMode {
    const WORDS: &'static [(&'static str, CatchUpMode)] = &[
        ("none", CatchUpMode::None),
        ("first", CatchUpMode::First),
        ("latest", CatchUpMode::Latest),
        ("all", CatchUpMode::All),
    ];
}

impl Word for GapPolicy {
    const WORDS: &'static [(&'static str, GapPolicy)] = &[("after", GapPolicy::After), ("skip", GapPolicy::Skip)];
}

impl Word for RepeatPolicy {
    const WORDS: &'static [(&'static str, RepeatPolicy)] =
        &[("once", RepeatPolicy::Once), ("both", RepeatPolicy::Both)];
}

impl Word for Backoff {
    const WORDS: &'static [(&'static str, Backoff)] =
        &[("fixed", Backoff::Fixed), ("exponential", Backoff::Exponential)];
}

impl Word for AfterLoss {
    const WORDS: &'static [(&'static str, AfterLoss)] = &[("retry", AfterLoss::Retry), ("hold", AfterLoss::Hold)];
}

impl Word for Dialect {
    const WORDS: &'static [(&'static str, Dialect)] =
        &[("unix", Dialect::Unix), ("spring", Dialect::Spring), ("quartz", Dialect::Quartz)];
}

impl Word for InputType {
    const WORDS: &'static [(&'static str, InputType)] = &[
        ("none", InputType::None),
        ("all", InputType::All),
        ("threads_since_last_run", InputType::ThreadsSinceLastRun),
        ("latest_intake_window", InputType::LatestIntakeWindow),
    ];
}

impl Word for Stdin {
    const WORDS: &'static [(&'static str, Stdin)] = &[("context", Stdin::Context), ("prompt", Stdin::Prompt)];
}

impl Word for AgentApproval {
    const WORDS: &'static [(&'static str, AgentApproval)] =
        &[("always", AgentApproval::Always), ("schedule", AgentApproval::Schedule)];
}

impl Word for Risk {
    const WORDS: &'static [(&'static str, Risk)] =
        &[("read", Risk::Read), ("write", Risk::Write), ("exec", Risk::Exec)];
}
