SELECT agent
FROM agents_seen
WHERE seen_at < ?1 AND EXISTS (SELECT 1 FROM lanes WHERE lanes.agent = agents_seen.agent)
