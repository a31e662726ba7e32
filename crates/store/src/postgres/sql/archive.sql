-- All records but the latest, of schedules that have too many.
WITH crowded AS (
    SELECT schedule_id FROM records
    WHERE schedule_id IS NOT NULL AND ($1::uuid[] IS NULL OR schedule_id = ANY($1))
    GROUP BY schedule_id HAVING $3 < count(*)
), gone AS (
    DELETE FROM records USING crowded
    WHERE records.schedule_id = crowded.schedule_id
        AND records.seq NOT IN (
            SELECT latest.seq FROM records AS latest
            WHERE latest.schedule_id = crowded.schedule_id ORDER BY latest.seq DESC LIMIT $2)
    RETURNING 1
)
SELECT count(*) FROM gone
