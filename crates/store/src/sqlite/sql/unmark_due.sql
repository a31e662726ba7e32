-- Only after the clock has gone back.
UPDATE lanes SET is_due = 0
WHERE is_due = 1 AND head_due_at > ?1
RETURNING gate_id
