-- name: clock
select clock_timestamp()

-- name: claim_effects
-- Steps from one waiting message type of a handler to the next along the index. The index returns the most urgent rows
-- of each type first, and rows of equal rank in the order of instances and numbers. Only the few selected rows are
-- sorted. Postgres supports later times than Python, and one unreadable row would fail the whole claim.
with recursive present (handler, most, language, type, version) as (
    select w.handler, w.most, f.* from unnest(?::text[], ?::int4[]) as w (handler, most)
    cross join lateral (
        select r.language, r.type, r.version from standfast.effects r
        where r.handler = w.handler and r.owner is null and r.parked_until is null and r.held_at is null
        order by r.language, r.type, r.version limit 1
    ) as f
    union all
    select p.handler, p.most, f.* from present p
    cross join lateral (
        select r.language, r.type, r.version from standfast.effects r
        where r.handler = p.handler and r.owner is null and r.parked_until is null and r.held_at is null
            and (r.language, r.type, r.version) > (p.language, p.type, p.version)
        order by r.language, r.type, r.version limit 1
    ) as f
)
update standfast.effects e set
    owner = ?::uuid, claimed_at = coalesce(?::timestamptz, clock_timestamp()), fence = fence + 1, attempts = attempts + 1
where e.ctid = any (array(
    select s.ctid from (
        select q.ctid, q.rank, q.instance, q.number, p.most,
            row_number() over (partition by p.handler order by q.rank, q.instance, q.number) as place
        from (
            select * from present
            where (language, type, version::int4) in (select * from unnest(?::text[], ?::text[], ?::int4[]))
                and not exists (select 1 from standfast.meta where name = 'maintenance')
        ) as p
        cross join lateral (
            select r.ctid, r.rank, r.instance, r.number from standfast.effects r
            where r.handler = p.handler and r.language = p.language and r.type = p.type and r.version = p.version
                and r.owner is null and r.parked_until is null and r.held_at is null
            order by r.rank, r.instance, r.number limit p.most for update skip locked
        ) as q
    ) as s
    where s.place <= s.most
    order by s.rank, s.instance, s.number limit ?::int8
))
returning e.instance, e.number, e.tenant, e.definition, e.language, e.handler, e.type, e.version, e.data, e.options, e.priority, e.rank,
    e.parked_until, e.owner, e.fence, e.attempts, e.error,
    greatest(least(e.created_at, '9999-12-31 00:00:00+00'), '0001-01-01 00:00:00+00'), e.claimed_at, e.stop_requested, e.context

-- name: retry_effect
update standfast.effects set
    owner = null, claimed_at = null, parked_until = ?::timestamptz, error = ?::text, attempts = attempts - ?::int4
where instance = ?::uuid and number = ?::int4 and owner = ?::uuid and fence = ?::int4

-- name: release_effects
update standfast.effects e set owner = null, claimed_at = null, attempts = attempts - 1
from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
where e.instance = any (array[u.instance]) and e.number = u.number and e.owner = u.owner and e.fence = u.fence

-- name: take_effect
delete from standfast.effects where instance = ?::uuid and number = ?::int4 and owner = ?::uuid and fence = ?::int4

-- name: wake_effects
update standfast.effects set parked_until = null where parked_until <= coalesce(?::timestamptz, clock_timestamp()) returning handler

-- name: next_parked
select min(parked_until) from standfast.effects where parked_until is not null

-- name: waiting_effects
select instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested, context
from standfast.effects
where handler = ?::text and owner is null and parked_until is null and held_at is null
    and created_at <= coalesce(?::timestamptz, clock_timestamp()) - ?::interval
order by language, type, version, rank, instance, number limit ?::int8

-- name: claim_timers
update standfast.timers t set claimed_until = ?::timestamptz
where t.ctid = any (array(
    select p.ctid
    from unnest(?::text[], ?::text[], ?::int4[]) as w (language, type, version)
    cross join (select ?::timestamptz as at, ?::int8 as most) as n
    cross join lateral (
        select d.ctid, d.due_at from standfast.timers d
        where d.language = w.language and d.type = w.type and d.version = w.version and d.held_at is null and d.due_at <= n.at
            and (d.claimed_until is null or d.claimed_until <= n.at)
        order by d.due_at limit n.most for update skip locked
    ) as p
    where not exists (select 1 from standfast.meta where name = 'maintenance')
    order by p.due_at limit ?::int8
))
returning t.instance, t.key, t.number, t.tenant, t.definition, t.language, t.type, t.version, t.data,
    greatest(t.due_at, '0001-01-01 00:00:00+00'), t.attempts, t.error, t.context

