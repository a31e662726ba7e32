SELECT *
FROM runs
WHERE state = 'waiting' AND wait_for = ?5
    AND ?1 < scheduled_at AND scheduled_at <= ?2
    AND (?3 IS NULL OR schedule_id = ?3)
ORDER BY scheduled_at, id
LIMIT ?4
