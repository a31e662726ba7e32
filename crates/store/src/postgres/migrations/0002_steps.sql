-- What every transaction does, as functions: a session keeps their plans, which nothing else may be kept in (`connect.rs`).
--
-- Planned once for any number of rows, by index: as many as a step has, whatever the tables have grown to meanwhile.

-- Waits for the pen, then reads what was written since an entry that is known, that one included, and who is there.
CREATE FUNCTION take_pen(
    known_day int, known_seq bigint, locks_nodes boolean,
    OUT first_seq bigint, OUT checksum_before bigint, OUT now timestamptz,
    OUT entry_days int[], OUT entry_seqs bigint[], OUT entry_times timestamptz[], OUT entry_bodies text[],
    OUT entry_checksums bigint[],
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

    SELECT pen.first_seq, pen.checksum_before, clock_timestamp() INTO STRICT first_seq, checksum_before, now
    FROM pen FOR UPDATE;

    IF locks_nodes THEN
        PERFORM FROM nodes ORDER BY id FOR UPDATE;
    END IF;

    -- Behind the locks: a statement sees what was committed when it began.
    SELECT entries.days, entries.seqs, entries.times, entries.bodies, entries.checksums,
        peers.ids, peers.names, peers.joined_at, peers.lease_until, peers.leases, peers.agents, peers.about,
        planner.node, planner.lease_until, planner.epoch, seen.agents, seen.seen_at
    INTO entry_days, entry_seqs, entry_times, entry_bodies, entry_checksums,
        node_ids, node_names, nodes_joined_at, nodes_until, node_leases, node_agents, nodes_about,
        planner_node, planner_until, planner_epoch, agents, agents_seen_at
    FROM (
        SELECT array_agg(day - date '1970-01-01') AS days, array_agg(seq) AS seqs, array_agg(at) AS times,
            array_agg(body) AS bodies, array_agg(checksum) AS checksums
        FROM (
            SELECT day, seq, at, body, checksum
            FROM journal
            WHERE date '1970-01-01' + known_day <= day AND (date '1970-01-01' + known_day, known_seq) <= (day, seq)
            ORDER BY day, seq
        ) AS in_order
    ) AS entries
    CROSS JOIN (
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

-- Rows that are not as they were read have been touched by somebody else: the whole transaction is done again.
CREATE FUNCTION expect_rows(as_read bigint, wanted bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF as_read <> wanted THEN
        RAISE EXCEPTION '% of % rows are as they were read', as_read, wanted USING ERRCODE = 'serialization_failure';
    END IF;
END
$$;

CREATE FUNCTION insert_runs(
    uuid[], uuid[], bigint[], text[], timestamptz[], timestamptz[], timestamptz[], uuid[], uuid[], text[],
    timestamptz[], boolean[], uuid[], text[], timestamptz[], text[], bigint[], bigint[], bigint[], timestamptz[],
    timestamptz[], boolean[], boolean[], boolean[], text[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO runs (
        id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id, state, ready_at,
        resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses, started_at, ended_at, has_started,
        is_parked, is_cancelling, last_end)
    SELECT
        id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id, state, ready_at,
        resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses, started_at, ended_at, has_started,
        is_parked, is_cancelling, last_end::json
    FROM unnest(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
        $25)
        AS new (
            id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id, state, ready_at,
            resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses, started_at, ended_at, has_started,
            is_parked, is_cancelling, last_end);
END
$$;

-- The usual life of a run: it is claimed, it starts, it ends well. The state that the runs were read in, the one that they come
-- to, who owns them then and whether their work has begun; then each run, with the epoch that it was read with; and how many
-- they are. What such a run has no more is taken from it.
CREATE FUNCTION step_runs(
    text, text, uuid, boolean,
    uuid[], bigint[], bigint[], bigint[], bigint[], timestamptz[], timestamptz[], timestamptz[], text[], bigint)
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    as_read bigint;
BEGIN
    UPDATE runs
    SET
        state = $2, ready_at = NULL, resumes = false, owner = $3, wait_for = NULL, wait_until = NULL, reason = NULL,
        has_started = $4, epoch = new.epoch, attempt = new.attempt, losses = new.losses, expires_at = new.expires_at,
        started_at = new.started_at, ended_at = new.ended_at, last_end = new.last_end::json
    FROM unnest($5, $6, $7, $8, $9, $10, $11, $12, $13)
        AS new (id, old_epoch, epoch, attempt, losses, expires_at, started_at, ended_at, last_end)
    WHERE runs.id = new.id AND runs.state = $1 AND runs.epoch = new.old_epoch;
    GET DIAGNOSTICS as_read = ROW_COUNT;
    IF as_read <> $14 THEN
        PERFORM expect_rows(as_read, $14);
    END IF;
END
$$;

-- The last of them: the states and epochs that they were read with, and how many they are.
CREATE FUNCTION update_runs(
    uuid[], uuid[], bigint[], text[], timestamptz[], timestamptz[], timestamptz[], uuid[], uuid[], text[],
    timestamptz[], boolean[], uuid[], text[], timestamptz[], text[], bigint[], bigint[], bigint[], timestamptz[],
    timestamptz[], boolean[], boolean[], boolean[], text[], text[], bigint[], bigint)
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    as_read bigint;
BEGIN
    UPDATE runs
    SET
        version = new.version, scheduled_at = new.scheduled_at, due_at = new.due_at, expires_at = new.expires_at,
        follows = new.follows, terms_id = new.terms_id, state = new.state, ready_at = new.ready_at,
        resumes = new.resumes, owner = new.owner, wait_for = new.wait_for, wait_until = new.wait_until,
        reason = new.reason, attempt = new.attempt, epoch = new.epoch, losses = new.losses,
        started_at = new.started_at, ended_at = new.ended_at, has_started = new.has_started, is_parked = new.is_parked,
        is_cancelling = new.is_cancelling, last_end = new.last_end::json
    FROM unnest(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
        $25, $26, $27)
        AS new (
            id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id, state, ready_at,
            resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses, started_at, ended_at, has_started,
            is_parked, is_cancelling, last_end, old_state, old_epoch)
    WHERE runs.id = new.id AND runs.state = new.old_state AND runs.epoch = new.old_epoch;
    GET DIAGNOSTICS as_read = ROW_COUNT;
    PERFORM expect_rows(as_read, $28);
END
$$;

CREATE FUNCTION delete_runs(uuid[], bigint) RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    as_read bigint;
BEGIN
    DELETE FROM runs USING unnest($1) AS gone (id) WHERE runs.id = gone.id;
    GET DIAGNOSTICS as_read = ROW_COUNT;
    PERFORM expect_rows(as_read, $2);
END
$$;

-- What planning and starts change of schedules, and nothing else.
CREATE FUNCTION move_schedules(
    uuid[], timestamptz[], text[], bigint[], timestamptz[], text[], timestamptz[], timestamptz[], text[], bigint)
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    as_read bigint;
BEGIN
    UPDATE schedules
    SET cursor_at = new.cursor_at, cursor_reached = new.cursor_reached::json, runs_started = new.runs_started,
        plan_at = new.plan_at, zone_data = new.zone_data, outage_from = new.outage_from,
        outage_until = new.outage_until, outage_kept = new.outage_kept::json
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
        AS new (id, cursor_at, cursor_reached, runs_started, plan_at, zone_data, outage_from, outage_until, outage_kept)
    WHERE schedules.id = new.id;
    GET DIAGNOSTICS as_read = ROW_COUNT;
    PERFORM expect_rows(as_read, $10);
END
$$;

CREATE FUNCTION insert_lines(int, bigint[], timestamptz[], text[], uuid[], uuid[], text[], bigint[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO journal (day, seq, at, kind, schedule_id, run_id, body, checksum)
    SELECT date '1970-01-01' + $1, seq, at, kind, schedule_id, run_id, body, checksum
    FROM unnest($2, $3, $4, $5, $6, $7, $8) AS new (seq, at, kind, schedule_id, run_id, body, checksum);
END
$$;

-- The same for entries that are history.
CREATE FUNCTION insert_history(
    int, bigint[], timestamptz[], text[], uuid[], uuid[], text[], bigint[],
    text[], text[], text[], timestamptz[], bigint[], bigint[], bigint[], boolean[])
RETURNS void LANGUAGE plpgsql
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    INSERT INTO journal (
        day, seq, at, kind, schedule_id, run_id, body, checksum,
        verdict, agent, project, shown_at, duration_ms, tokens, cost_micros, is_final)
    SELECT date '1970-01-01' + $1, *
    FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);
END
$$;
