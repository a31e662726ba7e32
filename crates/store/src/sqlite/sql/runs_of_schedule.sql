SELECT *
FROM runs
WHERE schedule_id = ?5 AND ?1 < scheduled_at AND scheduled_at <= ?2
    AND NOT (?3 AND ended_at IS NOT NULL)
ORDER BY scheduled_at, id
LIMIT ?4
