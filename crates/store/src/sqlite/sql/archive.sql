-- All records of a schedule but the latest.
DELETE FROM records
WHERE schedule_id = ?1
    AND seq NOT IN (SELECT seq FROM records WHERE schedule_id = ?1 ORDER BY seq DESC LIMIT ?2)
