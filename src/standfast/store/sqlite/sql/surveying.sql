-- Many instances together. The cross join and the plus keep the planner from reading a whole table instead of the named
-- instances.

-- name: histories
select e.position, e.instance, e.sequence, e.tenant, e.type, e.version, e.data, e.at, e.actor, e.comment, e.cause, e.on_behalf_of,
    e.trace
from json_each(:instances) as i cross join events e on e.instance = i.value where +e.tenant = :tenant order by e.instance, e.sequence;

-- name: snapshots
select s.instance, s.version, s.state_version, s.data, s.fingerprint
from json_each(:instances) as i cross join snapshots s on s.instance = i.value where +s.tenant = :tenant;

-- name: effects
select e.instance, e.number, e.tenant, e.definition, e.language, e.handler, e.type, e.version, e.data, e.options, e.priority, e.rank,
    e.parked_until, e.owner, e.fence, e.attempts, e.error, e.created_at, e.claimed_at, e.stop_requested, e.context
from json_each(:instances) as i cross join effects e on e.instance = i.value where +e.tenant = :tenant order by e.instance, e.number;

-- name: timers
select t.instance, t.key, t.number, t.tenant, t.definition, t.language, t.type, t.version, t.data, t.due_at, t.attempts, t.error, t.context
from json_each(:instances) as i cross join timers t on t.instance = i.value where +t.tenant = :tenant order by t.instance, t.number;
