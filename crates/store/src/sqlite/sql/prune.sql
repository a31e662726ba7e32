DELETE FROM journal
WHERE seq IN (SELECT seq FROM journal WHERE seq < (SELECT first_seq FROM head) ORDER BY seq LIMIT ?1)
