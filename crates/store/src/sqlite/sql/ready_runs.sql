-- The runs of a lane that are due and not blocked.
SELECT id, ready_at, schedule_id, overlap = 'queue' OR is_parked = 1
FROM runs
WHERE lane_id = ?1 AND state = 'planned' AND is_blocked = 0 AND ready_at <= ?2
ORDER BY ready_at, id
LIMIT ?3 OFFSET ?4
