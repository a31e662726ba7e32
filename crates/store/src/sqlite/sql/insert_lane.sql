INSERT INTO lanes (agent, project, key, key_max, max_concurrent, priority, gate_id, planned, is_due)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)
