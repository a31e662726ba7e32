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
CREATE TABLE base_progress (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    plan_at INTEGER,
    progress TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE base_rest (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    body TEXT NOT NULL
) STRICT;
CREATE TABLE base_runs (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    schedule_id BLOB CHECK (length(schedule_id) = 16),
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    terms TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX base_runs_of_schedule ON base_runs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE TABLE base_schedules (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    version INTEGER NOT NULL,
    name TEXT,
    project TEXT,
    definition TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- The last entry, and its checksum.
    seq INTEGER NOT NULL CHECK (0 <= seq),
    checksum INTEGER NOT NULL,
    -- The first entry that is kept, and the checksum of the one before it. The base stands before it.
    first_seq INTEGER NOT NULL CHECK (1 <= first_seq),
    checksum_before INTEGER NOT NULL
) STRICT;
CREATE TABLE history (
    seq INTEGER PRIMARY KEY,
    run_id BLOB CHECK (length(run_id) = 16),
    schedule_id BLOB CHECK (length(schedule_id) = 16),
    verdict TEXT NOT NULL CHECK (verdict IN ('succeeded', 'failed', 'cancelled', 'skipped', 'stopped')),
    -- Whether it is the last word about its run or its slots.
    is_final INTEGER NOT NULL CHECK (is_final IN (0, 1)),
    agent TEXT NOT NULL,
    project TEXT,
    -- When it began; when it was scheduled, if it never did.
    shown_at INTEGER NOT NULL,
    duration_ms INTEGER,
    -- How long after its time the first attempt began.
    late_ms INTEGER,
    tokens INTEGER,
    cost_micros INTEGER
) STRICT;
CREATE INDEX history_by_time ON history (shown_at, seq);
CREATE INDEX history_of_agent ON history (agent, shown_at, seq);
CREATE INDEX history_of_project ON history (project, shown_at, seq) WHERE project IS NOT NULL;
CREATE INDEX history_of_run ON history (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX history_of_schedule ON history (schedule_id, shown_at, seq) WHERE schedule_id IS NOT NULL;
CREATE TABLE journal (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL CHECK (first <= last),
    -- When the last of them was written.
    at INTEGER NOT NULL,
    -- Over every entry up to the last of the row.
    checksum INTEGER NOT NULL,
    -- What applying them needs.
    change TEXT NOT NULL,
    -- What else they say. It comes last: who follows does not read its pages.
    detail TEXT NOT NULL
) STRICT;
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
CREATE TABLE progress (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    -- When planning has something to do.
    plan_at INTEGER,
    progress TEXT NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE rest (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    body TEXT NOT NULL
) STRICT;
CREATE TABLE runs (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    schedule_id BLOB CHECK (length(schedule_id) = 16),
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    -- The terms, where they are not those of its schedule.
    terms TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE schedule_sums (
    shown_at INTEGER NOT NULL,
    schedule_id BLOB NOT NULL CHECK (length(schedule_id) = 16),
    agent TEXT NOT NULL,
    project TEXT NOT NULL,
    verdict TEXT NOT NULL,
    is_final INTEGER NOT NULL,
    marks INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    late_10ms INTEGER NOT NULL,
    late_100ms INTEGER NOT NULL,
    late_1s INTEGER NOT NULL,
    late_10s INTEGER NOT NULL,
    late_1min INTEGER NOT NULL,
    late_10min INTEGER NOT NULL,
    late_more INTEGER NOT NULL,
    PRIMARY KEY (shown_at, schedule_id, agent, project, verdict, is_final)
) STRICT, WITHOUT ROWID;
CREATE TABLE schedules (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    version INTEGER NOT NULL,
    name TEXT,
    project TEXT,
    -- The schedule as JSON, apart from how far it has come.
    definition TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL CHECK (0 <= seq)
) STRICT;
CREATE TABLE subjects (
    subject BLOB NOT NULL CHECK (length(subject) = 16),
    seq INTEGER NOT NULL,
    PRIMARY KEY (subject, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX subjects_by_entry ON subjects (seq);
CREATE TABLE sums (
    -- The first instant of the day, in UTC.
    shown_at INTEGER NOT NULL,
    agent TEXT NOT NULL,
    -- Empty if there is none.
    project TEXT NOT NULL,
    verdict TEXT NOT NULL,
    is_final INTEGER NOT NULL,
    -- Rows of history, and those of them that are attempts that began. What follows is of attempts.
    marks INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    -- First attempts, by how long after their time they began.
    late_10ms INTEGER NOT NULL,
    late_100ms INTEGER NOT NULL,
    late_1s INTEGER NOT NULL,
    late_10s INTEGER NOT NULL,
    late_1min INTEGER NOT NULL,
    late_10min INTEGER NOT NULL,
    late_more INTEGER NOT NULL,
    PRIMARY KEY (shown_at, agent, project, verdict, is_final)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens_used (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE VIEW unsummed AS SELECT * FROM history NOT INDEXED WHERE seq > (SELECT seq FROM snapshot);
