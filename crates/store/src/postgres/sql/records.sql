SELECT seq, schedule_id, run_id, project, schedule, workflow, workflow_id, state, note, scheduled_at, executed_at
FROM records
UNION ALL
SELECT NULL, runs.schedule_id, runs.id, (terms.body::json ->> 'project') COLLATE "C",
    (terms.body::json #>> '{work,workflow,request,started_by}') COLLATE "C",
    (terms.body::json #>> '{work,workflow,request,name}') COLLATE "C",
    NULL, 'polled', NULL, runs.scheduled_at, runs.started_at
FROM runs JOIN terms ON terms.id = runs.terms_id
WHERE runs.ended_at IS NULL AND 1 <= runs.attempt
    AND terms.body::json #>> '{work,workflow,request,started_by}' IS NOT NULL
