INSERT INTO runs (id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id,
    state, ready_at, resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses,
    started_at, ended_at, has_started, is_parked, is_cancelling, last_end)
SELECT id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id,
    state, ready_at, resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses,
    started_at, ended_at, has_started, is_parked, is_cancelling, last_end::json
FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
    $8::uuid[], $9::uuid[], $10::text[], $11::timestamptz[], $12::boolean[], $13::uuid[], $14::text[], $15::timestamptz[],
    $16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::timestamptz[], $21::timestamptz[], $22::boolean[],
    $23::boolean[], $24::boolean[], $25::text[])
    AS new (id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id,
        state, ready_at, resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses,
        started_at, ended_at, has_started, is_parked, is_cancelling, last_end)
