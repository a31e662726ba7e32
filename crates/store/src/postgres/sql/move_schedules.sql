-- What planning and starts change, and nothing else.
WITH changed AS (
    UPDATE schedules
    SET cursor_at = new.cursor_at, cursor_reached = new.cursor_reached::json, runs_started = new.runs_started,
        plan_at = new.plan_at, zone_data = new.zone_data, outage_from = new.outage_from,
        outage_until = new.outage_until, outage_kept = new.outage_kept::json
    FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::bigint[], $5::timestamptz[], $6::text[],
        $7::timestamptz[], $8::timestamptz[], $9::text[])
        AS new (id, cursor_at, cursor_reached, runs_started, plan_at, zone_data, outage_from, outage_until, outage_kept)
    WHERE schedules.id = new.id
    RETURNING 1
)
SELECT 1 / (count(*) = $10)::int FROM changed
