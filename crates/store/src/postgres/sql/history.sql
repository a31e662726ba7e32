SELECT seq, at, body, checksum
FROM journal
WHERE day <= coalesce((SELECT max(day) FROM journal_days WHERE first_seq < $1), '-infinity')
    AND seq < $1 AND (SELECT first_seq FROM pen) <= seq
    AND kind IN ('attempt_ended', 'run_changed', 'skipped')
ORDER BY day DESC, seq DESC
LIMIT $4
