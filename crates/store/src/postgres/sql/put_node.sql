INSERT INTO nodes VALUES ($1, $2, $3, $4, $5, $6::text::json, $7::text::json)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, joined_at = excluded.joined_at, lease_until = excluded.lease_until, lease = excluded.lease,
    agents = excluded.agents, about = excluded.about
