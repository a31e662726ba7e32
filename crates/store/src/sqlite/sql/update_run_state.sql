-- What changes over a run's life.
UPDATE runs
SET expires_at = ?2, state = ?3, ready_at = ?4, resumes = ?5, owner = ?6, wait_for = ?7, wait_until = ?8, reason = ?9,
    attempt = ?10, epoch = ?11, losses = ?12, started_at = ?13, ended_at = ?14, has_started = ?15, is_parked = ?16,
    is_cancelling = ?17, last_end = ?18
WHERE id = ?1
