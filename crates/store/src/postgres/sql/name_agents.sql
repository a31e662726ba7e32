INSERT INTO agents_seen SELECT * FROM unnest($1::text[], $2::timestamptz[]) ON CONFLICT DO NOTHING
