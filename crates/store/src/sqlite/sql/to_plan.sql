-- Each of the ways to be in need of planning has its index: what is planned and up to date is not looked at.
SELECT *
FROM schedules
WHERE id IN (
    SELECT id FROM schedules WHERE plan_at <= ?1
    UNION SELECT id FROM schedules WHERE outage_from IS NOT NULL
    UNION SELECT id FROM schedules WHERE zone_data < ?2
    UNION SELECT id FROM schedules WHERE zone_data > ?2
)
ORDER BY plan_at, id
LIMIT ?3
