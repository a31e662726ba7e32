INSERT INTO journal (seq, at, kind, schedule_id, run_id, body, checksum, verdict, agent, project, shown_at, duration_ms, tokens,
    cost_micros, is_final)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
