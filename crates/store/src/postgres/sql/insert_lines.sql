INSERT INTO journal (day, seq, at, kind, schedule_id, run_id, body, checksum)
SELECT date '1970-01-01' + $1::int, seq, at, kind, schedule_id, run_id, body, checksum
FROM unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::bigint[])
    AS new (seq, at, kind, schedule_id, run_id, body, checksum)
