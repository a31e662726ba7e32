-- The runs of a schedule that are at work, or parked.
SELECT *
FROM runs
WHERE schedule_id = ?1 AND ended_at IS NULL AND (state IN ('claimed', 'running', 'waiting')
    OR state = 'planned' AND is_parked = 1)
