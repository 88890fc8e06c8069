-- name: allow
insert into retention (instance) values (?);

-- name: disallow
delete from retention where instance = ?;

-- name: forget_snapshot
delete from snapshots where instance = ?;

-- name: begin_redaction
insert into redaction (instance) values (?);

-- name: end_redaction
delete from redaction where instance = ?;

-- name: rewrite_event
update events set data = ?, comment = ? where instance = ? and sequence = ?;

-- name: notices
select id, subject, body from notifications where instance = ?;

-- name: rewrite_notice
update notifications set subject = ?, body = ? where id = ?;
