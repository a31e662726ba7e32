SELECT *
FROM runs
WHERE id IN (
    SELECT id FROM runs WHERE schedule_id = ?1 AND state = 'planned' AND ended_at IS NULL
    UNION SELECT id FROM runs WHERE schedule_id = ?1 AND scheduled_at > ?2
)
ORDER BY due_at, id
