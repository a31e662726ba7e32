SELECT id
FROM lanes
WHERE agent = ?1 AND project IS ?2 AND key IS ?3 AND key_max IS ?4 AND max_concurrent = ?5 AND priority = ?6
