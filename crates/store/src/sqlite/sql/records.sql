SELECT seq, schedule_id, run_id, project, schedule, workflow, workflow_id, state, note, scheduled_at, executed_at
FROM records
UNION ALL
SELECT NULL, runs.schedule_id, runs.id, json_extract(terms.body, '$.project'),
    json_extract(terms.body, '$.work.workflow.request.started_by'), json_extract(terms.body, '$.work.workflow.request.name'),
    NULL, 'polled', NULL, runs.scheduled_at, runs.started_at
FROM runs JOIN terms ON terms.id = runs.terms_id
WHERE runs.ended_at IS NULL AND 1 <= runs.attempt
    AND json_extract(terms.body, '$.work.workflow.request.started_by') IS NOT NULL
