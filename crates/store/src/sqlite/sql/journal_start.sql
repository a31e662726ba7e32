-- The last checkpoint that is old enough, by its first part.
SELECT seq
FROM journal
WHERE kind = 'checkpoint' AND json_extract(body, '$.checkpoint.part') = 1
    AND (SELECT first_seq FROM head) <= seq AND at <= ?1
ORDER BY seq DESC
LIMIT 1
