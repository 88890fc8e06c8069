-- name: listen
listen standfast

-- name: notify
select pg_notify('standfast', ?::text)
