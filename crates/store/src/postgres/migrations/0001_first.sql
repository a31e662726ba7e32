-- Rows say what is, the journal says what happened; both change in one transaction, one transaction at a time.

-- The pen: who writes holds its one row. It also says where the journal begins.
CREATE TABLE pen (
    one boolean PRIMARY KEY CHECK (one),
    epoch_floor bigint NOT NULL CHECK (0 <= epoch_floor),
    -- The first entry that counts, and the checksum of the one before it.
    first_seq bigint NOT NULL CHECK (1 <= first_seq),
    checksum_before bigint NOT NULL
);
INSERT INTO pen VALUES (true, 0, 1, 0);

-- What happened. A day is a partition, and retention drops whole ones. Days only go forward, whatever clocks say.
CREATE TABLE journal (
    day date NOT NULL,
    seq bigint NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    schedule_id uuid,
    run_id uuid,
    body text NOT NULL,
    -- Over the entry before, the number, the time and the body.
    checksum bigint NOT NULL,
    -- What the body says, for what is history: how it ended, when it began or was scheduled, and what it came to.
    verdict text COLLATE "C",
    -- Whether it is the last word about its run or its slots.
    is_final boolean,
    agent text COLLATE "C",
    project text,
    shown_at timestamptz,
    duration_ms bigint,
    tokens bigint,
    cost_micros bigint,
    PRIMARY KEY (day, seq)
) PARTITION BY RANGE (day);
CREATE INDEX journal_by_run ON journal (run_id, day, seq) WHERE run_id IS NOT NULL;
CREATE INDEX journal_by_schedule ON journal (schedule_id, day, seq) WHERE schedule_id IS NOT NULL;
CREATE INDEX history_by_time ON journal (shown_at, seq) WHERE verdict IS NOT NULL;
CREATE INDEX history_of_agent ON journal (agent, shown_at, seq) WHERE verdict IS NOT NULL;
CREATE INDEX history_of_project ON journal (project, shown_at, seq) WHERE verdict IS NOT NULL AND project IS NOT NULL;
CREATE INDEX history_of_schedule ON journal (schedule_id, shown_at, seq)
    WHERE verdict IS NOT NULL AND schedule_id IS NOT NULL;
CREATE INDEX journal_checkpoints ON journal (day, seq) WHERE kind = 'checkpoint';

-- The partitions of the journal, and where each begins.
CREATE TABLE journal_days (
    day date PRIMARY KEY,
    first_seq bigint NOT NULL UNIQUE
);

CREATE TABLE schedules (
    id uuid PRIMARY KEY,
    version bigint NOT NULL CHECK (0 <= version),
    name text,
    project text,
    zone text COLLATE "C" NOT NULL,
    -- The schedule as JSON, apart from its cursor and its count: those change with every plan and every start.
    definition json NOT NULL,
    -- How far its slots are answered: an instant, and what the clocks of its zones showed there.
    cursor_at timestamptz NOT NULL,
    cursor_reached json NOT NULL,
    runs_started bigint NOT NULL CHECK (0 <= runs_started),
    -- When planning has something to do.
    plan_at timestamptz,
    -- The version of the zone data that the plan was made with.
    zone_data text NOT NULL,
    -- What is left of an outage that has to be made up for.
    outage_from timestamptz,
    outage_until timestamptz,
    outage_kept json,
    CHECK ((outage_from IS NULL) = (outage_until IS NULL)),
    CHECK (outage_kept IS NULL OR outage_from IS NOT NULL)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX schedules_by_name ON schedules (name, coalesce(project, '')) WHERE name IS NOT NULL;
-- Ids of runs name their schedule by the last half of its id.
CREATE UNIQUE INDEX schedules_by_tail ON schedules (substring(uuid_send(id) FROM 9));
CREATE INDEX schedules_to_plan ON schedules (plan_at) WHERE plan_at IS NOT NULL;
CREATE INDEX schedules_after_outage ON schedules (outage_until) WHERE outage_until IS NOT NULL;
CREATE INDEX schedules_by_zone_data ON schedules (zone_data);
CREATE INDEX schedules_by_zone ON schedules (zone);

-- The terms of runs, by a digest of them: those of one schedule share theirs.
CREATE TABLE terms (
    id uuid PRIMARY KEY,
    body text NOT NULL
);

-- Few indexes, none on what a run's life changes but its end: each step is one row in its page. Who claims looks into the
-- mirror, not here. No CHECKs: every step would pay for all of them, and whoever reads a row refuses what contradicts itself.
CREATE TABLE runs (
    id uuid PRIMARY KEY,
    -- The schedule may be gone while its runs are still at work.
    schedule_id uuid,
    version bigint NOT NULL,
    slot_key text NOT NULL,
    scheduled_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    expires_at timestamptz,
    follows uuid,
    terms_id uuid NOT NULL,
    state text NOT NULL,
    -- When it may be claimed.
    ready_at timestamptz,
    resumes boolean NOT NULL,
    owner uuid,
    wait_for text,
    wait_until timestamptz,
    -- Why it failed, or was skipped.
    reason text,
    attempt bigint NOT NULL,
    epoch bigint NOT NULL,
    losses bigint NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    has_started boolean NOT NULL,
    is_parked boolean NOT NULL,
    is_cancelling boolean NOT NULL,
    -- How its last attempt ended.
    last_end json
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX runs_by_slot ON runs (schedule_id, slot_key) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_by_time ON runs (scheduled_at, id);
CREATE INDEX runs_of_schedule ON runs (schedule_id, scheduled_at, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_waiting ON runs (wait_for, scheduled_at, id) WHERE state = 'waiting';
CREATE INDEX runs_live ON runs (schedule_id) WHERE ended_at IS NULL;

-- The last day that has begun, by zone.
CREATE TABLE days (
    zone text COLLATE "C" PRIMARY KEY,
    date text NOT NULL
);

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

-- Who may come over the API. When somebody last did is not in the journal.
CREATE TABLE tokens (
    id uuid PRIMARY KEY,
    body json NOT NULL,
    used_at timestamptz
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
