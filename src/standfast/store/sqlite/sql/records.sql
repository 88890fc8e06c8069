-- name: raise_letter
insert into dead_letters (
    tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence, reason,
    error, actor, definition_version, parent, command_id, comment, created_at, context, partition
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
