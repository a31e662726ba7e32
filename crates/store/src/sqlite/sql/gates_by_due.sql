SELECT id, kind, name, max, next_due_at
FROM gates
WHERE is_open = 1 AND next_due_at IS NOT NULL
ORDER BY next_due_at
LIMIT ?1 OFFSET ?2
