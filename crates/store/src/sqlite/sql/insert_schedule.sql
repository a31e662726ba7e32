INSERT INTO schedules (id, version, name, project, zone, definition, cursor_at, cursor_reached, runs_started, plan_at,
    zone_data, outage_from, outage_until, outage_kept)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
