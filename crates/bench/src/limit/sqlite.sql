-- A row holds the entries of a batch.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    change BLOB NOT NULL
) STRICT;

-- What history is searched and summed by.
CREATE TABLE history (
    seq INTEGER PRIMARY KEY,
    start_seq INTEGER NOT NULL,
    schedule_id BLOB,
    run_id BLOB,
    result TEXT NOT NULL,
    is_final INTEGER NOT NULL,
    agent TEXT NOT NULL,
    project TEXT,
    shown_at INTEGER NOT NULL,
    duration_ms INTEGER,
    tokens INTEGER,
    cost_micros INTEGER
) STRICT;
CREATE INDEX history_of_run ON history (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX history_by_time ON history (shown_at, seq);
CREATE INDEX history_of_agent ON history (agent, shown_at, seq);
CREATE INDEX history_of_project ON history (project, shown_at, seq) WHERE project IS NOT NULL;
CREATE INDEX history_of_schedule ON history (schedule_id, shown_at, seq) WHERE schedule_id IS NOT NULL;
