-- A row holds the entries of a batch.
CREATE TABLE journal (
    seq bigint PRIMARY KEY,
    at timestamptz NOT NULL,
    entries bigint NOT NULL,
    change bytea NOT NULL
);

-- What history is searched and summed by.
CREATE TABLE history (
    seq bigint PRIMARY KEY,
    start_seq bigint NOT NULL,
    schedule_id uuid,
    run_id uuid,
    result text COLLATE "C" NOT NULL,
    is_final boolean NOT NULL,
    agent text COLLATE "C" NOT NULL,
    project text,
    shown_at timestamptz NOT NULL,
    duration_ms bigint,
    tokens bigint,
    cost_micros bigint
);
CREATE INDEX history_of_run ON history (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX history_by_time ON history (shown_at, seq);
CREATE INDEX history_of_agent ON history (agent, shown_at, seq);
CREATE INDEX history_of_project ON history (project, shown_at, seq) WHERE project IS NOT NULL;
CREATE INDEX history_of_schedule ON history (schedule_id, shown_at, seq) WHERE schedule_id IS NOT NULL;
