SELECT seq, at, body, checksum
FROM journal
WHERE max(?1, (SELECT first_seq FROM head) - 1) < seq
ORDER BY seq
LIMIT ?2
