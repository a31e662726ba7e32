SELECT *
FROM runs
WHERE state = 'planned' AND expires_at < ?1
ORDER BY expires_at, id
LIMIT ?2
