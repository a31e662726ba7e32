SELECT id, ready_at
FROM runs
WHERE lane_id IN (SELECT id FROM lanes WHERE agent = ?1)
    AND state = 'planned' AND is_blocked IN (0, 1) AND ready_at <= ?2
ORDER BY ready_at, id
LIMIT ?3
