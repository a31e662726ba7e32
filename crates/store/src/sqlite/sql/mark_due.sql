UPDATE lanes SET is_due = 1
WHERE is_due = 0 AND head_due_at <= ?1
RETURNING gate_id
