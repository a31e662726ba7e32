SELECT id, head_due_at, turn_at, agent, project, key, key_max, max_concurrent, priority
FROM lanes
WHERE gate_id = ?1 AND is_due = 0 AND head_due_at IS NOT NULL
ORDER BY head_due_at
LIMIT ?2 OFFSET ?3
