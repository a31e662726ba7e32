-- What schedules are listed and searched by: read off their definitions, so that both never disagree.
ALTER TABLE schedules
    ADD COLUMN face text COLLATE "C" NOT NULL GENERATED ALWAYS AS (coalesce(definition ->> 'face', 'executions')) STORED,
    ADD COLUMN agent text COLLATE "C"
        GENERATED ALWAYS AS (coalesce(definition #>> '{work,agent,agent}', definition #>> '{work,workflow,agent}')) STORED,
    ADD COLUMN workflow text COLLATE "C" GENERATED ALWAYS AS (definition #>> '{work,workflow,request,name}') STORED,
    ADD COLUMN condition text COLLATE "C" NOT NULL GENERATED ALWAYS AS (CASE
        WHEN definition #>> '{state,paused,kind}' IS NOT NULL THEN definition #>> '{state,paused,kind}'
        WHEN definition #>> '{state,ended}' IS NOT NULL THEN 'ended'
        ELSE 'active' END) STORED,
    ADD COLUMN description text COLLATE "C" GENERATED ALWAYS AS (definition ->> 'description') STORED;

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
