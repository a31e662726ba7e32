-- Each has to be as it was read: nobody else has touched it.
WITH changed AS (
    UPDATE runs
    SET version = new.version, scheduled_at = new.scheduled_at, due_at = new.due_at, expires_at = new.expires_at,
        follows = new.follows, terms_id = new.terms_id, state = new.state, ready_at = new.ready_at, resumes = new.resumes,
        owner = new.owner, wait_for = new.wait_for, wait_until = new.wait_until, reason = new.reason,
        attempt = new.attempt, epoch = new.epoch, losses = new.losses, started_at = new.started_at,
        ended_at = new.ended_at, has_started = new.has_started, is_parked = new.is_parked,
        is_cancelling = new.is_cancelling, last_end = new.last_end::json
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
        $8::uuid[], $9::uuid[], $10::text[], $11::timestamptz[], $12::boolean[], $13::uuid[], $14::text[],
        $15::timestamptz[], $16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::timestamptz[],
        $21::timestamptz[], $22::boolean[], $23::boolean[], $24::boolean[], $25::text[], $26::text[], $27::bigint[])
        AS new (id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id,
            state, ready_at, resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses,
            started_at, ended_at, has_started, is_parked, is_cancelling, last_end, old_state, old_epoch)
    WHERE runs.id = new.id AND runs.state = new.old_state AND runs.epoch = new.old_epoch
    RETURNING 1
)
SELECT 1 / (count(*) = $28)::int FROM changed
