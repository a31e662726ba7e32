-- From zone to zone along the index: as many steps as there are zones, however many schedules.
WITH RECURSIVE zones (zone) AS (
    SELECT (SELECT zone FROM schedules ORDER BY zone LIMIT 1)
    UNION ALL
    SELECT (SELECT schedules.zone FROM schedules WHERE zones.zone < schedules.zone ORDER BY schedules.zone LIMIT 1)
    FROM zones
    WHERE zones.zone IS NOT NULL
)
SELECT zones.zone, days.date
FROM zones LEFT JOIN days ON days.zone = zones.zone
WHERE zones.zone IS NOT NULL
ORDER BY zones.zone
