-- When the first run of a lane that nothing blocks is due.
SELECT ready_at
FROM runs
WHERE lane_id = ?1 AND state = 'planned' AND is_blocked = 0
ORDER BY ready_at, id
LIMIT 1
