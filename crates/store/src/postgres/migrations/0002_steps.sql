-- What is done all the time, as functions: a session keeps their plans, which nothing else may be kept in (`connect.rs`).
--
-- Planned once for any number of rows, by index, whatever the tables have grown to meanwhile.

-- Where the journal begins, and its rows from the one that ends with an entry that is known. That one comes without its changes.
CREATE FUNCTION follow(
    known bigint, rows_max bigint,
    OUT first_seq bigint, OUT checksum_before bigint,
    OUT firsts bigint[], OUT lasts bigint[], OUT times timestamptz[], OUT changes text[], OUT checksums bigint[])
LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    SELECT pen.first_seq, pen.checksum_before, rows.firsts, rows.lasts, rows.times, rows.changes, rows.checksums
    INTO STRICT first_seq, checksum_before, firsts, lasts, times, changes, checksums
    FROM pen CROSS JOIN (
        SELECT array_agg(first) AS firsts, array_agg(last) AS lasts, array_agg(at) AS times,
            array_agg(CASE WHEN last <> known THEN change END) AS changes, array_agg(checksum) AS checksums
        FROM (
            SELECT first, last, at, change, checksum
            FROM journal
            WHERE coalesce((SELECT max(first) FROM journal WHERE first <= known), 0) <= first
            ORDER BY first
            LIMIT rows_max
        ) AS in_order
    ) AS rows;
END
$$;

-- Waits for the pen, then reads what was written since an entry that is known, so many rows at most, and who is there.
CREATE FUNCTION take_pen(
    known bigint, rows_max bigint, locks_nodes boolean,
    OUT first_seq bigint, OUT checksum_before bigint,
    OUT firsts bigint[], OUT lasts bigint[], OUT times timestamptz[], OUT changes text[], OUT checksums bigint[],
    OUT now timestamptz,
    OUT node_ids uuid[], OUT node_names text[], OUT nodes_joined_at timestamptz[], OUT nodes_until timestamptz[],
    OUT node_leases bigint[], OUT node_agents text[], OUT nodes_about text[],
    OUT planner_node uuid, OUT planner_until timestamptz, OUT planner_epoch bigint,
    OUT agents text[], OUT agents_seen_at timestamptz[])
LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    -- The limits of the transaction: none waits for ever, and none that is left alone keeps the pen.
    PERFORM set_config('lock_timeout', '5s', true), set_config('statement_timeout', '300s', true),
        set_config('idle_in_transaction_session_timeout', '3s', true);

    PERFORM FROM pen FOR UPDATE;
    now := clock_timestamp();

    IF locks_nodes THEN
        PERFORM FROM nodes ORDER BY id FOR UPDATE;
    END IF;

    -- Behind the locks: a statement sees what was committed when it began.
    SELECT * INTO STRICT first_seq, checksum_before, firsts, lasts, times, changes, checksums FROM follow(known, rows_max);

    SELECT peers.ids, peers.names, peers.joined_at, peers.lease_until, peers.leases, peers.agents, peers.about,
        planner.node, planner.lease_until, planner.epoch, seen.agents, seen.seen_at
    INTO node_ids, node_names, nodes_joined_at, nodes_until, node_leases, node_agents, nodes_about,
        planner_node, planner_until, planner_epoch, agents, agents_seen_at
    FROM (
        SELECT array_agg(nodes.id) AS ids, array_agg(nodes.name) AS names, array_agg(nodes.joined_at) AS joined_at,
            array_agg(nodes.lease_until) AS lease_until, array_agg(nodes.lease) AS leases,
            array_agg(nodes.agents::text) AS agents, array_agg(nodes.about::text) AS about
        FROM nodes
    ) AS peers
    CROSS JOIN (
        SELECT array_agg(agents_seen.agent) AS agents, array_agg(agents_seen.seen_at) AS seen_at FROM agents_seen
    ) AS seen
    LEFT JOIN planner ON true;
END
$$;

CREATE FUNCTION append_journal(bigint[], bigint[], timestamptz[], bigint[], text[], text[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO journal (first, last, at, checksum, change, detail) SELECT * FROM unnest($1, $2, $3, $4, $5, $6);
END
$$;

CREATE FUNCTION append_history(
    bigint[], uuid[], uuid[], text[], boolean[], text[], text[], timestamptz[], bigint[], bigint[], bigint[],
    bigint[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO history (
        seq, run_id, schedule_id, verdict, is_final, agent, project, shown_at, duration_ms, late_ms, tokens,
        cost_micros)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
END
$$;

CREATE FUNCTION append_subjects(uuid[], bigint[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO subjects (subject, seq) SELECT * FROM unnest($1, $2);
END
$$;

CREATE FUNCTION append_records(
    bigint[], uuid[], uuid[], text[], text[], text[], text[], text[], text[], timestamptz[], timestamptz[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO records (
        seq, schedule_id, run_id, project, schedule, workflow, workflow_id, state, note, scheduled_at, executed_at)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
END
$$;

-- The history that the sums do not have yet: found by its numbers, which are few, whatever the statistics say.
CREATE FUNCTION read_unsummed() RETURNS SETOF history LANGUAGE plpgsql STABLE
SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN QUERY SELECT * FROM history WHERE (SELECT snapshot.seq FROM snapshot) < history.seq;
END
$$;
CREATE VIEW unsummed AS SELECT * FROM read_unsummed();
