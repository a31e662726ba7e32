SELECT id, rank, turn_at, agent, project, key, key_max, max_concurrent, priority
FROM lanes
WHERE gate_id = ?1 AND is_due = 1
ORDER BY rank, agent, project, key, key_max, max_concurrent, priority
LIMIT ?2 OFFSET ?3
