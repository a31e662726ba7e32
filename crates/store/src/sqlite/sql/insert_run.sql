INSERT INTO runs (id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, terms_id,
    state, ready_at, resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses,
    started_at, ended_at, has_started, is_parked, is_cancelling, last_end)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25)
