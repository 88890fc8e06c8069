-- name: begin
begin

-- name: commit
commit
