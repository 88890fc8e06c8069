-- name: record
-- Writes nothing for an instance that does not exist or belongs to another tenant.
insert into resume_requests (
    instance, id, tenant, triggered_by, triggered_by_id, trigger_data, reason, requested_by, outcome, requested_at, error_message,
    on_behalf_of, context, about
)
select id, :id, tenant, :triggered_by, :triggered_by_id, :trigger_data, :reason, :requested_by, :outcome, :requested_at, :error_message,
    :on_behalf_of, :context, :about
from instances where id = :instance and tenant = :tenant;

-- name: refuse
update resume_requests set outcome = 'refused', error_message = ? where instance = ? and id = ? and outcome = 'open';

-- name: open_requests
select id, instance, tenant, triggered_by, triggered_by_id, trigger_data, reason, requested_by, requested_at, outcome, executed_at,
    error_message, on_behalf_of, context, about
from resume_requests where outcome = 'open' order by requested_at, instance limit ?;

-- name: decided
select tenant, id from instances where reason = 'approved' and paused_at is not null order by paused_at limit ?;

-- name: late
-- A pause of their definition, their tenant or everything holds them, whatever has expired.
select i.tenant, i.id from instances i
where i.reason = 'requested' and i.paused_at is not null and i.paused_at < ? and i.kind = ?
    and not exists (
        select 1 from pauses p
        where p.ended_at is null and p.step = '' and p.tenant in (i.tenant, '*') and p.definition in (i.definition, '')
            and p.version in (i.definition_version, '')
    )
order by i.paused_at limit ?;

-- name: paused
select id from instances
where tenant = :tenant and (:partition = '' or partition = :partition) and paused_at is not null and (:definition = '' or definition = :definition)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:since is null or paused_at >= :since) and (:before is null or paused_at < :before)
    and (:after is null or (paused_at, id) < (:after, :after_id))
    and (not :resumable or reason = 'approved' or (reason = 'requested' and kind = :late_kind and paused_at < :late_before) or exists (
        select 1 from resume_requests r where r.instance = instances.id and r.outcome = 'open'
    ))
order by paused_at desc, id desc limit :limit;

-- name: paused_for
select id from instances
where tenant = :tenant and (:partition = '' or partition = :partition) and reason = :reason and paused_at is not null and (:definition = '' or definition = :definition)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:since is null or paused_at >= :since) and (:before is null or paused_at < :before)
    and (:after is null or (paused_at, id) < (:after, :after_id))
    and (not :resumable or reason = 'approved' or (reason = 'requested' and kind = :late_kind and paused_at < :late_before) or exists (
        select 1 from resume_requests r where r.instance = instances.id and r.outcome = 'open'
    ))
order by paused_at desc, id desc limit :limit;

-- name: paused_before
select id from instances
where tenant = :tenant and (:partition = '' or partition = :partition) and next_step = :next_step and (:reason = '' or reason = :reason)
    and paused_at is not null and (:definition = '' or definition = :definition)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:since is null or paused_at >= :since) and (:before is null or paused_at < :before)
    and (:after is null or (paused_at, id) < (:after, :after_id))
    and (not :resumable or reason = 'approved' or (reason = 'requested' and kind = :late_kind and paused_at < :late_before) or exists (
        select 1 from resume_requests r where r.instance = instances.id and r.outcome = 'open'
    ))
order by paused_at desc, id desc limit :limit;

-- name: resume_requests
select id, instance, tenant, triggered_by, triggered_by_id, trigger_data, reason, requested_by, requested_at, outcome, executed_at,
    error_message, on_behalf_of, context, about
from resume_requests where instance = :instance and tenant = :tenant
    and (:partition = '' or exists (select 1 from instances p where p.id = :instance and p.partition = :partition))
order by requested_at, id;
