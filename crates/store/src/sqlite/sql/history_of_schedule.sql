SELECT seq, at, body, checksum
FROM journal
WHERE schedule_id = ?2 AND seq < ?1 AND (SELECT first_seq FROM head) <= seq
    AND kind IN ('attempt_ended', 'run_changed', 'skipped')
ORDER BY seq DESC
