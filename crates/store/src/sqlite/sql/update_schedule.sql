UPDATE schedules
SET cursor_at = ?2, cursor_reached = ?3, runs_started = ?4, plan_at = ?5, zone_data = ?6, outage_from = ?7,
    outage_until = ?8, outage_kept = ?9
WHERE id = ?1
