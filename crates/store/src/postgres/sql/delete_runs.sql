-- All of them have to be there: nobody else has touched them.
WITH gone AS (DELETE FROM runs WHERE id = ANY($1) RETURNING 1)
SELECT 1 / (count(*) = $2)::int FROM gone
