-- The last checkpoint that is old enough, by its first part.
SELECT seq
FROM journal
WHERE kind = 'checkpoint' AND body LIKE '{"checkpoint":{"part":1,%'
    AND (SELECT first_seq FROM pen) <= seq AND at <= $1
ORDER BY day DESC, seq DESC
LIMIT 1
