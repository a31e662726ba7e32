-- The rows of the journal with the entries behind a number, so many at most: they have no gaps.
SELECT first, last, at, checksum, change, detail
FROM journal, (SELECT greatest($1, first_seq - 1) AS seq FROM pen) AS known
WHERE coalesce((SELECT max(first) FROM journal WHERE first <= known.seq + 1), 0) <= first
    AND first <= known.seq + $2
ORDER BY first
