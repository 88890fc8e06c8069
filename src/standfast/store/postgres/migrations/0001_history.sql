-- The first schema. Creates only new objects, so it blocks no other session.
--
-- `instances` has one row per run, and `events` is the source of truth about it. `effects`, `timers` and `inbox` hold
-- only pending work: a row is deleted when its work is done. `steps`, `human_tasks`, `task_people`, `task_decisions`,
-- `task_comments`, `subscriptions`, `published_events`, `processes`, `schedules`, `schedule_fires`, `dead_letters` and
-- `resume_requests` are projections that a commit writes together with its events. Of resume requests this holds only
-- for executed ones. `receipts` make commands idempotent.
--
-- `language`, `type` and `version` of an effect, a timer or a message are the message type that a process must be able
-- to read before it claims the row. They come first in the indexes for claims, so that a process skips unreadable rows
-- without examining them.
--
-- `events` and `steps` are partitioned by the instance id. Ids are UUIDv7, so a range of ids is a range of creation
-- times. All rows of an instance lie in one partition, a read of its history touches only that one, and an old month
-- can be dropped whole.
--
-- Queue tables have few indexes, leave room on their pages for updates in place, and are vacuumed often.
--
-- `context` of an effect, a timer or a message holds the actor, the trace and the partition of the tenant, as JSON.
-- Null means that the engine itself acts. `trace` and `on_behalf_of` of an event are null without a value, so that an
-- engine without them writes nothing for them.

create table standfast.meta (
    name  text primary key,
    value text not null
);

create table standfast.definitions (
    tenant       text not null check (tenant <> ''),
    name         text not null,
    version      text not null,
    kind         text not null,
    source       bytea not null,
    compiled     bytea not null,
    hash         text not null,
    compiler     text not null,
    status       text not null check (status in ('draft', 'published', 'retired')),
    media_type   text not null,
    description  text not null,
    published_by text not null,
    published_at timestamptz not null,
    archived_by  text not null default '',
    archived_at  timestamptz,
    archived_why text not null default '',
    primary key (tenant, name, version)
);

-- Definitions with a version that an event starts. They are written with the definition, so that an event need not read
-- all definitions.

create table standfast.definition_triggers (
    event      text not null,
    tenant     text not null check (tenant <> ''),
    definition text not null,
    primary key (event, tenant, definition)
);

create function standfast.refuse() returns trigger language plpgsql as $$
begin
    raise exception '%', tg_argv[1] using errcode = tg_argv[0];
end $$;

create function standfast.require(holds boolean) returns void language plpgsql as $$
begin
    if not holds then
        raise exception 'somebody else was first' using errcode = 'HF001';
    end if;
end $$;

create function standfast.require_facts(hold boolean) returns void language plpgsql as $$
begin
    if not hold then
        raise exception 'a fact that the decision was based on has changed' using errcode = 'HF002';
    end if;
end $$;

create trigger definitions_immutable before update on standfast.definitions for each row
when (old.status <> 'draft' and (
    new.source <> old.source or new.media_type <> old.media_type or new.compiled <> old.compiled or new.hash <> old.hash
    or new.kind <> old.kind or new.compiler <> old.compiler or new.status = 'draft'
    or new.tenant <> old.tenant or new.name <> old.name or new.version <> old.version
))
execute function standfast.refuse('HF102', 'a published definition never changes');

