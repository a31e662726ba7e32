-- What schedules are listed and searched by. They are columns, and not read off the definitions: no function of the server reads
-- a text out of JSON that has a zero character anywhere, which is good JSON. What is here already is read by its first letters.
ALTER TABLE schedules
    ADD COLUMN face text COLLATE "C" NOT NULL DEFAULT 'executions',
    ADD COLUMN agent text COLLATE "C",
    ADD COLUMN workflow text COLLATE "C",
    ADD COLUMN condition text COLLATE "C" NOT NULL DEFAULT 'active',
    ADD COLUMN description text COLLATE "C";
UPDATE schedules SET
    agent = substring(definition::text from '"work":\{"agent":\{"agent":"([^"]*)"'),
    condition = coalesce(
        substring(definition::text from '"state":\{"paused":\{"kind":"([a-z]+)"'),
        CASE WHEN definition::text LIKE '%"state":{"ended":%' THEN 'ended' ELSE 'active' END);

-- The same of the terms of runs that start workflows for schedules.
ALTER TABLE terms
    ADD COLUMN project text COLLATE "C",
    ADD COLUMN schedule text COLLATE "C",
    ADD COLUMN workflow text COLLATE "C";

-- A name belongs to one schedule of a face and project.
DROP INDEX schedules_by_name;
CREATE UNIQUE INDEX schedules_by_name ON schedules (name, face, coalesce(project, '')) WHERE name IS NOT NULL;
CREATE INDEX schedules_of_face ON schedules (face, id);
CREATE INDEX schedules_of_workflow ON schedules (workflow, id) WHERE workflow IS NOT NULL;

-- What became of workflows that schedules had started: read off the journal, by the numbers of its entries. Old ones of a schedule
-- may be let go; the journal still has them.
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

CREATE FUNCTION insert_records(
    bigint[], uuid[], uuid[], text[], text[], text[], text[], text[], text[], timestamptz[], timestamptz[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO records SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
END
$$;
