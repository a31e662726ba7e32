-- Each of the ways to be in need of planning has its index: what is planned and up to date is not looked at.
WITH found (id) AS (
    SELECT id FROM schedules INDEXED BY schedules_to_plan WHERE plan_at <= ?1
    UNION SELECT id FROM schedules INDEXED BY schedules_after_outage WHERE outage_until IS NOT NULL
    UNION SELECT id FROM schedules INDEXED BY schedules_by_zone_data WHERE zone_data < ?2
    UNION SELECT id FROM schedules INDEXED BY schedules_by_zone_data WHERE zone_data > ?2
)
SELECT schedules.*
FROM found CROSS JOIN schedules ON schedules.id = found.id
ORDER BY plan_at, schedules.id
LIMIT ?3
