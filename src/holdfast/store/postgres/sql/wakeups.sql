-- name: listen
listen holdfast

-- name: notify
select pg_notify('holdfast', ?::text)
