SELECT id, kind, name, max, best_rank
FROM gates
WHERE is_open = 1 AND best_rank IS NOT NULL
ORDER BY best_rank
LIMIT ?1 OFFSET ?2
