-- The first schema. Times are microseconds since 1970, ids are UUIDs as 16 bytes, what has a shape of its own is JSON.
-- No foreign keys: each would want an index for deleting alone. What refers to what is counted, and `verify` checks it.

-- What there is one of: how far the journal goes, where it begins, and the epoch floor.
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- The last entry, and its checksum.
    seq INTEGER NOT NULL CHECK (0 <= seq),
    checksum INTEGER NOT NULL,
    -- The first entry that counts, and the checksum of the one before it. Rows before it are being let go.
    first_seq INTEGER NOT NULL CHECK (1 <= first_seq),
    checksum_before INTEGER NOT NULL,
    epoch_floor INTEGER NOT NULL CHECK (0 <= epoch_floor)
) STRICT;

INSERT INTO head (one, seq, checksum, first_seq, checksum_before, epoch_floor) VALUES (1, 0, 0, 1, 0, 0);

-- What happened, in order.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    schedule_id BLOB CHECK (length(schedule_id) = 16),
    run_id BLOB CHECK (length(run_id) = 16),
    body TEXT NOT NULL,
    -- Over the entry before, the number, the time and the body.
    checksum INTEGER NOT NULL,
    -- What the body says, for what is history: how it ended, when it began or was scheduled, and what it came to.
    verdict TEXT CHECK (verdict IN ('succeeded', 'failed', 'cancelled', 'skipped', 'stopped')),
    -- Whether it is the last word about its run or its slots.
    is_final INTEGER CHECK (is_final IN (0, 1)),
    agent TEXT,
    project TEXT,
    shown_at INTEGER,
    duration_ms INTEGER,
    tokens INTEGER,
    cost_micros INTEGER,
    CHECK ((verdict IS NULL) = (agent IS NULL)),
    CHECK ((verdict IS NULL) = (is_final IS NULL)),
    CHECK ((verdict IS NULL) = (shown_at IS NULL))
) STRICT;