-- name: next_timer
-- Postgres supports later times than Python.
select least(m.at, '9999-12-31 00:00:00+00') from (
    select min(p.due_at) as at
    from unnest(?::text[], ?::text[], ?::int4[]) as w (language, type, version) cross join (select ?::timestamptz as at) as n
    cross join lateral (
        select d.due_at from standfast.timers d
        where d.language = w.language and d.type = w.type and d.version = w.version and d.held_at is null and d.due_at > n.at
        order by d.due_at limit 1
    ) as p
) as m where m.at is not null

-- name: retry_timer
update standfast.timers set due_at = ?::timestamptz, attempts = attempts + ?::int4, error = ?::text, claimed_until = null
where instance = ?::uuid and key = ?::text and number = ?::int4

-- name: take_timer
delete from standfast.timers where instance = ?::uuid and key = ?::text and number = ?::int4

-- name: claim_heads
-- Messages of one target are claimed in order: only the first one can be locked, and it stands for those behind it.
select p.tenant, p.target
from unnest(?::text[], ?::text[], ?::int4[]) as w (language, type, version)
cross join (select coalesce(?::timestamptz, clock_timestamp()) as at, ?::int8 as most) as n
cross join lateral (
    select h.tenant, h.target, h.id from standfast.inbox h
    where h.language = w.language and h.type = w.type and h.version = w.version and h.created_at > '-infinity'
        and (h.due_at is null or h.due_at <= n.at) and (h.claimed_until is null or h.claimed_until <= n.at)
        and h.id = (select f.id from standfast.inbox f where f.tenant = h.tenant and f.target = h.target order by f.id limit 1)
    order by h.id limit n.most for update skip locked
) as p
where not exists (select 1 from standfast.meta where name = 'maintenance')
order by p.id limit ?::int8

-- name: claim_behind
-- Up to the first message that this process cannot read. Later ones wait with it.
with words as materialized (select * from unnest(?::text[], ?::text[], ?::int4[]) as w (language, type, version))
update standfast.inbox i set claimed_until = coalesce(?::timestamptz, clock_timestamp()) + ?::interval
where i.id = any (array(
    select f.id
    from unnest(?::text[], ?::text[]) as u (tenant, target) cross join (select ?::int8 as most) as n
    cross join lateral (
        select b.id, bool_and((b.language, b.type, b.version::int4) in (select * from words)) over (order by b.id) as is_readable
        from (
            select id, language, type, version from standfast.inbox where tenant = u.tenant and target = u.target
            order by id limit n.most
        ) as b
    ) as f
    where f.is_readable order by f.id limit ?::int8
))
returning i.id, i.tenant, i.definition, i.key, i.instance, i.language, i.type, i.version, i.data, i.command_id, i.actor, i.comment,
    i.definition_version, i.parent, i.attempts, i.error, i.context, i.partition

-- name: retry_message
update standfast.inbox set due_at = ?::timestamptz, attempts = attempts + ?::int4, error = ?::text, claimed_until = null where id = ?::int8

-- name: free_target
update standfast.inbox i set claimed_until = null from standfast.inbox h
where h.id = ?::int8 and i.tenant = any (array[h.tenant]) and i.target = h.target

-- name: take_message
delete from standfast.inbox where id = ?::int8

-- name: waiting_messages
select id, tenant, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    attempts, error, context, partition
from standfast.inbox
where id > $1::int8 and tenant = $2::text and ($6::text = '' or partition = $6::text)
    and ($3::text = '' or definition = $3::text) and ($4::text = '' or type = $4::text)
order by id limit $5::int8

-- name: inbox_depth
select count(*) from standfast.inbox

-- name: next_message
select min(due_at) from standfast.inbox where due_at > coalesce(?::timestamptz, clock_timestamp())
