//! Every key of the configuration: its name, what it takes, its default and what it means.
//!
//! The reader refuses what is not here, `config --print` takes its comments from here, and a test holds
//! `docs/configuration.md` to it.

/// One key of a section.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What it takes, in a word or two.
    pub(super) takes: &'static str,
    /// What it is when absent; `none` for nothing, `required` where there is no default.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test that reads the documentation"))]
    pub(super) default: &'static str,
    pub(super) meaning: &'static str,
}

/// A kind of table and its keys.
#[derive(Debug)]
pub(super) struct Keys {
    /// As a header of the file shows it.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test that reads the documentation"))]
    pub(super) header: &'static str,
    pub(super) keys: &'static [Key],
}

const fn key(name: &'static str, takes: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key { name, takes, default, meaning }
}

impl Keys {
    pub(super) fn get(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

pub(super) const TOP: Keys = Keys {
    header: "top level",
    keys: &[
        key("default_timezone", "IANA zone", "`\"UTC\"`", "the zone of schedules and calendars that name none"),
        key(
            "tzdb",
            "text",
            "`\"newest\"`",
            "zone data: `newest` (of bundled and system), `bundled`, `system`, or a zoneinfo folder",
        ),
        key("engine", "table", "none", "how a node works"),
        key("retention", "table", "none", "how long things are kept"),
        key("server", "table", "none", "how many connections the API takes, and how long clients may be silent"),
        key("limits", "table", "none", "caps that hold across agents"),
        key("prices", "table", "none", "what models cost, for agents that say only how many tokens they used"),
        key("conductor", "table", "none", "who starts workflows, and how the schedules of Conductor's API behave"),
        key("agents", "tables by name", "none", "what schedules can start"),
        key("calendars", "tables by name", "none", "when schedules that name one may run at all"),
        key("schedules", "list of tables", "none", "schedules kept in this file"),
    ],
};

pub(super) const ENGINE: Keys = Keys {
    header: "[engine]",
    keys: &[
        key("lease_duration_seconds", "1 to 3600", "`30`", "how long a node that falls silent keeps its runs"),
        key("executor_pool_size", "1 to 10000", "`8`", "how many processes a node runs at once"),
        key(
            "executor_poll_interval_seconds",
            "1 to 60",
            "`5`",
            "how long a node waits at most before it looks for ready runs; timers and hints wake it sooner",
        ),
        key("enabled", "boolean", "`true`", "`false` starts the node paused: it claims nothing until SIGUSR2"),
        key("max_running", "1 to 1000000", "none", "how many runs may be at work on all nodes together"),
        key("drain_seconds", "0 to 86400", "`30`", "how long a node that stops waits for its runs to end"),
        key(
            "min_interval_seconds",
            "1 to 86400",
            "`300`",
            "the shortest time between runs of a schedule made over the API",
        ),
        key(
            "approval_wait_seconds",
            "1 to 31536000",
            "`86400`",
            "how long a run waits for its approval; then silence is a no",
        ),
        key("runs_per_day_warning", "1 to 1000000", "`500`", "whoever makes a schedule with more runs a day is warned"),
        key("executor_max_pool_size", "1 to 10000", "none", "another name of `executor_pool_size`"),
        key("past_execution_ttl_days", "1 to 36500", "none", "`[retention] history`, in days"),
        key(
            "future_execution_ttl_hours",
            "anything",
            "none",
            "means nothing here: runs that have ended are kept as long as the history",
        ),
        key("default_timezone", "IANA zone", "none", "`default_timezone` of the top level"),
        key("planner_interval_seconds", "anything", "none", "means nothing here: a plan is made when it is needed"),
        key(
            "lease_heartbeat_seconds",
            "anything",
            "none",
            "means nothing here: a lease is renewed three times in its duration",
        ),
    ],
};

pub(super) const RETENTION: Keys = Keys {
    header: "[retention]",
    keys: &[
        key(
            "history",
            "duration, 1d or more",
            "`\"90d\"`",
            "how long the journal is kept, and with it history and runs that have ended",
        ),
        key(
            "output",
            "duration, 1m or more",
            "`\"7d\"`",
            "how long what runs have printed is kept; its end stays in the history",
        ),
    ],
};

pub(super) const SERVER: Keys = Keys {
    header: "[server]",
    keys: &[
        key(
            "max_connections",
            "16 to 100000",
            "`512`",
            "how many connections may be open; at the limit, idle ones give way",
        ),
        key(
            "max_connections_per_address",
            "1 to 100000",
            "128",
            "how many of them may come from one address; this machine's own has no limit unless it is set, and nobody has with `--behind-proxy`",
        ),
        key(
            "idle_timeout_seconds",
            "1 to 3600",
            "`30`",
            "how long a connection may be open without the whole head of a request",
        ),
        key("write_timeout_seconds", "1 to 3600", "`30`", "how long a client may leave what was sent to it unread"),
    ],
};

pub(super) const LIMITS: Keys = Keys {
    header: "[limits]",
    keys: &[key("projects", "project = number", "none", "how many runs of a project may be at work")],
};

pub(super) const PRICES: Keys = Keys {
    header: "[prices]",
    keys: &[
        key("version", "text", "`\"\"`", "which table this is; kept with every cost that was computed with it"),
        key("models", "tables by name", "`{}`", "the models, as agents call them"),
    ],
};

pub(super) const PRICE: Keys = Keys {
    header: "[prices.models.MODEL]",
    keys: &[
        key("prompt", "number", "`0`", "US dollars for a million tokens that it reads"),
        key("completion", "number", "`0`", "US dollars for a million tokens that it writes"),
        key("cached", "number", "as `prompt`", "US dollars for a million tokens that it reads and has read before"),
        key(
            "cache_write",
            "number",
            "as `prompt`",
            "US dollars for a million tokens that it reads and keeps for later",
        ),
    ],
};

pub(super) const CONDUCTOR: Keys = Keys {
    header: "[conductor]",
    keys: &[
        key("server_url", "address", "none", "the Conductor server that starts workflows, with its `/api`"),
        key("key_id", "text", "none", "the id of the key that the server wants"),
        key("key_secret", "table", "none", "where the secret of that key is, as in `{ env = … }` or `{ file = … }`"),
        key("workflows", "workflow = agent", "`{}`", "agents of this file that stand in for workflows of a server"),
        key("max_running", "1 to 100000", "`64`", "how many workflows a node starts, or follows, at once"),
        key("scheduler_time_zone", "IANA zone", "`\"UTC\"`", "the zone of crons that name none"),
        key("jitter_max_ms", "0 to 86400000", "`0`", "each run is due up to so many milliseconds later"),
        key("max_schedule_jitter_ms", "0 to 86400000", "none", "the same, as newer servers call it"),
        key("catch_up_max", "1 or more", "none", "how many missed slots are made up for at most, the latest"),
        key("archival_max_records", "1 to 1000000", "`5`", "how many records of a schedule are left when old ones go"),
        key("archival_max_record_threshold", "1 to 1000000", "`10`", "old ones go when there are more than so many"),
        key("enabled", "anything", "none", "a setting of Conductor's that means nothing here"),
        key("polling_thread_count", "anything", "none", "likewise"),
        key("polling_interval", "anything", "none", "likewise"),
        key("poll_batch_size", "anything", "none", "likewise"),
        key("initial_delay_ms", "anything", "none", "likewise"),
        key("archival_thread_count", "anything", "none", "likewise"),
        key("archival_poll_batch_size", "anything", "none", "likewise"),
        key("archival_maintenance_interval_record_count", "anything", "none", "likewise"),
        key("archival_maintenance_lock_seconds", "anything", "none", "likewise"),
        key("archival_maintenance_lock_try_seconds", "anything", "none", "likewise"),
        key("cache_enabled", "anything", "none", "likewise"),
        key("user_cache_expire_after_write_seconds", "anything", "none", "likewise"),
        key("user_cache_max_size", "anything", "none", "likewise"),
    ],
};

pub(super) const AGENT: Keys = Keys {
    header: "[agents.NAME]",
    keys: &[
        key("runner", "`process`", "required", "what carries the work out"),
        key(
            "command",
            "list of texts",
            "required",
            "program and arguments, read by no shell; looked up in `folder` if it holds a `/`",
        ),
        key("folder", "text", "this file's folder", "where it runs, relative to this file's folder"),
        key("env", "table of texts", "`{}`", "variables it is given; secrets belong in `secrets`"),
        key("env_pass", "list of names", "`[]`", "variables it is handed on from Punctual's own environment"),
        key(
            "secrets",
            "table of tables",
            "`{}`",
            "variables kept elsewhere, as in `{ env = … }` or `{ file = … }`; hidden in its output",
        ),
        key(
            "stdin",
            "`context` or `prompt`",
            "`\"context\"`",
            "what it reads: the context of its run as JSON, or the prompt alone",
        ),
        key("model", "text", "none", "the model that it uses, for the price of results that do not name it"),
        key("timeout", "duration", "`\"10m\"`", "how long a run may take, unless its schedule says otherwise"),
        key("grace", "duration up to 1h", "`\"10s\"`", "how long it has to end when asked, before it is killed"),
        key("max_concurrent", "1 to 1000000", "none", "how many of its runs may be at work, whatever schedules say"),
        key("risk", "`read`, `write` or `exec`", "`\"exec\"`", "what a schedule that asks for approval asks it for"),
        key(
            "approval",
            "`always` or `schedule`",
            "`\"schedule\"`",
            "which runs need an approval: all of them, whoever starts them, or those whose schedule asks for it",
        ),
        key("limits", "table", "`{}`", "what the operating system lets it have"),
    ],
};

pub(super) const AGENT_LIMITS: Keys = Keys {
    header: "[agents.NAME.limits]",
    keys: &[
        key("cpu", "duration", "none", "processor time of each of its processes, in whole seconds"),
        key("memory", "size from 64MiB", "none", "memory of each of its processes"),
        key("open_files", "16 or more", "none", "files that each of its processes may hold open"),
        key("processes", "1 or more", "none", "processes that its user may have in all"),
        key("file_size", "size", "none", "the largest file that it may write"),
    ],
};

pub(super) const SECRET: Keys = Keys {
    header: "[agents.NAME.secrets.VARIABLE]",
    keys: &[
        key("env", "name", "none", "the variable of Punctual's own environment that holds it"),
        key("file", "path", "none", "the file that holds it, readable by nobody else; relative to this file's folder"),
    ],
};

pub(super) const CALENDAR: Keys = Keys {
    header: "[calendars.NAME]",
    keys: &[
        key("zone", "IANA zone", "`default_timezone`", "where windows and dates are meant"),
        key(
            "weekly",
            "weekday = list of windows",
            "always open",
            "opening windows by `mon` to `sun`, like `[\"09:00-17:00\"]`; a weekday that is absent is closed",
        ),
        key("closed", "list of dates", "`[]`", "dates on which it is closed"),
        key(
            "open",
            "list of tables",
            "`[]`",
            "extra open dates: `{ date = \"2026-12-24\", windows = [\"09:00-12:00\"] }`, all day without windows",
        ),
    ],
};

pub(super) const SCHEDULE: Keys = Keys {
    header: "[[schedules]]",
    keys: &[
        key("name", "text", "required", "its name, once in its project"),
        key("project", "text", "none", "the project that it belongs to"),
        key("agent", "text", "required", "the agent that it starts, one of `[agents]`"),
        key("prompt", "text", "`\"\"`", "what the agent is asked to do"),
        key("inputs", "table", "`{}`", "what the agent is given"),
        key(
            "input_type",
            "`none`, `all`, `threads_since_last_run` or `latest_intake_window`",
            "`\"none\"`",
            "which window of time the agent is told to read",
        ),
        key("window_minutes", "1 to 525600", "none", "how long a `latest_intake_window` is"),
        key("thread_filter", "text", "none", "which threads the agent is told to read"),
        key(
            "cron",
            "text or list",
            "none",
            "cron of 5, 6 or 7 fields or a macro; `\"EXPRESSION;ZONE\"` gives one a zone of its own",
        ),
        key("times", "list of texts", "none", "times of day, `HH:MM` or `HH:MM:SS`"),
        key("every", "duration", "none", "elapsed time, 1 second or more; counted from when Punctual first sees it"),
        key("at", "instant or local time", "none", "once, then"),
        key("after", "duration", "none", "once, so long after Punctual first sees it"),
        key("immediate", "boolean", "`false`", "once, when Punctual first sees it and whenever it is enabled again"),
        key(
            "dialect",
            "`unix`, `spring` or `quartz`",
            "by fields",
            "how `cron` is read: `unix` for 5 fields, `spring` for 6 and 7",
        ),
        key("timezone", "IANA zone", "`default_timezone`", "its zone: its days are that zone's days"),
        key("calendar", "text", "none", "one of `[calendars]`: slots outside are skipped"),
        key("start_at", "instant or local time", "none", "no slot before"),
        key("end_at", "instant or local time", "none", "no slot after"),
        key("max_runs", "1 or more", "none", "how many runs may start"),
        key("jitter", "duration", "`\"0s\"`", "each run is due up to so much later"),
        key(
            "overlap",
            "`allow`, `skip`, `queue` or `replace`",
            "`\"queue\"`",
            "what happens when a run is due while another is at work",
        ),
        key(
            "catch_up",
            "`none`, `first`, `latest` or `all`",
            "`\"latest\"`",
            "which of the slots that an outage missed are run",
        ),
        key("catch_up_max", "1 to 10000", "`100`", "at most so many, under `all`"),
        key("catch_up_window", "duration", "none", "only those that are not older"),
        key(
            "max_delay",
            "`day`, `none` or duration",
            "`\"day\"`",
            "how late a run may start; `day` is an hour after its local day",
        ),
        key("dst_gap", "`after` or `skip`", "`\"after\"`", "what becomes of a time of day that the clock jumps over"),
        key("dst_repeat", "`once` or `both`", "`\"once\"`", "what becomes of a time of day that the clock shows twice"),
        key("max_attempts", "1 to 1000", "`3`", "tries in all, the first included"),
        key("backoff", "`fixed` or `exponential`", "`\"fixed\"`", "how the rest between tries grows"),
        key("retry_delay", "duration", "`\"1m\"`", "the rest before the second try"),
        key("retry_delay_max", "duration", "`\"1h\"`", "no rest is longer"),
        key("retry_jitter", "duration", "`\"0s\"`", "up to so much is added to each rest"),
        key(
            "after_loss",
            "`retry` or `hold`",
            "`\"retry\"`",
            "what follows when a node dies or is stopped at work: try again, or risk nothing twice",
        ),
        key("timeout", "duration", "the agent's", "how long a run may take"),
        key("priority", "1 to 10", "`5`", "how urgent its runs are; 10 is the most"),
        key(
            "max_concurrent",
            "1 to 1000000",
            "the agent's, else `1`",
            "how many runs of its agent may be at work when one of its own starts",
        ),
        key(
            "concurrency_key",
            "text",
            "none",
            "what its runs share with those of other schedules: an account, a repository, a machine",
        ),
        key("concurrency_max", "1 to 1000000", "1 where there is a key", "how many runs with that key may be at work"),
        key(
            "risk_gate",
            "boolean",
            "`false`",
            "each run of an agent with risk `write` or `exec` waits for an approval",
        ),
        key("enabled", "boolean", "`true`", "`false` switches it off; slots of that time are skipped as `disabled`"),
    ],
};
