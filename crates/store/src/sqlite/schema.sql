CREATE TABLE agents_seen (
    agent TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    digest INTEGER NOT NULL,
    subject BLOB NOT NULL CHECK (length(subject) = 16),
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (at);
CREATE TABLE days (
    zone TEXT PRIMARY KEY,
    date TEXT NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE INDEX history_by_time ON journal (shown_at, seq) WHERE verdict IS NOT NULL;
CREATE INDEX history_of_agent ON journal (agent, shown_at, seq) WHERE verdict IS NOT NULL;
CREATE INDEX history_of_project ON journal (project, shown_at, seq) WHERE verdict IS NOT NULL AND project IS NOT NULL;
CREATE INDEX history_of_schedule ON journal (schedule_id, shown_at, seq)
    WHERE verdict IS NOT NULL AND schedule_id IS NOT NULL;
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
CREATE INDEX journal_by_run ON journal (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX journal_by_schedule ON journal (schedule_id, seq) WHERE schedule_id IS NOT NULL;
CREATE INDEX journal_starts ON journal (seq)
    WHERE kind = 'checkpoint' AND json_extract(body, '$.checkpoint.part') = 1;
CREATE TABLE migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT;
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
CREATE INDEX output_by_time ON output (at);
CREATE INDEX output_of_run ON output (run_id, seq);
CREATE UNIQUE INDEX output_once ON output (run_id, epoch, ends_at);
CREATE TABLE planner (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    node BLOB NOT NULL CHECK (length(node) = 16),
    lease_until INTEGER NOT NULL,
    epoch INTEGER NOT NULL CHECK (0 <= epoch)
) STRICT;
CREATE TABLE records (
    seq INTEGER PRIMARY KEY,
    schedule_id BLOB CHECK (length(schedule_id) = 16),
    run_id BLOB CHECK (length(run_id) = 16),
    project TEXT,
    -- The name of the schedule, which may be gone.
    schedule TEXT NOT NULL,
    workflow TEXT NOT NULL,
    workflow_id TEXT,
    state TEXT NOT NULL CHECK (state IN ('executed', 'failed')),
    -- Why it was not started.
    note TEXT,
    scheduled_at INTEGER NOT NULL,
    executed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX records_by_name ON records (schedule, scheduled_at, seq);
CREATE INDEX records_by_time ON records (scheduled_at, seq);
CREATE INDEX records_of_schedule ON records (schedule_id, seq);
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
CREATE INDEX runs_begun ON runs (scheduled_at, id) WHERE ended_at IS NULL AND 1 <= attempt;
CREATE UNIQUE INDEX runs_by_slot ON runs (schedule_id, slot_key) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_by_time ON runs (scheduled_at, id);
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_live ON runs (schedule_id, state, ready_at, id)
    WHERE ended_at IS NULL AND schedule_id IS NOT NULL;
CREATE INDEX runs_of_schedule ON runs (schedule_id, scheduled_at, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_waiting ON runs (wait_until, id) WHERE state = 'waiting';
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
    outage_kept TEXT CHECK (json_valid(outage_kept)), face TEXT NOT NULL
    GENERATED ALWAYS AS (ifnull(json_extract(definition, '$.face'), 'executions')) VIRTUAL, agent TEXT
    GENERATED ALWAYS AS (ifnull(json_extract(definition, '$.work.agent.agent'), json_extract(definition, '$.work.workflow.agent')))
    VIRTUAL, workflow TEXT
    GENERATED ALWAYS AS (json_extract(definition, '$.work.workflow.request.name')) VIRTUAL, condition TEXT NOT NULL
    GENERATED ALWAYS AS (CASE
        WHEN json_extract(definition, '$.state.paused.kind') IS NOT NULL THEN json_extract(definition, '$.state.paused.kind')
        WHEN json_extract(definition, '$.state.ended') IS NOT NULL THEN 'ended'
        ELSE 'active' END) VIRTUAL, description TEXT
    GENERATED ALWAYS AS (json_extract(definition, '$.description')) VIRTUAL,
    CHECK ((outage_from IS NULL) = (outage_until IS NULL)),
    CHECK (outage_kept IS NULL OR outage_from IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_after_outage ON schedules (outage_until) WHERE outage_until IS NOT NULL;
CREATE UNIQUE INDEX schedules_by_name ON schedules (name, face, ifnull(project, '')) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX schedules_by_tail ON schedules (substr(id, 9));
CREATE INDEX schedules_by_zone ON schedules (zone);
CREATE INDEX schedules_by_zone_data ON schedules (zone_data);
CREATE INDEX schedules_of_face ON schedules (face, id);
CREATE INDEX schedules_of_workflow ON schedules (workflow, id) WHERE workflow IS NOT NULL;
CREATE INDEX schedules_to_plan ON schedules (plan_at) WHERE plan_at IS NOT NULL;
CREATE TABLE terms (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    body TEXT NOT NULL CHECK (json_valid(body)),
    used_at INTEGER
) STRICT, WITHOUT ROWID;