create table standfast.instances (
    id                 uuid primary key,
    tenant             text not null check (tenant <> ''),
    definition         text not null,
    definition_version text not null,
    kind               text not null,
    key                text,
    status             text not null,
    reason             text not null,
    begun              boolean not null,
    version            integer not null,
    issued             integer not null,
    commits            integer not null,
    parent             uuid,
    created_at         timestamptz not null,
    updated_at         timestamptz not null,
    ended_at           timestamptz,
    partition          text,
    started_by         text not null,
    paused_at          timestamptz,
    deadline_at        timestamptz,
    attributes         jsonb,
    next_step          text
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
-- For lookups, and for lists by key alone.
create unique index instances_by_key on standfast.instances (tenant, key, definition, (case when partition is null then '' else partition end))
where key is not null;
-- For lists, which read each status newest first, instances that have begun and those that have not. The index
-- conditions are always true, and only lists state them. Otherwise a planner without statistics would use these indexes
-- for lookups by id or key, and read every instance of the tenant or definition. The greatest of one id is the id, and
-- only lists write it so. Otherwise a planner with statistics would use the primary key, and read all instances.
create index instances_by_definition on standfast.instances (tenant, definition, definition_version, status, begun, greatest(id))
where created_at > '-infinity';
create index instances_by_status on standfast.instances (tenant, kind, status, begun, greatest(id)) where created_at < 'infinity';
create index instances_of_partition on standfast.instances (tenant, partition, kind, definition, status, begun, greatest(id))
where partition is not null and created_at <> 'infinity';
-- For lists by end reason, which most instances do not have.
create index instances_by_reason on standfast.instances (tenant, reason, greatest(id)) where ended_at is not null and reason <> '';
-- For lists by search attribute.
create index instances_by_attribute on standfast.instances using gin (attributes jsonb_path_ops) where attributes is not null;
-- For lists of processes: by status within a partition of the tenant, and by their starter. Row-level security lets a
-- planner use a `case` where it distrusts a `coalesce`.
create index instances_processes on standfast.instances (tenant, (case when partition is null then '' else partition end), status, greatest(id))
where kind = 'process' and created_at <> '-infinity';
create index instances_by_starter on standfast.instances (tenant, started_by, greatest(id)) where kind = 'process';
-- For lists of active processes by deadline, of all tenants and of one.
create index instances_expiring on standfast.instances (deadline_at, id)
    where kind = 'process' and status = 'running' and deadline_at is not null;
create index instances_expiring_of_tenant on standfast.instances (tenant, deadline_at, id)
    where kind = 'process' and status = 'running' and deadline_at is not null;
create index instances_by_parent on standfast.instances (parent, status, greatest(id)) where parent is not null;
-- For retention: instances that ended long ago are found without reading active ones.
create index instances_by_end on standfast.instances (ended_at) where ended_at is not null;
-- For lists of paused instances, all of them or for one reason: the most recently paused first.
create index instances_by_pause on standfast.instances (tenant, paused_at desc, id desc) where paused_at is not null;
create index instances_by_pause_reason on standfast.instances (tenant, reason, paused_at desc, id desc) where paused_at is not null;
-- For lists of paused instances by next step, the most recently paused first.
create index instances_by_next_step on standfast.instances (tenant, next_step, paused_at desc, id desc) where next_step is not null;
-- For the loop that resumes paused instances of all tenants.
create index instances_late on standfast.instances (reason, paused_at) where paused_at is not null;
create index instances_events_by_end on standfast.instances (ended_at) where kind = 'event' and ended_at is not null;

-- A trigger on named columns costs nothing for statements that do not write them.
create trigger instances_identity before update of id, tenant, definition, kind, key, created_at, partition on standfast.instances for each row
when (new.id <> old.id or new.tenant <> old.tenant or new.definition <> old.definition or new.kind <> old.kind
    or new.key is distinct from old.key or new.created_at <> old.created_at or new.partition is distinct from old.partition)
execute function standfast.refuse('HF103', 'the identity of an instance never changes');
create trigger instances_history before update of version on standfast.instances for each row
when (new.version < old.version)
execute function standfast.refuse('HF103', 'the identity of an instance never changes');
create trigger instances_final before update of status, ended_at on standfast.instances for each row
when (old.kind = 'envelope' and old.ended_at is not null and (new.status <> old.status or new.ended_at is null)
    and coalesce(current_setting('standfast.retention', true), '') <> old.id::text)
execute function standfast.refuse('HF107', 'a document that has ended stays as it ended');

create table standfast.events (
    instance     uuid not null,
    sequence     integer not null,
    position     bigint not null,
    tenant       text not null check (tenant <> ''),
    type         text not null,
    version      smallint not null,
    data         bytea not null,
    at           timestamptz not null,
    actor        text not null,
    comment      text not null,
    cause        text not null,
    on_behalf_of text,
    trace        text,
    primary key (instance, sequence)
) partition by range (instance);
create index events_by_position on standfast.events (position);
create table standfast.events_default partition of standfast.events default;

create function standfast.keep_events() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('standfast.retention', true) = old.instance::text then
        return old;
    end if;
    -- Values of one document are being redacted in this transaction. Type, time and actor of the event stay unchanged.
    if tg_op = 'UPDATE' and current_setting('standfast.redaction', true) = old.instance::text
        and to_jsonb(new) - 'data' - 'comment' = to_jsonb(old) - 'data' - 'comment' then
        return new;
    end if;
    raise exception 'events are append-only' using errcode = 'HF101';
end $$;
create trigger events_append_only before update or delete on standfast.events for each row execute function standfast.keep_events();

create table standfast.snapshots (
    instance      uuid primary key,
    tenant        text not null,
    version       integer not null,
    state_version integer not null,
    data          bytea not null,
    fingerprint   text not null
) with (fillfactor = 70);

create table standfast.receipts (
    tenant     text not null check (tenant <> ''),
    scope      text not null,
    key        text not null,
    instance   uuid,
    version    integer not null,
    digest     bytea not null,
    created_at timestamptz not null,
    primary key (tenant, scope, key)
);
create index receipts_by_age on standfast.receipts using brin (created_at);

create table standfast.effects (
    instance       uuid not null,
    number         integer not null,
    tenant         text not null check (tenant <> ''),
    definition     text not null,
    language       text not null,
    handler        text not null,
    type           text not null,
    version        smallint not null,
    data           bytea not null,
    options        bytea not null,
    priority       smallint not null check (priority between 0 and 100),
    rank           bigint not null,
    parked_until   timestamptz,
    owner          uuid,
    claimed_at     timestamptz,
    fence          integer not null,
    attempts       integer not null,
    error          text not null,
    created_at     timestamptz not null,
    stop_requested boolean not null default false,
    context        bytea,
    held_at        timestamptz,
    primary key (instance, number)
) with (
    fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_threshold = 1000, autovacuum_analyze_scale_factor = 0.05
);
create index effects_ready on standfast.effects (handler, language, type, version, rank, instance, number)
    where owner is null and parked_until is null and held_at is null;
create index effects_parked on standfast.effects (parked_until) where parked_until is not null;
-- An effect that its commit handed over has fence 0 and is not in this index, so that no commit pays for lists.
create index effects_claimed on standfast.effects (tenant, instance) where owner is not null and fence > 0;
create index effects_held on standfast.effects (tenant, definition) where held_at is not null;

create table standfast.timers (
    instance      uuid not null,
    key           text not null,
    number        integer not null,
    tenant        text not null check (tenant <> ''),
    definition    text not null,
    language      text not null,
    type          text not null,
    version       smallint not null,
    data          bytea not null,
    due_at        timestamptz not null,
    attempts      integer not null,
    error         text not null,
    claimed_until timestamptz,
    context       bytea,
    held_at       timestamptz,
    frozen_at     timestamptz,
    primary key (instance, key)
) with (
    fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 1
);
create index timers_due on standfast.timers (language, type, version, due_at) where held_at is null;
create index timers_held on standfast.timers (tenant, definition) where held_at is not null;

create table standfast.inbox (
    id                 bigint generated always as identity primary key,
    tenant             text not null check (tenant <> '' and tenant <> '*'),
    target             text not null,
    definition         text not null,
    key                text not null,
    instance           uuid,
    language           text not null,
    type               text not null,
    version            smallint not null,
    data               bytea not null,
    command_id         text not null,
    actor              text not null,
    comment            text not null check (octet_length(comment) <= 65536),
    created_at         timestamptz not null,
    definition_version text not null default '',
    parent             uuid,
    attempts           integer not null default 0,
    error              text not null default '',
    due_at             timestamptz,
    claimed_until      timestamptz,
    context            bytea,
    partition          text not null default ''
) with (
    fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 1
);
create index inbox_by_target on standfast.inbox (tenant, target, id);
-- The condition is always true, and only claims state it: see the lists of instances.
create index inbox_by_word on standfast.inbox (language, type, version, id) where created_at > '-infinity';

create table standfast.dead_letters (
    id                 bigint generated always as identity primary key,
    tenant             text not null check (tenant <> ''),
    source             text not null check (source in ('step', 'compensation', 'effect', 'timer', 'inbox')),
    instance           uuid,
    definition         text not null,
    key                text not null,
    number             integer not null,
    name               text not null,
    language           text not null default '',
    type               text not null,
    version            smallint not null default 1,
    data               bytea not null,
    options            bytea not null default '',
    priority           smallint not null default 0,
    attempts           integer not null,
    fence              integer not null default 0,
    reason             text not null,
    error              text not null,
    actor              text not null default '',
    definition_version text not null default '',
    parent             uuid,
    command_id         text not null default '',
    comment            text not null default '',
    created_at         timestamptz not null,
    context            bytea,
    partition          text not null default ''
);
create index dead_letters_by_instance on standfast.dead_letters (instance, source, number);
create index dead_letters_by_tenant on standfast.dead_letters (tenant, id);

create table standfast.steps (
    instance    uuid not null,
    number      integer not null,
    tenant      text not null check (tenant <> ''),
    node        text not null,
    token       text not null,
    visit       integer not null,
    kind        text not null,
    status      text not null check (status in ('pending', 'running', 'completed', 'failed', 'skipped', 'cancelled')),
    compensates integer,
    retry_of    integer,
    wait_kind   text not null,
    attempts    integer not null,
    outcome     text not null,
    error       text not null,
    input       bytea,
    output      bytea,
    opened_at   timestamptz not null,
    moved_at    timestamptz not null,
    started_at  timestamptz,
    primary key (instance, number)
) partition by range (instance);
create table standfast.steps_default partition of standfast.steps default with (fillfactor = 70);

create trigger steps_identity
before update of instance, number, tenant, node, token, visit, kind, compensates, retry_of on standfast.steps for each row
when (new.instance <> old.instance or new.number <> old.number or new.tenant <> old.tenant or new.node <> old.node
    or new.token <> old.token or new.visit <> old.visit or new.kind <> old.kind
    or new.compensates is distinct from old.compensates or new.retry_of is distinct from old.retry_of)
execute function standfast.refuse('HF104', 'the identity of a step never changes');
create trigger steps_final before update of status on standfast.steps for each row
when (old.status in ('completed', 'failed', 'skipped', 'cancelled') and new.status <> old.status)
execute function standfast.refuse('HF105', 'a step that has ended never moves again');

create table standfast.human_tasks (
    instance         uuid not null,
    number           integer not null,
    tenant           text not null check (tenant <> ''),
    definition       text not null,
    key              text not null,
    partition        text not null,
    node             text not null,
    subject          text not null,
    role             text not null,
    requester        text not null,
    kept_out         bytea,
    agreement        text not null,
    stage            text not null,
    status           text not null,
    claimed_by       text not null,
    due_at           timestamptz,
    data             bytea,
    guarded          bytea,
    resolution       bytea,
    document_version text,
    outcome          text,
    actor            text not null,
    comment          text not null,
    opened_at        timestamptz not null,
    closed_at        timestamptz,
    primary key (instance, number)
);
create index human_tasks_open on standfast.human_tasks (tenant, opened_at, instance, number) where closed_at is null;
create index human_tasks_by_definition on standfast.human_tasks (tenant, definition, opened_at, instance, number) where closed_at is null;
create index human_tasks_by_key on standfast.human_tasks (tenant, key, opened_at, instance, number) where closed_at is null;
create index human_tasks_by_requester on standfast.human_tasks (tenant, requester, opened_at, instance, number) where closed_at is null;
create index human_tasks_due on standfast.human_tasks (tenant, due_at) where closed_at is null and due_at is not null;
create trigger human_tasks_final before update on standfast.human_tasks for each row
when (old.closed_at is not null)
execute function standfast.refuse('HF106', 'a decision that was made never changes');

-- Inboxes: a row for each approver of a task, with the reason. It is kept after the task is closed.
create table standfast.task_people (
    instance   uuid not null,
    number     integer not null,
    place      integer not null,
    tenant     text not null check (tenant <> ''),
    partition  text not null,
    kind       text not null,
    name       text not null,
    via        text not null,
    stands_for text not null,
    weight     integer not null,
    stage      integer not null,
    is_open    boolean not null,
    decided    text not null,
    opened_at  timestamptz not null,
    primary key (instance, number, place)
);
create index task_people_open on standfast.task_people (tenant, kind, name, opened_at, instance, number) where is_open;
-- For lists of processes by their approvers, newest first.
create index task_people_instances on standfast.task_people (tenant, kind, name, instance) where is_open;
create index task_people_deputed on standfast.task_people (tenant, instance, number, place) where is_open and stands_for <> '';

create table standfast.task_decisions (
    instance         uuid not null,
    number           integer not null,
    sequence         integer not null,
    tenant           text not null check (tenant <> ''),
    partition        text not null,
    actor            text not null,
    on_behalf_of     text not null,
    outcome          text not null,
    comment          text not null,
    data             bytea,
    document_version text,
    is_withdrawn     boolean not null,
    is_applied       boolean not null,
    applied          boolean,
    decided_at       timestamptz not null,
    primary key (instance, number, sequence)
);
create index task_decisions_by_actor on standfast.task_decisions (tenant, actor, decided_at, instance, number, sequence);

-- Documents. Each is the run of its workflow. `documents` holds the current state, `document_versions` the earlier
-- contents, `mutations` the changes, and `audit` the actor, tenant, time (`at`) and reason of each action. All but the
-- first are never updated.
create table standfast.documents (
    instance      uuid not null,
    type          text not null check (type <> ''),
    id            text not null check (id <> ''),
    tenant        text not null check (tenant <> ''),
    definition    text not null,
    partition     text not null,
    status        text not null,
    version       integer not null,
    data          bytea not null,
    amended_from  text not null,
    superseded_by text not null,
    requester     text not null,
    round         integer not null,
    is_resting    boolean not null,
    is_amending   boolean not null,
    updated_by    text not null,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    primary key (instance, type, id)
);
create unique index documents_by_id on standfast.documents (tenant, type, id, partition);
create index documents_by_status on standfast.documents (tenant, type, status, instance);
create index documents_by_type on standfast.documents (tenant, type, instance);
create index documents_by_requester on standfast.documents (tenant, requester, type, instance);
create trigger documents_identity
before update of instance, type, id, tenant, definition, amended_from, requester on standfast.documents for each row
when (new.instance <> old.instance or new.type <> old.type or new.id <> old.id or new.tenant <> old.tenant
    or new.definition <> old.definition or new.amended_from <> old.amended_from or new.requester <> old.requester)
execute function standfast.refuse('HF130', 'the identity of a document never changes');
create trigger documents_history before update of version on standfast.documents for each row
when (new.version < old.version) execute function standfast.refuse('HF131', 'the version of a document never goes back');
create trigger documents_final before update on standfast.documents for each row
when (old.superseded_by <> '')
execute function standfast.refuse('HF132', 'a document that another one has taken the place of never changes');
create trigger documents_never_go before delete on standfast.documents for each row
when (coalesce(current_setting('standfast.retention', true), '') <> old.instance::text)
execute function standfast.refuse('HF133', 'documents are not deleted');

create table standfast.document_versions (
    instance   uuid not null,
    version    integer not null,
    tenant     text not null check (tenant <> ''),
    status     text not null,
    data       bytea not null,
    data_hash  text not null,
    mutation   integer not null,
    written_by text not null,
    written_at timestamptz not null,
    primary key (instance, version)
);
create trigger document_versions_never_change before update on standfast.document_versions for each row
execute function standfast.refuse('HF134', 'a version of a document never changes');
create trigger document_versions_never_go before delete on standfast.document_versions for each row
when (coalesce(current_setting('standfast.retention', true), '') <> old.instance::text) execute function standfast.refuse('HF134', 'a version of a document never changes');

create table standfast.mutations (
    instance       uuid not null,
    sequence       integer not null,
    tenant         text not null check (tenant <> ''),
    kind           text not null check (kind in ('business', 'workflow')),
    action         text not null,
    version_before integer not null,
    version_after  integer not null,
    actor          text not null,
    on_behalf_of   text not null,
    run_as         text not null,
    step           integer,
    reason         text not null,
    changes        bytea,
    made_at        timestamptz not null,
    primary key (instance, sequence)
);
create trigger mutations_never_change before update on standfast.mutations for each row
execute function standfast.refuse('HF135', 'what was done to a document is never rewritten');
create trigger mutations_never_go before delete on standfast.mutations for each row
when (coalesce(current_setting('standfast.retention', true), '') <> old.instance::text) execute function standfast.refuse('HF135', 'what was done to a document is never rewritten');

create table standfast.audit (
    instance uuid not null,
    sequence integer not null,
    tenant   text not null check (tenant <> ''),
    who      text not null,
    whom     text not null,
    what     text not null,
    which    text not null,
    place    text not null,
    why      text not null,
    whence   text not null,
    how      text not null,
    at       timestamptz not null,
    primary key (instance, sequence)
);
create trigger audit_never_change before update on standfast.audit for each row
execute function standfast.refuse('HF136', 'the audit is never rewritten');
create trigger audit_never_go before delete on standfast.audit for each row
when (coalesce(current_setting('standfast.retention', true), '') <> old.instance::text) execute function standfast.refuse('HF136', 'the audit is never rewritten');

create trigger task_decisions_applied before update of applied on standfast.task_decisions for each row
when (old.applied is not null and new.applied is distinct from old.applied)
execute function standfast.refuse('HF137', 'an approval is used up or void once and for all');
create trigger task_decisions_never_change
before update of actor, on_behalf_of, outcome, document_version, decided_at on standfast.task_decisions for each row
when (old.actor is distinct from new.actor or old.on_behalf_of is distinct from new.on_behalf_of or old.outcome is distinct from new.outcome
    or old.document_version is distinct from new.document_version or old.decided_at is distinct from new.decided_at)
execute function standfast.refuse('HF138', 'what somebody decided never changes');
create trigger task_decisions_never_go before delete on standfast.task_decisions for each row
when (coalesce(current_setting('standfast.retention', true), '') <> old.instance::text) execute function standfast.refuse('HF138', 'what somebody decided never changes');

create table standfast.task_comments (
    instance    uuid not null,
    number      integer not null,
    sequence    integer not null,
    tenant      text not null check (tenant <> ''),
    actor       text not null,
    on_behalf_of text not null,
    text        text not null,
    is_question boolean not null,
    written_at  timestamptz not null,
    primary key (instance, number, sequence)
);

create table standfast.subscriptions (
    instance    uuid not null,
    number      integer not null,
    place       integer not null,
    tenant      text not null check (tenant <> ''),
    definition  text not null,
    partition   text not null,
    kind        text not null,
    signal      text not null,
    correlation text not null,
    opened_at   timestamptz not null,
    primary key (instance, number, place)
);
create index subscriptions_by_signal on standfast.subscriptions (tenant, kind, signal, correlation, instance, number, place);

create table standfast.published_events (
    instance     uuid not null,
    number       integer not null,
    tenant       text not null check (tenant <> ''),
    partition    text not null,
    id           text not null,
    event        text not null,
    correlation  text not null,
    match_one    boolean not null,
    expires_at   timestamptz not null,
    data         bytea not null,
    published_at timestamptz not null,
    primary key (instance, number)
);
create index published_events_by_key on standfast.published_events (tenant, event, correlation, published_at, instance);
create index published_events_by_time on standfast.published_events (tenant, published_at, instance);

-- The current step of a process, and its state as callers see it. Both follow from its events.
create table standfast.processes (
    instance     uuid not null,
    number       integer not null,
    tenant       text not null check (tenant <> ''),
    current_step text not null,
    state        bytea not null,
    opened_at    timestamptz not null,
    moved_at     timestamptz not null,
    primary key (instance, number)
) with (fillfactor = 70);

create table standfast.schedules (
    instance  uuid not null,
    number    integer not null,
    tenant    text not null check (tenant <> ''),
    workflow  text not null,
    plan      bytea not null,
    standing  bytea not null,
    opened_at timestamptz not null,
    moved_at  timestamptz not null,
    primary key (instance, number)
) with (fillfactor = 70);

create table standfast.schedule_fires (
    instance uuid not null,
    place    integer not null,
    tenant   text not null check (tenant <> ''),
    at       timestamptz not null,
    until    timestamptz,
    why      text not null,
    status   text not null,
    detail   text not null,
    run      uuid,
    document text not null,
    backfill integer not null,
    told_at  timestamptz not null,
    primary key (instance, place)
);

-- Pauses and their scope. `*` means all tenants. An empty definition, version or step means all of them. Effects and
-- timers follow these rows: `held_at` is set while a pause covers the row, and `frozen_at` of a timer while a pause
-- stops its clock. `walks` counts the completed passes since the pause began or ended: 2 means that all rows are
-- updated. Ended pauses are kept.
create table standfast.pauses (
    id         bigint generated always as identity primary key,
    tenant     text not null check (tenant <> ''),
    definition text not null,
    version    text not null,
    step       text not null,
    clock      text not null check (clock in ('run_on', 'stand_still')),
    reason     text not null,
    paused_by  text not null,
    paused_at  timestamptz not null,
    until      timestamptz,
    ended_at   timestamptz,
    ended_by   text not null default '',
    ended_why  text not null default '',
    walks      smallint not null default 0
);
create unique index pauses_standing on standfast.pauses (tenant, definition, version, step) where ended_at is null;
create index pauses_walking on standfast.pauses (id) where ended_at is null or walks < 2;
create table standfast.resume_requests (
    instance        uuid not null,
    id              uuid not null,
    tenant          text not null check (tenant <> ''),
    triggered_by    text not null check (triggered_by in ('manual', 'approval', 'event', 'timeout')),
    triggered_by_id text not null,
    trigger_data    bytea,
    reason          text not null,
    requested_by    text not null,
    context         bytea,
    outcome         text not null check (outcome in ('open', 'executed', 'refused')),
    requested_at    timestamptz not null,
    executed_at     timestamptz,
    error_message   text not null default '',
    on_behalf_of    text not null default '',
    about           text not null default '',
    primary key (instance, id)
);
create index resume_requests_open on standfast.resume_requests (requested_at, instance) where outcome = 'open';

create table standfast.workers (
    id          uuid primary key,
    name        text not null,
    handlers    text[] not null,
    started_at  timestamptz not null,
    alive_until timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200);

create table standfast.projections (
    name       text primary key,
    position   bigint not null,
    updated_at timestamptz,
    error      text not null,
    failed_at  timestamptz
) with (fillfactor = 50);

create table standfast.observations (
    id          bigint generated always as identity primary key,
    tenant      text not null check (tenant <> ''),
    instance    uuid not null,
    definition  text not null,
    input       text not null,
    from_status text not null,
    to_status   text not null,
    skipped     boolean not null,
    at          timestamptz not null
);
create index observations_by_instance on standfast.observations (instance, id);

-- In-app notifications, written at delivery. The key prevents a second delivery.
create table standfast.notifications (
    id         bigint generated always as identity primary key,
    tenant     text not null check (tenant <> ''),
    key        text not null,
    kind       text not null check (kind in ('user', 'role')),
    recipient  text not null,
    instance   uuid not null,
    step       integer not null,
    partition  text not null,
    occasion   text not null,
    kept_out   text not null,
    subject    text not null,
    body       text not null,
    created_at timestamptz not null,
    read_at    timestamptz,
    unique (tenant, key)
);
create index notifications_by_recipient on standfast.notifications (tenant, kind, recipient, id);
create index notifications_unread on standfast.notifications (tenant, kind, recipient, id) where read_at is null;
create index notifications_by_instance on standfast.notifications (instance, occasion);

-- Readers of notifications to a role. A notification to a user has its own read mark.
create table standfast.notification_reads (
    notification bigint not null,
    reader       text not null,
    tenant       text not null check (tenant <> ''),
    read_at      timestamptz not null,
    primary key (notification, reader)
);

-- People. `principals` are never deleted but deactivated. A grant, a delegation or an absence is never deleted either:
-- its period ends. `chains` are templates of approvals, whose versions never change.

create table standfast.principals (
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    id         text not null check (id <> ''),
    kind       text not null check (kind in ('user', 'service')),
    name       text not null,
    email      text not null,
    is_active  boolean not null,
    manager    text not null check (manager <> id),
    attributes text not null,
    primary key (tenant, id)
);
create index principals_inactive on standfast.principals (tenant, id) where not is_active;

create table standfast.role_grants (
    id        bigint generated always as identity primary key,
    tenant    text not null check (tenant <> '' and tenant <> '*'),
    principal text not null,
    role      text not null check (role <> ''),
    begins_at timestamptz not null,
    ends_at   timestamptz
);
create index role_grants_by_role on standfast.role_grants (tenant, role, principal);
create index role_grants_by_principal on standfast.role_grants (tenant, principal, role);

create table standfast.delegations (
    id         bigint generated always as identity primary key,
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    giver      text not null,
    receiver   text not null check (receiver <> giver),
    role       text not null,
    definition text not null,
    reason     text not null,
    begins_at  timestamptz not null,
    ends_at    timestamptz
);
create index delegations_by_giver on standfast.delegations (tenant, giver, id);
create index delegations_by_receiver on standfast.delegations (tenant, receiver, id);

create table standfast.absences (
    id        bigint generated always as identity primary key,
    tenant    text not null check (tenant <> '' and tenant <> '*'),
    principal text not null,
    reason    text not null,
    begins_at timestamptz not null,
    ends_at   timestamptz
);
create index absences_by_principal on standfast.absences (tenant, principal, id);

-- Audit of changes to people, definitions, keys, rules and pauses. It is written in the transaction of the change.
-- `mark` identifies the call, so that a repeated call is one change. The tenant `*` stands for shared data. Changes of
-- instances are events.

create table standfast.changes (
    id           bigint generated always as identity primary key,
    tenant       text not null check (tenant <> ''),
    subject      text not null check (subject <> ''),
    name         text not null,
    action       text not null check (action <> ''),
    before       text not null,
    after        text not null,
    reason       text not null,
    actor        text not null check (actor <> ''),
    on_behalf_of text not null,
    trace        text not null,
    at           timestamptz not null,
    mark         text not null unique
);
create index changes_by_tenant on standfast.changes (tenant, id);
create index changes_by_subject on standfast.changes (tenant, subject, name, id);
create index changes_by_actor on standfast.changes (tenant, actor, id);
create trigger changes_never_change before update or delete on standfast.changes for each row
execute function standfast.refuse('HF120', 'what was changed is never rewritten');

create table standfast.chains (
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    name         text not null check (name <> ''),
    version      integer not null,
    stages       bytea not null,
    description  text not null,
    published_by text not null,
    published_at timestamptz not null,
    primary key (tenant, name, version)
);
create trigger chains_never_change before update or delete on standfast.chains for each row
execute function standfast.refuse('HF102', 'a published definition never changes');

-- Settings of organisations for their documents: rules for a type (`rules:<type>`), and `settings`. A version never
-- changes, and the newest one is active.

create table standfast.charters (
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    name         text not null check (name <> ''),
    version      integer not null,
    body         bytea not null,
    comment      text not null,
    published_by text not null,
    published_at timestamptz not null,
    primary key (tenant, name, version)
);
create trigger charters_never_change before update or delete on standfast.charters for each row
execute function standfast.refuse('HF102', 'a published definition never changes');

-- Seals. Each records the length of an instance's history and the end of its hash chain. The seals of a tenant form a
-- chain of their own. The table is append-only, and seals outlive their instances.

create table standfast.seals (
    tenant    text not null check (tenant <> '' and tenant <> '*'),
    number    bigint not null check (number >= 1),
    instance  uuid not null,
    version   integer not null,
    digest    text not null,
    link      text not null,
    sealed_by text not null,
    sealed_at timestamptz not null,
    primary key (tenant, number)
);
create index seals_by_instance on standfast.seals (tenant, instance, number);
create trigger seals_never_change before update or delete on standfast.seals for each row
execute function standfast.refuse('HF108', 'a seal is never broken');

-- Document definitions: contracts with their envelopes, bodies of organisations for the slots, and the artifacts
-- compiled from both. The graph of an effective one is in `definitions`, under the version `workflow`. A draft has the
-- version 0. Envelopes are the defaults and never change. A published version can only be archived. `publishing_rules`
-- is append-only, and the last row of a tenant applies.

create table standfast.blueprints (
    id               text not null primary key,
    tenant           text not null check (tenant <> ''),
    type             text not null check (type <> ''),
    kind             text not null check (kind in ('envelope', 'body', 'effective')),
    version          integer not null check (version >= 0),
    status           text not null check (status in ('draft', 'published', 'archived')),
    is_default       boolean not null,
    name             text not null,
    envelope_version integer not null,
    content          bytea not null,
    hash             text not null check (hash <> ''),
    skeleton         bytea,
    header           bytea,
    compiler         text,
    graph_hash       text,
    workflow         text,
    envelope         text,
    body             text,
    replaces         integer,
    revision         integer not null check (revision >= 1),
    drafted_by       text not null,
    comment          text not null,
    created_by       text not null,
    created_at       timestamptz not null,
    updated_by       text not null,
    updated_at       timestamptz not null,
    published_by     text,
    published_at     timestamptz,
    archived_by      text,
    archived_at      timestamptz,
    archived_why     text not null,
    check ((status = 'draft') = (version = 0)),
    check ((status = 'draft') = (published_at is null) and (published_by is null) = (published_at is null)),
    check ((status = 'archived') = (archived_at is not null) and (archived_by is null) = (archived_at is null)),
    check (kind <> 'envelope' or (is_default and status = 'published' and skeleton is not null and header is null and compiler is null
        and graph_hash is null and workflow is null and envelope is null and body is null and replaces is null)),
    check (kind <> 'body' or (not is_default and tenant <> '*' and replaces is not null and skeleton is null and header is null
        and compiler is null and graph_hash is null and workflow is null and envelope is null and body is null)),
    check (kind <> 'effective' or (not is_default and status <> 'draft' and compiler is not null and graph_hash is not null
        and header is not null and workflow is not null and envelope is not null
        and skeleton is null and replaces is null))
);
create unique index blueprints_by_version on standfast.blueprints (tenant, type, kind, version) where version > 0;
create unique index blueprints_in_force on standfast.blueprints (tenant, type, kind) where status = 'published' and kind <> 'envelope';
create index blueprints_drafts on standfast.blueprints (tenant, type, id) where status = 'draft';
create index blueprints_everywhere on standfast.blueprints (type, tenant) where kind = 'body' and status = 'published';
create trigger blueprints_default before update on standfast.blueprints for each row
when (old.is_default)
execute function standfast.refuse('HF102', 'a published definition never changes');
create trigger blueprints_frozen before update on standfast.blueprints for each row
when (old.status <> 'draft' and (
    old.status <> 'published' or new.status <> 'archived'
    or new.id <> old.id or new.tenant <> old.tenant or new.type <> old.type or new.kind <> old.kind or new.version <> old.version
    or new.is_default <> old.is_default or new.name <> old.name or new.envelope_version <> old.envelope_version
    or new.content <> old.content or new.hash <> old.hash or new.skeleton is distinct from old.skeleton or new.header is distinct from old.header
    or new.compiler is distinct from old.compiler or new.graph_hash is distinct from old.graph_hash or new.workflow is distinct from old.workflow
    or new.envelope is distinct from old.envelope or new.body is distinct from old.body or new.replaces is distinct from old.replaces or new.revision <> old.revision
    or new.drafted_by <> old.drafted_by or new.comment <> old.comment or new.created_by <> old.created_by or new.created_at <> old.created_at
    or new.updated_by <> old.updated_by or new.updated_at <> old.updated_at
    or new.published_by is distinct from old.published_by or new.published_at is distinct from old.published_at
))
execute function standfast.refuse('HF102', 'a published definition never changes');
create trigger blueprints_drafted before update of id, tenant, type, kind, is_default, created_by, created_at on standfast.blueprints for each row
when (old.status = 'draft' and (
    new.id <> old.id or new.tenant <> old.tenant or new.type <> old.type or new.kind <> old.kind or new.is_default <> old.is_default
    or new.created_by <> old.created_by or new.created_at <> old.created_at
))
execute function standfast.refuse('HF102', 'a draft stays what it is a draft of');
create trigger blueprints_never_go before delete on standfast.blueprints for each row
when (old.status <> 'draft')
execute function standfast.refuse('HF102', 'a published definition never goes');

create table standfast.publishing_rules (
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    number     integer not null,
    two_person boolean not null,
    set_by     text not null,
    set_at     timestamptz not null,
    primary key (tenant, number)
);
create trigger publishing_rules_never_change before update on standfast.publishing_rules for each row
execute function standfast.refuse('HF102', 'a rule of publishing is replaced by another one, and never rewritten');
create trigger publishing_rules_never_go before delete on standfast.publishing_rules for each row
execute function standfast.refuse('HF102', 'a rule of publishing is replaced by another one, and never rewritten');

-- Suspensions of document workflows by a tenant, and reactivations: the last row of a workflow applies. The names of
-- the batches that paused its documents begin with `batch`.
create table standfast.suspensions (
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    type         text not null check (type <> ''),
    workflow     text not null check (workflow <> ''),
    number       integer not null check (number >= 1),
    is_suspended boolean not null,
    set_by       text not null,
    set_at       timestamptz not null,
    why          text not null,
    batch        text not null,
    primary key (tenant, type, workflow, number)
);
create trigger suspensions_never_change before update on standfast.suspensions for each row
execute function standfast.refuse('HF102', 'a suspension is lifted by another line, and never rewritten');
create trigger suspensions_never_go before delete on standfast.suspensions for each row
execute function standfast.refuse('HF102', 'a suspension is lifted by another line, and never rewritten');

-- Access. `api_keys` hold the hash of a secret that was shown once. They are never deleted but revoked. `api_sessions`
-- are browser sessions with their actor, rights and expiry. `api_refusals` are requests that were refused because of
-- their caller. `api_requests` are repeatable requests with their responses, kept for a day.

create table standfast.api_keys (
    id           text not null primary key,
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    partition    text not null,
    name         text not null,
    actor        text not null check (actor <> ''),
    kind         text not null check (kind in ('user', 'service')),
    roles        text not null,
    capabilities text not null,
    hash         bytea not null check (length(hash) = 32),
    created_by   text not null,
    created_at   timestamptz not null,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text not null
);
create index api_keys_by_tenant on standfast.api_keys (tenant, id);

create table standfast.api_sessions (
    id           text not null primary key,
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    partition    text not null,
    actor        text not null check (actor <> ''),
    kind         text not null check (kind in ('user', 'service')),
    roles        text not null,
    capabilities text not null,
    hash         bytea not null check (length(hash) = 32),
    credential   text not null,
    created_at   timestamptz not null,
    expires_at   timestamptz not null,
    last_used_at timestamptz not null,
    ended_at     timestamptz
);
create index api_sessions_by_tenant on standfast.api_sessions (tenant, id);
create index api_sessions_by_age on standfast.api_sessions (tenant, expires_at);
create index api_sessions_by_actor on standfast.api_sessions (tenant, actor, id);

create table standfast.api_refusals (
    id         bigint generated always as identity primary key,
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    actor      text not null,
    credential text not null,
    method     text not null,
    path       text not null,
    code       text not null,
    detail     text not null,
    trace      text not null,
    at         timestamptz not null
);
create index api_refusals_by_tenant on standfast.api_refusals (tenant, id);
create index api_refusals_by_age on standfast.api_refusals (tenant, at);

create table standfast.api_requests (
    tenant   text not null check (tenant <> '' and tenant <> '*'),
    actor    text not null,
    key      text not null check (key <> ''),
    mark     bytea not null,
    began_at timestamptz not null,
    status   integer,
    headers  text not null,
    body     bytea,
    primary key (tenant, actor, key)
);
create index api_requests_by_age on standfast.api_requests (tenant, began_at);

-- Fact versions. A decision depends on facts outside its instance: rights (`access`), and organisation settings
-- (`charters`). Each change of such a fact increments its version in the same transaction. A commit names the versions
-- that its decisions used, and fails unless they are still the newest. A tenant without a row has version 0. Rows are
-- never deleted, because a repeated version would prove nothing.

create table standfast.fact_versions (
    tenant  text not null check (tenant <> '' and tenant <> '*'),
    kind    text not null check (kind in ('access', 'charters')),
    version bigint not null,
    primary key (tenant, kind)
) with (fillfactor = 50);

create function standfast.count_fact() returns trigger language plpgsql as $$
begin
    insert into standfast.fact_versions as f (tenant, kind, version)
    values (case when tg_op = 'DELETE' then old.tenant else new.tenant end, tg_argv[0], 1)
    on conflict (tenant, kind) do update set version = f.version + 1;
    return null;
end $$;

create trigger principals_fact after insert or update or delete on standfast.principals for each row
execute function standfast.count_fact('access');
create trigger role_grants_fact after insert or update or delete on standfast.role_grants for each row
execute function standfast.count_fact('access');
create trigger delegations_fact after insert or update or delete on standfast.delegations for each row
execute function standfast.count_fact('access');
create trigger absences_fact after insert or update or delete on standfast.absences for each row
execute function standfast.count_fact('access');
-- A new key or session invalidates no earlier read, and recording its use changes no rights.
create trigger api_keys_fact
after update of tenant, partition, actor, kind, roles, capabilities, expires_at, revoked_at or delete on standfast.api_keys for each row
execute function standfast.count_fact('access');
create trigger api_sessions_fact
after update of tenant, partition, actor, kind, roles, capabilities, credential, expires_at, ended_at on standfast.api_sessions for each row
execute function standfast.count_fact('access');
create trigger api_sessions_gone after delete on standfast.api_sessions for each row
when (old.ended_at is null) execute function standfast.count_fact('access');
create trigger charters_fact after insert on standfast.charters for each row
execute function standfast.count_fact('charters');

-- One partition per month of creation, created ahead of time by housekeeping. A month that already has rows in the
-- default partition, because of a wrong clock, stays there. A partition that another process has just created is
-- accepted.

create function standfast.id_floor(moment timestamptz) returns uuid language sql immutable as $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;

-- Tables whose rows are never deleted cannot be truncated either. A partition can be reached past its parent, and has a
-- trigger of its own.

create function standfast.never_emptied(name text, code text, message text) returns void language plpgsql as $$
begin
    execute format(
        'create trigger %I before truncate on standfast.%I for each statement execute function standfast.refuse(%L, %L)',
        name || '_never_emptied', name, code, message
    );
end $$;

select standfast.never_emptied(name, code, message) from (
    values
        ('events', 'HF101', 'events are append-only'),
        ('events_default', 'HF101', 'events are append-only'),
        ('blueprints', 'HF102', 'a published definition never goes'),
        ('chains', 'HF102', 'a published definition never changes'),
        ('charters', 'HF102', 'a published definition never changes'),
        ('publishing_rules', 'HF102', 'a rule of publishing is replaced by another one, and never rewritten'),
        ('suspensions', 'HF102', 'a suspension is lifted by another line, and never rewritten'),
        ('seals', 'HF108', 'a seal is never broken'),
        ('changes', 'HF120', 'what was changed is never rewritten'),
        ('documents', 'HF133', 'documents are not deleted'),
        ('document_versions', 'HF134', 'a version of a document never changes'),
        ('mutations', 'HF135', 'what was done to a document is never rewritten'),
        ('audit', 'HF136', 'the audit is never rewritten'),
        ('task_decisions', 'HF138', 'what somebody decided never changes')
) as guarded (name, code, message);

create function standfast.make_partitions(moment timestamptz, months integer) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    base text;
    first timestamptz;
begin
    for ahead in 0 .. months loop
        first := date_trunc('month', moment at time zone 'UTC') at time zone 'UTC' + make_interval(months => ahead);
        foreach base in array array['events', 'steps'] loop
            if to_regclass(format('standfast.%I', base || to_char(first at time zone 'UTC', '_YYYY_MM'))) is null then
                begin
                    execute format(
                        'create table standfast.%I partition of standfast.%I for values from (%L) to (%L) %s',
                        base || to_char(first at time zone 'UTC', '_YYYY_MM'), base, standfast.id_floor(first),
                        standfast.id_floor(first + interval '1 month'),
                        case base when 'steps' then 'with (fillfactor = 70)' else '' end
                    );
                    if base = 'events' then
                        perform standfast.never_emptied(base || to_char(first at time zone 'UTC', '_YYYY_MM'), 'HF101', 'events are append-only');
                    end if;
                exception when check_violation or duplicate_table then
                    null;
                end;
            end if;
        end loop;
    end loop;
end $$;

-- Published definitions are graphs, which share one language. All others are deciders, each with its own language.

create function standfast.language_of(tenant text, definition text) returns text language sql stable as $$
    select case when exists (
        select 1 from standfast.definitions d where d.tenant in ('*', language_of.tenant) and d.name = language_of.definition
    ) then '$graph' else language_of.definition end
$$;

-- Instances of the current tenant by search attributes. Under row-level security an operator that might leak values,
-- such as that of the index, runs only after the policy. The owner of the table therefore runs the query, and filters
-- by tenant itself.

create function standfast.instances_having(wanted jsonb) returns setof uuid language sql stable
security definer set search_path = pg_catalog, pg_temp as $$
    select i.id from standfast.instances i where i.attributes @> wanted and i.tenant = current_setting('standfast.tenant', true)
$$;

-- Submits commands from any programming language, ORM or trigger, in the transaction of the caller.

create function standfast.submit(
    definition text, command text, data text, key text default '', instance uuid default null, command_id text default '',
    tenant text default 'default', actor text default current_user, comment text default '', version integer default 1,
    partition text default ''
) returns bigint language sql as $$
    insert into standfast.inbox (
        tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, context, partition,
        created_at
    ) values (
        submit.tenant,
        coalesce(
            submit.instance::text,
            case when submit.partition = '' then '' else replace(replace(submit.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(submit.definition, '%', '%25'), ':', '%3A') || ':' || submit.key
        ),
        submit.definition, submit.key, submit.instance, standfast.language_of(submit.tenant, submit.definition), submit.command,
        submit.version::smallint, convert_to(submit.data, 'UTF8'), submit.command_id, submit.actor, submit.comment,
        -- The caller cannot claim to be the engine.
        convert_to(json_build_object('actor', json_build_object('id', submit.actor), 'partition', submit.partition)::text, 'UTF8'),
        submit.partition, clock_timestamp()
    ) returning id
$$;

-- Access rights. `standfast_engine` commits and claims for all tenants. `standfast_tenant` sees only the tenant named
-- in its transaction. A later migration that creates a table with a tenant calls `wall_off` for it, and grants `select`
-- on it to `standfast_tenant`.

create function standfast.wall_off(name text) returns void language plpgsql as $$
begin
    execute format('alter table standfast.%I enable row level security', name);
    execute format('alter table standfast.%I force row level security', name);
    execute format('create policy engine on standfast.%I to standfast_engine using (true) with check (true)', name);
    execute format(
        'create policy tenant on standfast.%I to standfast_tenant using (tenant = current_setting(''standfast.tenant'', true)) '
        || 'with check (tenant = current_setting(''standfast.tenant'', true))', name
    );
    execute format('grant select, insert, update, delete on standfast.%I to standfast_engine', name);
end $$;

do $$
declare
    name text;
begin
    foreach name in array array[
        'definitions', 'definition_triggers', 'instances', 'events', 'snapshots', 'receipts', 'effects', 'timers', 'inbox', 'dead_letters', 'steps',
        'human_tasks', 'task_people', 'task_decisions', 'documents', 'document_versions', 'mutations', 'audit', 'task_comments', 'subscriptions', 'published_events', 'processes', 'schedules', 'schedule_fires', 'resume_requests',
        'observations', 'pauses', 'notifications', 'notification_reads'
    ] loop
        perform standfast.wall_off(name);
    end loop;
    foreach name in array array['meta', 'workers', 'projections'] loop
        execute format('alter table standfast.%I enable row level security', name);
        execute format('alter table standfast.%I force row level security', name);
        execute format('create policy engine on standfast.%I to standfast_engine using (true) with check (true)', name);
    end loop;
end $$;
-- A command submitted through a connection of the caller must be for this database.
create policy identity on standfast.meta for select to standfast_tenant using (name = 'identity');

-- Shared definitions serve all tenants.
create policy shared on standfast.definitions for select to standfast_tenant using (tenant = '*');

grant usage on schema standfast to standfast_engine, standfast_tenant;
grant select, insert, update, delete on all tables in schema standfast to standfast_engine;
revoke update on standfast.events from standfast_engine;
-- For redactions only, which the trigger distinguishes from other updates.
grant update (data, comment) on standfast.events to standfast_engine;
grant select on standfast.definitions, standfast.instances, standfast.events, standfast.snapshots, standfast.effects, standfast.timers,
    standfast.inbox, standfast.dead_letters, standfast.steps, standfast.human_tasks, standfast.task_people, standfast.task_decisions,
    standfast.documents, standfast.document_versions, standfast.mutations, standfast.audit, standfast.task_comments, standfast.subscriptions, standfast.published_events, standfast.processes, standfast.schedules, standfast.schedule_fires, standfast.resume_requests, standfast.observations,
    standfast.pauses, standfast.notifications, standfast.notification_reads to standfast_tenant;
grant select on standfast.meta to standfast_tenant;
grant insert on standfast.inbox to standfast_tenant;
revoke execute on function standfast.make_partitions, standfast.never_emptied, standfast.instances_having from public;
grant execute on function standfast.make_partitions to standfast_engine;
grant execute on function standfast.instances_having to standfast_tenant;
grant usage on all sequences in schema standfast to standfast_engine, standfast_tenant;

-- People belong to a tenant, like all other data.
do $$
declare
    name text;
begin
    foreach name in array array[
        'principals', 'role_grants', 'delegations', 'absences', 'changes', 'chains', 'charters', 'seals', 'blueprints', 'publishing_rules', 'suspensions'
    ] loop
        perform standfast.wall_off(name);
        execute format('grant select on standfast.%I to standfast_tenant', name);
    end loop;
end $$;
revoke update, delete on standfast.changes, standfast.chains, standfast.charters, standfast.seals, standfast.publishing_rules, standfast.suspensions from standfast_engine;
-- Shared contracts serve all tenants.
create policy shared on standfast.blueprints for select to standfast_tenant using (tenant = '*');

-- Keys and refusals belong to the engine: code of a tenant never sees the hash of a secret.
select standfast.wall_off('api_keys');
select standfast.wall_off('api_sessions');
select standfast.wall_off('api_refusals');
select standfast.wall_off('api_requests');
select standfast.wall_off('fact_versions');
revoke delete on standfast.api_keys, standfast.fact_versions from standfast_engine;

-- Processes for reports, read-only, with the names and columns of their specification. Readers see only what they may
-- see in the underlying tables, because row-level security applies. Events are included if they are JSON, which is the
-- default codec.
create index receipts_of_processes on standfast.receipts (instance) where scope = '%processes';

-- The idempotency key with which a process was started. Receipts belong to the engine, so the owner of the table reads
-- it.
create function standfast.start_key(tenant text, instance uuid) returns text language sql stable
security definer set search_path = pg_catalog, pg_temp as $$
    select r.key from standfast.receipts r
    where r.instance = start_key.instance and r.tenant = start_key.tenant and r.scope = '%processes' limit 1
$$;

create view standfast.workflow_instances with (security_invoker = true) as
select
    i.id,
    i.definition as workflow_id,
    i.tenant as tenant_id,
    coalesce(i.partition, '') as partition_id,
    i.started_by as subject_id,
    p.current_step,
    case i.status when 'running' then 'active' when 'paused' then 'suspended' when 'aborted' then 'cancelled' else i.status end as status,
    convert_from(p.state, 'UTF8')::json as state,
    i.commits as version,
    standfast.start_key(i.tenant, i.id) as idempotency_key,
    i.created_at,
    i.updated_at,
    i.deadline_at as expires_at,
    i.definition_version as workflow_version,
    coalesce(i.key, '') as business_key,
    case i.status when 'completed' then i.reason else '' end as outcome,
    i.ended_at
from standfast.instances i
left join standfast.processes p on p.instance = i.id and p.number = 1
where i.kind = 'process';

create view standfast.workflow_events with (security_invoker = true) as
with kinds (type, place, event, by) as (
    -- The entries for an event. The actor is the one named in the event, or the one of the command, or the engine.
    values
        ('step_started', 0, 'step_entered', 'first'),
        ('step_completed', 0, 'step_entered', 'first'),
        ('step_completed', 1, 'step_completed', 'system'),
        ('step_answered', 0, 'step_completed', 'giver'),
        ('step_answered', 1, '', 'actor'),
        ('task_decided', 0, '', 'actor'),
        ('task_decision_withdrawn', 0, 'answer_withdrawn', 'actor'),
        ('step_failed', 0, 'step_failed', 'system'),
        ('step_paused', 0, 'step_failed', 'system'),
        ('notification_failed', 0, 'step_failed', 'system'),
        ('step_repaired', 0, '', 'actor'),
        ('data_changed', 0, 'data_changed', 'actor'),
        ('move_back_started', 0, 'moved_back', 'actor'),
        ('signal_received', 0, '', 'giver'),
        ('event_received', 0, '', 'publisher'),
        ('timeout', 0, 'timeout', 'system'),
        ('workflow_cancelled', 0, 'cancelled', 'requested_by'),
        ('workflow_aborted', 0, 'cancelled', 'requested_by'),
        ('workflow_started', 0, 'workflow_started', 'giver'),
        ('workflow_completed', 0, 'workflow_completed', 'giver'),
        ('workflow_failed', 0, 'workflow_failed', 'giver'),
        ('workflow_paused', 0, 'workflow_paused', 'giver'),
        ('workflow_resumed', 0, 'workflow_resumed', 'giver')
),
told as (
    select
        e.instance, e.sequence, e.tenant, e.type, e.at, e.actor, e.comment, e.cause, e.on_behalf_of, i.definition, i.definition_version,
        case when e.data >= '\x7b'::bytea and e.data < '\x7c'::bytea then convert_from(e.data, 'UTF8')::json end as data
    from standfast.events e
    join standfast.instances i on i.id = e.instance
    where i.kind = 'process'
),
noded as (
    select
        t.*, k.place, k.event, k.by, coalesce(s.wait_kind, '') = 'human' as is_human,
        coalesce(nullif(t.data ->> 'node', ''), s.node) as node
    from told t
    join kinds k on k.type = t.type
    left join standfast.steps s on s.instance = t.instance and s.number = (t.data ->> 'step')::integer
    where t.data is not null
),
placed as (
    -- A call between an answer and the next step belongs to the answered step.
    select
        t.*,
        case when coalesce(strpos(t.node, '/'), 0) = 0 then t.node else coalesce(
            (
                select convert_from(d.compiled, 'UTF8')::json #>> array['nodes', t.node, 'metadata', 'step'] from standfast.definitions d
                where d.tenant in (t.tenant, '*') and d.name = t.definition and d.version = t.definition_version
                order by d.tenant = '*' limit 1
            ),
            t.node
        ) end as step
    from noded t
),
entries as (
    select
        p.*,
        case
            when p.event <> '' then p.event
            when p.type = 'signal_received' then p.data ->> 'name'
            when p.type = 'event_received' then p.data ->> 'event'
            when p.type = 'step_repaired' then case (p.data ->> 'repair') when 'skip' then 'step_skipped' when 'complete' then 'step_completed' else 'retry' end
            when (p.data ->> 'overridden') = 'true' then 'overridden'
            else p.data ->> 'outcome'
        end as name,
        -- The combined result of several approvers is not the answer of one of them if the last one decided otherwise.
        coalesce(p.type = 'step_answered' and p.place = 1 and p.data -> 'decisions' -> -1 ->> 'status' <> p.data ->> 'outcome', false) as is_result,
        case p.by
            when 'system' then 'system'
            when 'first' then case when p.sequence = 2 or (p.data ->> 'step')::integer = 1 then p.actor else 'system' end
            when 'giver' then p.actor
            when 'actor' then coalesce(p.data ->> 'actor', p.actor)
            when 'publisher' then coalesce(nullif(p.data ->> 'publisher', ''), 'system')
            else coalesce(nullif(p.data ->> 'requested_by', ''), p.actor)
        end as who
    from placed p
    where case p.type
        when 'step_started' then p.step = p.node
        when 'step_completed' then case
            when coalesce(p.data ->> 'by', '') <> '' then false
            when p.data ->> 'effect' is not null then true
            when p.data ->> 'node' is not null or p.place = 0 then false
            else not p.is_human and p.step = p.node
        end
        when 'step_answered' then p.is_human
        when 'task_decided' then not exists (
            select 1 from standfast.events n
            where n.instance = p.instance and n.sequence = p.sequence + 1 and n.cause = p.cause and n.type = 'step_answered'
                and convert_from(n.data, 'UTF8')::json ->> 'outcome' = p.data ->> 'outcome'
        )
        when 'step_failed' then coalesce(p.data ->> 'reason', '') = ''
        when 'notification_failed' then not p.is_human
        else true
    end
)
select
    n.instance::text || ':' || n.sequence || case when n.place = 1 and (n.type = 'step_answered' or n.data ->> 'effect' is not null) then '.1' else '' end as id,
    n.instance as workflow_instance_id,
    coalesce(
        n.step,
        (
            -- A change of the whole process belongs to its current step.
            select case when strpos((convert_from(l.data, 'UTF8')::json ->> 'node'), '/') = 0 then (convert_from(l.data, 'UTF8')::json ->> 'node') else coalesce(
                (
                select convert_from(d.compiled, 'UTF8')::json #>> array['nodes', (convert_from(l.data, 'UTF8')::json ->> 'node'), 'metadata', 'step'] from standfast.definitions d
                where d.tenant in (n.tenant, '*') and d.name = n.definition and d.version = n.definition_version
                order by d.tenant = '*' limit 1
            ),
                (convert_from(l.data, 'UTF8')::json ->> 'node')
            ) end
            from standfast.events l
            where l.instance = n.instance and l.sequence < n.sequence and l.type in ('step_started', 'step_completed')
                and (convert_from(l.data, 'UTF8')::json ->> 'node') is not null and substr((convert_from(l.data, 'UTF8')::json ->> 'node'), 1, 1) <> '#'
            order by l.sequence desc limit 1
        ),
        ''
    ) as step_id,
    n.name as event,
    case when n.is_result then 'system' else n.who end as actor_id,
    case
        when n.is_result or (n.type = 'step_answered' and n.place = 0) then '{}'::json
        when n.type in ('step_answered', 'task_decided') then case coalesce(json_typeof(n.data -> 'data'), 'null')
            when 'object' then n.data -> 'data'
            when 'null' then '{}'::json
            else json_build_object('data', n.data -> 'data')
        end
        when n.type in ('signal_received', 'event_received') then case coalesce(json_typeof(n.data -> 'payload'), 'null')
            when 'object' then n.data -> 'payload'
            when 'null' then '{}'::json
            else json_build_object('data', n.data -> 'payload')
        end
        when n.type = 'data_changed' then n.data -> 'patch'
        when n.name = 'step_failed' then json_build_object('error', n.data -> 'error')
        when substr(n.type, 1, 8) = 'workflow' and n.name <> 'cancelled' then (n.data::jsonb - array['has_row', 'starter', 'may'])::json
        else '{}'::json
    end as data,
    case
        when n.is_result then ''
        when n.type = 'step_answered' and n.place = 0 then n.comment
        when n.type in ('step_answered', 'task_decided') then coalesce(nullif(n.data ->> 'comment', ''), n.comment)
        when n.by in ('actor', 'requested_by') then coalesce(nullif(n.data ->> 'reason', ''), n.comment)
        when n.by in ('system', 'first', 'publisher') and n.who = 'system' then ''
        else n.comment
    end as comment,
    n.at as timestamp,
    n.tenant as tenant_id,
    case
        when n.is_result then ''
        else coalesce(nullif(n.data ->> 'on_behalf_of', ''), case when n.who = n.actor then n.on_behalf_of end, '')
    end as on_behalf_of,
    case when substr(n.type, 1, 8) = 'workflow' and n.name <> 'cancelled' then 'lifecycle' else 'step' end as category,
    n.sequence * 2 + n.place as sequence
from entries n;

revoke execute on function standfast.start_key from public;
grant execute on function standfast.start_key to standfast_engine, standfast_tenant;
grant select on standfast.workflow_instances, standfast.workflow_events to standfast_engine, standfast_tenant;
