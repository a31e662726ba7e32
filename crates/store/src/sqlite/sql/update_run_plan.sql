-- What planning changes, and nothing else does.
UPDATE runs
SET version = ?2, scheduled_at = ?3, due_at = ?4, follows = ?5, terms_id = ?6
WHERE id = ?1
