SELECT seq, at, body, checksum
FROM journal
WHERE coalesce((SELECT max(day) FROM journal_days WHERE first_seq <= $1), '-infinity') <= day
    AND greatest($1, (SELECT first_seq - 1 FROM pen)) < seq
ORDER BY day, seq
LIMIT $2
