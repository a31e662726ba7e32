-- The journal is the truth: whoever writes appends to it, one transaction at a time. History, subjects and records are written
-- with it, so that it can be searched; the snapshot follows, so that a process starts quickly; the base is what it stands on.

-- The pen: who writes holds its one row. It also says where the journal begins.
CREATE TABLE pen (
    one boolean PRIMARY KEY CHECK (one),
    -- The first entry that is kept, and the checksum of the one before it.
    first_seq bigint NOT NULL CHECK (1 <= first_seq),
    checksum_before bigint NOT NULL
);
INSERT INTO pen VALUES (true, 1, 0);

-- What happened: entries from one number to another, one a line in both texts.
CREATE TABLE journal (
    first bigint PRIMARY KEY,
    last bigint NOT NULL CHECK (first <= last),
    -- When the last of them was written.
    at timestamptz NOT NULL,
    -- Of the last entry: over the one before, the number, the time and the texts.
    checksum bigint NOT NULL,
    -- What applying them needs.
    change text NOT NULL,
    -- What else they say. Who follows does not read it.
    detail text NOT NULL
);
-- It is read more often than it would be worth to make it smaller.
ALTER TABLE journal ALTER COLUMN change SET STORAGE EXTERNAL;

-- Entries that are history: how something ended, when it began or was scheduled, and what it came to.
CREATE TABLE history (
    seq bigint PRIMARY KEY,
    run_id uuid,
    schedule_id uuid,
    verdict text COLLATE "C" NOT NULL,
    -- Whether it is the last word about its run or its slots.
    is_final boolean NOT NULL,
    agent text COLLATE "C" NOT NULL,
    project text COLLATE "C",
    shown_at timestamptz NOT NULL,
    duration_ms bigint,
    -- How long after its time the first attempt began.
    late_ms bigint,
    tokens bigint,
    cost_micros bigint
);
CREATE INDEX history_of_run ON history (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX history_by_time ON history (shown_at, seq);
CREATE INDEX history_of_agent ON history (agent, shown_at, seq);
CREATE INDEX history_of_project ON history (project, shown_at, seq) WHERE project IS NOT NULL;
CREATE INDEX history_of_schedule ON history (schedule_id, shown_at, seq) WHERE schedule_id IS NOT NULL;

-- Entries that are looked up under the id of a schedule or a run.
CREATE TABLE subjects (
    subject uuid,
    seq bigint,
    PRIMARY KEY (subject, seq)
);

-- What became of workflows that schedules had started. Old ones of a schedule may be let go; the journal still has them.
CREATE TABLE records (
    seq bigint PRIMARY KEY,
    schedule_id uuid,
    run_id uuid,
    project text COLLATE "C",
    -- The name of the schedule, which may be gone.
    schedule text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    workflow_id text COLLATE "C",
    state text COLLATE "C" NOT NULL,
    -- Why it was not started.
    note text COLLATE "C",
    scheduled_at timestamptz NOT NULL,
    executed_at timestamptz NOT NULL
);
CREATE INDEX records_of_schedule ON records (schedule_id, seq);
CREATE INDEX records_by_name ON records (schedule, scheduled_at, seq);
CREATE INDEX records_by_time ON records (scheduled_at, seq);

-- What was answered to requests that may come again, by their keys. Kept for a day, and not in the journal.
CREATE TABLE answers (
    key text PRIMARY KEY,
    digest bigint NOT NULL,
    subject uuid NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX answers_by_time ON answers (at);

-- What runs have printed, the end of each attempt. Kept for a week, and not in the journal.
CREATE TABLE output (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL,
    epoch bigint NOT NULL,
    attempt bigint NOT NULL,
    stream text NOT NULL,
    at timestamptz NOT NULL,
    -- How many bytes the attempt had printed behind it.
    ends_at bigint NOT NULL,
    text text NOT NULL
);
CREATE UNIQUE INDEX output_once ON output (run_id, epoch, ends_at);
CREATE INDEX output_of_run ON output (run_id, seq);
CREATE INDEX output_by_time ON output (at);

-- When somebody last came with a token. Not in the journal.
CREATE TABLE tokens_used (
    id uuid PRIMARY KEY,
    used_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE nodes (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    joined_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    -- How long its lease is, in milliseconds.
    lease bigint NOT NULL CHECK (0 < lease),
    agents json NOT NULL,
    about json NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE planner (
    one boolean PRIMARY KEY CHECK (one),
    node uuid NOT NULL,
    lease_until timestamptz NOT NULL,
    epoch bigint NOT NULL CHECK (0 <= epoch)
) WITH (fillfactor = 50);

-- When a node last said that it has an agent.
CREATE TABLE agents_seen (
    agent text COLLATE "C" PRIMARY KEY,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The snapshot: everything as it was behind one entry. It follows the journal, and who brings it further holds its one row.
CREATE TABLE snapshot (
    one boolean PRIMARY KEY CHECK (one),
    seq bigint NOT NULL CHECK (0 <= seq)
) WITH (fillfactor = 50);
INSERT INTO snapshot VALUES (true, 0);

CREATE TABLE schedules (
    id uuid PRIMARY KEY,
    version bigint NOT NULL,
    name text,
    project text,
    -- The schedule as JSON, apart from how far it has come.
    definition text NOT NULL
);

-- How far schedules have come.
CREATE TABLE progress (
    id uuid PRIMARY KEY,
    -- When planning has something to do.
    plan_at timestamptz,
    progress text NOT NULL
) WITH (fillfactor = 70);

-- The runs that are not over. The terms are there where they are not those of the schedule's version.
CREATE TABLE runs (
    id uuid PRIMARY KEY,
    schedule_id uuid,
    state text NOT NULL,
    body text NOT NULL,
    terms text
) WITH (fillfactor = 70);

-- Days, outages, tokens, and above what every epoch is.
CREATE TABLE rest (
    one boolean PRIMARY KEY CHECK (one),
    body text NOT NULL
);
INSERT INTO rest VALUES (true, '{"days":{},"epoch_floor":0,"tokens":{}}');

-- The base: the same, as it was before the first entry that is kept. Who prunes holds the one row of the rest.
CREATE TABLE base_schedules (LIKE schedules INCLUDING ALL);
CREATE TABLE base_progress (LIKE progress INCLUDING ALL);
CREATE TABLE base_runs (LIKE runs INCLUDING ALL);
CREATE INDEX base_runs_of_schedule ON base_runs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE TABLE base_rest (LIKE rest INCLUDING ALL);
INSERT INTO base_rest SELECT * FROM rest;

-- What the history up to the entry of the snapshot comes to, by day: written with the snapshot, so that nobody has to scan the history.
CREATE TABLE sums (
    -- The first instant of the day, in UTC.
    shown_at timestamptz NOT NULL,
    agent text COLLATE "C" NOT NULL,
    -- Empty if there is none.
    project text COLLATE "C" NOT NULL,
    verdict text COLLATE "C" NOT NULL,
    is_final boolean NOT NULL,
    -- Rows of history, and those of them that are attempts that began. What follows is of attempts.
    marks bigint NOT NULL,
    attempts bigint NOT NULL,
    duration_ms numeric NOT NULL,
    tokens numeric NOT NULL,
    cost_micros numeric NOT NULL,
    -- First attempts, by how long after their time they began.
    late_10ms bigint NOT NULL,
    late_100ms bigint NOT NULL,
    late_1s bigint NOT NULL,
    late_10s bigint NOT NULL,
    late_1min bigint NOT NULL,
    late_10min bigint NOT NULL,
    late_more bigint NOT NULL,
    PRIMARY KEY (shown_at, agent, project, verdict, is_final)
) WITH (fillfactor = 70);

-- The same, for each schedule.
CREATE TABLE schedule_sums (LIKE sums INCLUDING STORAGE, schedule_id uuid) WITH (fillfactor = 70);
ALTER TABLE schedule_sums ADD PRIMARY KEY (shown_at, schedule_id, agent, project, verdict, is_final);
