-- The definition of a schedule. What planning and starts change follows in a statement of its own.
INSERT INTO schedules (id, version, name, project, zone, definition, cursor_at, cursor_reached, runs_started, zone_data)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, '{}', 0, '')
ON CONFLICT (id) DO UPDATE
SET version = excluded.version, name = excluded.name, project = excluded.project, zone = excluded.zone,
    definition = excluded.definition
