WITH found (id) AS (
    SELECT id FROM runs INDEXED BY runs_live WHERE schedule_id = ?1 AND state = 'planned' AND ended_at IS NULL
    UNION SELECT id FROM runs INDEXED BY runs_of_schedule WHERE schedule_id = ?1 AND scheduled_at > ?2
)
SELECT runs.*
FROM found CROSS JOIN runs ON runs.id = found.id
ORDER BY due_at, runs.id
