INSERT INTO agents_seen SELECT * FROM unnest($1::text[], $2::timestamptz[])
ON CONFLICT (agent) DO UPDATE SET seen_at = excluded.seen_at
