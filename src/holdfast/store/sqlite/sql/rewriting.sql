-- name: allow
insert into retention (instance) values (?);

-- name: disallow
delete from retention where instance = ?;

-- name: forget_snapshot
delete from snapshots where instance = ?;
