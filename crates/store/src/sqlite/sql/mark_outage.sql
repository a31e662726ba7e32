UPDATE schedules
SET outage_from = min(ifnull(outage_from, ?1), ?1),
    outage_until = max(ifnull(outage_until, ?2), ?2),
    outage_kept = NULL
