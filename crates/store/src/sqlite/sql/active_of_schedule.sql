SELECT id
FROM runs
WHERE schedule_id = ?1 AND ended_at IS NULL AND state IN ('claimed', 'running', 'waiting')
