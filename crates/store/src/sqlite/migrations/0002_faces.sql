-- What schedules are listed and searched by: read off their definitions, so that both never disagree.
ALTER TABLE schedules ADD COLUMN face TEXT NOT NULL
    GENERATED ALWAYS AS (ifnull(json_extract(definition, '$.face'), 'executions')) VIRTUAL;
ALTER TABLE schedules ADD COLUMN agent TEXT
    GENERATED ALWAYS AS (ifnull(json_extract(definition, '$.work.agent.agent'), json_extract(definition, '$.work.workflow.agent')))
    VIRTUAL;
ALTER TABLE schedules ADD COLUMN workflow TEXT
    GENERATED ALWAYS AS (json_extract(definition, '$.work.workflow.request.name')) VIRTUAL;
ALTER TABLE schedules ADD COLUMN condition TEXT NOT NULL
    GENERATED ALWAYS AS (CASE
        WHEN json_extract(definition, '$.state.paused.kind') IS NOT NULL THEN json_extract(definition, '$.state.paused.kind')
        WHEN json_extract(definition, '$.state.ended') IS NOT NULL THEN 'ended'
        ELSE 'active' END) VIRTUAL;
ALTER TABLE schedules ADD COLUMN description TEXT
    GENERATED ALWAYS AS (json_extract(definition, '$.description')) VIRTUAL;

-- A name belongs to one schedule of a face and project.
DROP INDEX schedules_by_name;
CREATE UNIQUE INDEX schedules_by_name ON schedules (name, face, ifnull(project, '')) WHERE name IS NOT NULL;
CREATE INDEX schedules_of_face ON schedules (face, id);
CREATE INDEX schedules_of_workflow ON schedules (workflow, id) WHERE workflow IS NOT NULL;

-- What became of workflows that schedules had started: read off the journal, by the numbers of its entries. Old ones of a schedule
-- may be let go; the journal still has them.
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
CREATE INDEX records_of_schedule ON records (schedule_id, seq);
CREATE INDEX records_by_name ON records (schedule, scheduled_at, seq);
CREATE INDEX records_by_time ON records (scheduled_at, seq);

-- Workflows that are being started.
CREATE INDEX runs_begun ON runs (scheduled_at, id) WHERE ended_at IS NULL AND 1 <= attempt;
