UPDATE schedules
SET cursor = ?2, runs_started = ?3, plan_at = ?4, zone_data = ?5, outage_from = ?6, outage_until = ?7, outage_kept = ?8
WHERE id = ?1
