SELECT seq, schedule_id, run_id, project, schedule, workflow, workflow_id, state, note, scheduled_at, executed_at
FROM records
UNION ALL
SELECT NULL, runs.schedule_id, runs.id, terms.project, terms.schedule, terms.workflow, NULL, 'polled', NULL,
    runs.scheduled_at, runs.started_at
FROM runs JOIN terms ON terms.id = runs.terms_id
WHERE runs.ended_at IS NULL AND 1 <= runs.attempt AND terms.schedule IS NOT NULL
