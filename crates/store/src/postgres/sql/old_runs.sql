-- Runs that have ended, of slots that no plan comes to any more. By the time of their slots: few that old are kept.
SELECT old.id
FROM runs AS old LEFT JOIN schedules ON schedules.id = old.schedule_id
WHERE old.ended_at <= $1 AND old.scheduled_at <= $1
    AND (schedules.cursor_at IS NULL OR old.scheduled_at <= schedules.cursor_at OR old.slot_key ~ '^[em]:')
