SELECT count(*), count(*) FILTER (WHERE has_started = 0)
FROM runs
WHERE schedule_id = ?1 AND ended_at IS NULL
