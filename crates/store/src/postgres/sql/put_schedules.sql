INSERT INTO schedules (id, version, name, project, zone, definition, cursor_at, cursor_reached, runs_started, plan_at, zone_data,
    outage_from, outage_until, outage_kept, face, agent, workflow, condition, description)
SELECT id, version, name, project, zone, definition::json, cursor_at, cursor_reached::json, runs_started, plan_at, zone_data,
    outage_from, outage_until, outage_kept::json, face, agent, workflow, condition, description
FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::bigint[], $5::timestamptz[], $6::text[], $7::timestamptz[],
    $8::timestamptz[], $9::text[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[],
    $15::text[], $16::text[], $17::text[], $18::text[], $19::text[])
    AS new (id, cursor_at, cursor_reached, runs_started, plan_at, zone_data, outage_from, outage_until, outage_kept,
        version, name, project, zone, definition, face, agent, workflow, condition, description)
ON CONFLICT (id) DO UPDATE
SET version = excluded.version, name = excluded.name, project = excluded.project, zone = excluded.zone, definition = excluded.definition, cursor_at = excluded.cursor_at,
    cursor_reached = excluded.cursor_reached, runs_started = excluded.runs_started, plan_at = excluded.plan_at,
    zone_data = excluded.zone_data, outage_from = excluded.outage_from, outage_until = excluded.outage_until,
    outage_kept = excluded.outage_kept,
    face = excluded.face, agent = excluded.agent, workflow = excluded.workflow, condition = excluded.condition,
    description = excluded.description