CREATE INDEX journal_by_schedule ON journal (schedule_id, seq) WHERE schedule_id IS NOT NULL;
CREATE INDEX journal_by_run ON journal (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX history_by_time ON journal (shown_at, seq) WHERE verdict IS NOT NULL;
CREATE INDEX history_of_agent ON journal (agent, shown_at, seq) WHERE verdict IS NOT NULL;
CREATE INDEX history_of_project ON journal (project, shown_at, seq) WHERE verdict IS NOT NULL AND project IS NOT NULL;
CREATE INDEX history_of_schedule ON journal (schedule_id, shown_at, seq)
    WHERE verdict IS NOT NULL AND schedule_id IS NOT NULL;
-- Where the journal may begin: the first parts of checkpoints.
CREATE INDEX journal_starts ON journal (seq)
    WHERE kind = 'checkpoint' AND json_extract(body, '$.checkpoint.part') = 1;

CREATE TABLE schedules (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    version INTEGER NOT NULL CHECK (0 <= version),
    name TEXT,
    project TEXT,
    zone TEXT NOT NULL,
    -- The schedule as JSON, apart from its cursor and its count: those change with every plan and every start.
    definition TEXT NOT NULL CHECK (json_valid(definition)),
    -- How far its slots are answered: an instant, and what the clocks of its zones showed there.
    cursor_at INTEGER NOT NULL,
    cursor_reached TEXT NOT NULL CHECK (json_valid(cursor_reached)),
    runs_started INTEGER NOT NULL CHECK (0 <= runs_started),
    -- When planning has something to do.
    plan_at INTEGER,
    -- The version of the zone data that the plan was made with.
    zone_data TEXT NOT NULL,
    -- What is left of an outage that has to be made up for.
    outage_from INTEGER,
    outage_until INTEGER,
    outage_kept TEXT CHECK (json_valid(outage_kept)),
    CHECK ((outage_from IS NULL) = (outage_until IS NULL)),
    CHECK (outage_kept IS NULL OR outage_from IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX schedules_by_name ON schedules (name, ifnull(project, '')) WHERE name IS NOT NULL;
-- Ids of runs name their schedule by the last half of its id.
CREATE UNIQUE INDEX schedules_by_tail ON schedules (substr(id, 9));
CREATE INDEX schedules_to_plan ON schedules (plan_at) WHERE plan_at IS NOT NULL;
CREATE INDEX schedules_after_outage ON schedules (outage_until) WHERE outage_until IS NOT NULL;
CREATE INDEX schedules_by_zone_data ON schedules (zone_data);
CREATE INDEX schedules_by_zone ON schedules (zone);

-- The last day that has begun in a zone.
CREATE TABLE days (
    zone TEXT PRIMARY KEY,
    date TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The terms of runs, by a digest of themselves. The runs of one version of a schedule share them; those that no run has go when
-- old runs go.
CREATE TABLE terms (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Whoever reads a row refuses what contradicts itself.
CREATE TABLE runs (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    -- The schedule may be gone while its runs are still at work.
    schedule_id BLOB,
    version INTEGER NOT NULL,
    slot_key TEXT NOT NULL,
    scheduled_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    expires_at INTEGER,
    follows BLOB,
    terms_id BLOB NOT NULL,
    state TEXT NOT NULL,
    -- When it may be claimed.
    ready_at INTEGER,
    resumes INTEGER NOT NULL,
    owner BLOB,
    wait_for TEXT,
    wait_until INTEGER,
    -- Why it failed, or was skipped.
    reason TEXT,
    attempt INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    has_started INTEGER NOT NULL,
    is_parked INTEGER NOT NULL,
    is_cancelling INTEGER NOT NULL,
    -- How its last attempt ended.
    last_end TEXT
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX runs_by_slot ON runs (schedule_id, slot_key) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_by_time ON runs (scheduled_at, id);
CREATE INDEX runs_of_schedule ON runs (schedule_id, scheduled_at, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_live ON runs (schedule_id, state, ready_at, id)
    WHERE ended_at IS NULL AND schedule_id IS NOT NULL;
CREATE INDEX runs_waiting ON runs (wait_until, id) WHERE state = 'waiting';
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

-- What was answered to requests that may come again, by their keys. Kept for a day, and not in the journal.
CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    digest INTEGER NOT NULL,
    subject BLOB NOT NULL CHECK (length(subject) = 16),
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (at);

-- What runs have printed, the end of each attempt. Kept for a week, and not in the journal.
CREATE TABLE output (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id BLOB NOT NULL CHECK (length(run_id) = 16),
    epoch INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr')),
    at INTEGER NOT NULL,
    -- How many bytes the attempt had printed behind it.
    ends_at INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX output_once ON output (run_id, epoch, ends_at);
CREATE INDEX output_of_run ON output (run_id, seq);
CREATE INDEX output_by_time ON output (at);

-- Who may come over the API. When somebody last did is not in the journal.
CREATE TABLE tokens (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    body TEXT NOT NULL CHECK (json_valid(body)),
    used_at INTEGER
) STRICT, WITHOUT ROWID;

-- Nodes that have a lease.
CREATE TABLE nodes (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    name TEXT NOT NULL,
    joined_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    -- How long its lease is, in milliseconds.
    lease INTEGER NOT NULL CHECK (0 < lease),
    agents TEXT NOT NULL CHECK (json_valid(agents)),
    about TEXT NOT NULL CHECK (json_valid(about))
) STRICT, WITHOUT ROWID;

-- When a node last said that it has an agent.
CREATE TABLE agents_seen (
    agent TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who plans.
CREATE TABLE planner (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    node BLOB NOT NULL CHECK (length(node) = 16),
    lease_until INTEGER NOT NULL,
    epoch INTEGER NOT NULL CHECK (0 <= epoch)
) STRICT;
