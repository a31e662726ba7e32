WITH renewed AS (
    UPDATE nodes SET lease_until = $2, lease = $3, agents = $4::text::json, about = $7::text::json WHERE id = $1 RETURNING id
), seen AS (
    INSERT INTO agents_seen
    SELECT agent, $6 FROM unnest($5::text[]) AS agent WHERE EXISTS (SELECT 1 FROM renewed) ORDER BY agent
    ON CONFLICT (agent) DO UPDATE SET seen_at = excluded.seen_at
)
SELECT id, clock_timestamp() FROM renewed
