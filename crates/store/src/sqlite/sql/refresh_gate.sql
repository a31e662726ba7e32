-- Whether a gate is open, and the best of the lanes behind it.
UPDATE gates
SET is_open = ?2,
    best_rank = (SELECT rank FROM lanes WHERE gate_id = ?1 AND is_due = 1 ORDER BY rank LIMIT 1),
    next_due_at = (SELECT head_due_at FROM lanes WHERE gate_id = ?1 AND is_due = 0 AND head_due_at IS NOT NULL
        ORDER BY head_due_at LIMIT 1)
WHERE id = ?1
