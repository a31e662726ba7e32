UPDATE lanes
SET planned = ?2, turn_at = ?3, head_due_at = ?4, rank = ?5, is_due = ?6
WHERE id = ?1
