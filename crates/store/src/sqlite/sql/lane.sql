SELECT gate_id, planned, turn_at, agent, project, key, key_max, max_concurrent, priority
FROM lanes
WHERE id = ?1
