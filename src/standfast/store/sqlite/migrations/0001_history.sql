-- The first schema. Takes the write lock of the file, which is empty.
--
-- `instances` has one row per run, and `events` is the source of truth about it. `effects`, `timers` and `inbox` hold
-- only pending work: a row is deleted when its work is done. `steps`, `human_tasks`, `task_people`, `task_decisions`,
-- `task_comments`, `subscriptions`, `published_events`, `processes`, `schedules`, `schedule_fires`, `dead_letters` and
-- `resume_requests` are projections that a commit writes together with its events. Of resume requests this holds only
-- for executed ones. `receipts` make commands idempotent. Times are UTC text of fixed width, so that they compare as
-- text.
--
-- `language`, `type` and `version` of an effect, a timer or a message are the message type that a process must be able
-- to read before it claims the row. They come first in the indexes for claims, so that a process skips unreadable rows
-- without examining them.
--
-- `context` of an effect, a timer or a message holds the actor, the trace and the partition of the tenant, as JSON.
-- Null means that the engine itself acts. `trace` and `on_behalf_of` of an event are null without a value, so that an
-- engine without them writes nothing for them.

create table meta (
    name  text not null primary key,
    value text not null
) strict, without rowid;

create table definitions (
    tenant       text not null check (tenant <> ''),
    name         text not null,
    version      text not null,
    kind         text not null,
    source       blob not null,
    compiled     blob not null,
    hash         text not null,
    compiler     text not null,
    status       text not null check (status in ('draft', 'published', 'retired')),
    media_type   text not null,
    description  text not null,
    published_by text not null,
    published_at text not null,
    archived_by  text not null default '',
    archived_at  text,
    archived_why text not null default '',
    primary key (tenant, name, version)
) strict, without rowid;

-- Definitions with a version that an event starts. They are written with the definition, so that an event need not read
-- all definitions.

create table definition_triggers (
    event      text not null,
    tenant     text not null check (tenant <> ''),
    definition text not null,
    primary key (event, tenant, definition)
) strict, without rowid;

create trigger definitions_immutable before update on definitions
when old.status <> 'draft' and (
    new.source <> old.source or new.media_type <> old.media_type or new.compiled <> old.compiled or new.hash <> old.hash
    or new.kind <> old.kind or new.compiler <> old.compiler or new.status = 'draft'
    or new.tenant <> old.tenant or new.name <> old.name or new.version <> old.version
)
begin select raise(abort, 'HF102 a published definition never changes'); end;

create table instances (
    id                 text not null primary key,
    tenant             text not null check (tenant <> ''),
    definition         text not null,
    definition_version text not null,
    kind               text not null,
    key                text,
    status             text not null,
    reason             text not null,
    begun              integer not null,
    version            integer not null,
    issued             integer not null,
    commits            integer not null,
    parent             text,
    created_at         text not null,
    updated_at         text not null,
    ended_at           text,
    partition          text,
    started_by         text not null,
    paused_at          text,
    deadline_at        text,
    attributes         text,
    next_step          text
) strict, without rowid;
-- For lookups, and for lists by key alone.
create unique index instances_by_key on instances (tenant, key, definition, coalesce(partition, '')) where key is not null;
-- Lists read each status newest first, instances that have begun and those that have not.
create index instances_by_definition on instances (tenant, definition, definition_version, status, begun, id);
create index instances_by_status on instances (tenant, kind, status, begun, id);
create index instances_of_partition on instances (tenant, partition, kind, definition, status, begun, id) where partition is not null;
-- For lists by end reason, which most instances do not have.
create index instances_by_reason on instances (tenant, reason, id) where ended_at is not null and reason <> '';
-- For lists by search attribute: the few instances that have any, newest first.
create index instances_by_attribute on instances (tenant, id) where attributes is not null;
-- For lists of processes: by status within a partition of the tenant, and by their starter.
create index instances_processes on instances (tenant, coalesce(partition, ''), status, id) where kind = 'process';
create index instances_by_starter on instances (tenant, started_by, id) where kind = 'process';
-- For lists of active processes by deadline, of all tenants and of one.
create index instances_expiring on instances (deadline_at, id)
    where kind = 'process' and status = 'running' and deadline_at is not null;
create index instances_expiring_of_tenant on instances (tenant, deadline_at, id)
    where kind = 'process' and status = 'running' and deadline_at is not null;
create index instances_by_parent on instances (parent, status, id) where parent is not null;
-- For retention: instances that ended long ago are found without reading active ones.
create index instances_by_end on instances (ended_at) where ended_at is not null;
-- For lists of paused instances, all of them or for one reason: the most recently paused first.
create index instances_by_pause on instances (tenant, paused_at desc, id desc) where paused_at is not null;
create index instances_by_pause_reason on instances (tenant, reason, paused_at desc, id desc) where paused_at is not null;
-- For lists of paused instances by next step, the most recently paused first.
create index instances_by_next_step on instances (tenant, next_step, paused_at desc, id desc) where next_step is not null;
-- For the loop that resumes paused instances of all tenants.
create index instances_late on instances (reason, paused_at) where paused_at is not null;
create index instances_events_by_end on instances (ended_at) where kind = 'event' and ended_at is not null;

-- A trigger on named columns costs nothing for statements that do not write them.
create trigger instances_identity before update of id, tenant, definition, kind, key, created_at, partition on instances
when new.id <> old.id or new.tenant <> old.tenant or new.definition <> old.definition or new.kind <> old.kind
    or new.key is not old.key or new.created_at <> old.created_at or new.partition is not old.partition
begin select raise(abort, 'HF103 the identity of an instance never changes'); end;
create trigger instances_history before update of version on instances when new.version < old.version
begin select raise(abort, 'HF103 the identity of an instance never changes'); end;
create trigger instances_final before update of status, ended_at on instances
when old.kind = 'envelope' and old.ended_at is not null and (new.status <> old.status or new.ended_at is null)
    and not exists (select 1 from retention where instance = old.id)
begin select raise(abort, 'HF107 a document that has ended stays as it ended'); end;

create table events (
    position     integer primary key autoincrement,
    instance     text not null,
    sequence     integer not null,
    tenant       text not null check (tenant <> ''),
    type         text not null,
    version      integer not null,
    data         blob not null,
    at           text not null,
    actor        text not null,
    comment      text not null,
    cause        text not null,
    on_behalf_of text,
    trace        text,
    unique (instance, sequence)
) strict;

create table retention (instance text not null primary key) strict, without rowid;
-- The instance whose values are being redacted. A row exists only during such a transaction.
create table redaction (instance text not null primary key) strict, without rowid;

create trigger events_never_change before update on events
when not exists (select 1 from redaction where instance = old.instance)
    or new.position <> old.position or new.instance <> old.instance or new.sequence <> old.sequence or new.tenant <> old.tenant
    or new.type <> old.type or new.version <> old.version or new.at <> old.at or new.actor <> old.actor or new.cause <> old.cause
    or new.on_behalf_of is not old.on_behalf_of or new.trace is not old.trace
begin select raise(abort, 'HF101 events are append-only'); end;
create trigger events_never_go before delete on events
when not exists (select 1 from retention where instance = old.instance)
begin select raise(abort, 'HF101 events are append-only'); end;

create table snapshots (
    instance      text not null primary key,
    tenant        text not null,
    version       integer not null,
    state_version integer not null,
    data          blob not null,
    fingerprint   text not null
) strict, without rowid;

create table receipts (
    tenant     text not null check (tenant <> ''),
    scope      text not null,
    key        text not null,
    instance   text,
    version    integer not null,
    digest     blob not null,
    created_at text not null,
    primary key (tenant, scope, key)
) strict, without rowid;
create index receipts_by_age on receipts (created_at);

create table effects (
    instance       text not null,
    number         integer not null,
    tenant         text not null check (tenant <> ''),
    definition     text not null,
    language       text not null,
    handler        text not null,
    type           text not null,
    version        integer not null,
    data           blob not null,
    options        blob not null,
    priority       integer not null check (priority between 0 and 100),
    rank           integer not null,
    parked_until   text,
    owner          text,
    claimed_at     text,
    fence          integer not null,
    attempts       integer not null,
    error          text not null,
    created_at     text not null,
    stop_requested integer not null default 0,
    context        blob,
    held_at        text,
    primary key (instance, number)
) strict, without rowid;
create index effects_ready on effects (handler, language, type, version, rank)
    where owner is null and parked_until is null and held_at is null;
create index effects_parked on effects (parked_until) where parked_until is not null;
create index effects_owned on effects (owner) where owner is not null;
create index effects_held on effects (tenant, definition) where held_at is not null;

create table timers (
    instance      text not null,
    key           text not null,
    number        integer not null,
    tenant        text not null check (tenant <> ''),
    definition    text not null,
    language      text not null,
    type          text not null,
    version       integer not null,
    data          blob not null,
    due_at        text not null,
    attempts      integer not null,
    error         text not null,
    claimed_until text,
    context       blob,
    held_at       text,
    frozen_at     text,
    primary key (instance, key)
) strict, without rowid;
create index timers_due on timers (language, type, version, due_at) where held_at is null;
create index timers_held on timers (tenant, definition) where held_at is not null;

create table inbox (
    id                 integer primary key autoincrement,
    tenant             text not null check (tenant <> '' and tenant <> '*'),
    target             text not null,
    definition         text not null,
    key                text not null,
    instance           text,
    language           text not null,
    type               text not null,
    version            integer not null,
    data               blob not null,
    command_id         text not null,
    actor              text not null,
    comment            text not null check (length(cast(comment as blob)) <= 65536),
    created_at         text not null,
    definition_version text not null default '',
    parent             text,
    attempts           integer not null default 0,
    error              text not null default '',
    due_at             text,
    claimed_until      text,
    context            blob,
    partition          text not null default ''
) strict;
create index inbox_by_target on inbox (tenant, target, id);
create index inbox_by_word on inbox (language, type, version, id);

create table dead_letters (
    id                 integer primary key autoincrement,
    tenant             text not null check (tenant <> ''),
    source             text not null check (source in ('step', 'compensation', 'effect', 'timer', 'inbox')),
    instance           text,
    definition         text not null,
    key                text not null,
    number             integer not null,
    name               text not null,
    language           text not null default '',
    type               text not null,
    version            integer not null default 1,
    data               blob not null,
    options            blob not null default x'',
    priority           integer not null default 0,
    attempts           integer not null,
    fence              integer not null default 0,
    reason             text not null,
    error              text not null,
    actor              text not null default '',
    definition_version text not null default '',
    parent             text,
    command_id         text not null default '',
    comment            text not null default '',
    created_at         text not null,
    context            blob,
    partition          text not null default ''
) strict;
create index dead_letters_by_instance on dead_letters (instance, source, number);

create table steps (
    instance    text not null,
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
    input       blob,
    output      blob,
    opened_at   text not null,
    moved_at    text not null,
    started_at  text,
    primary key (instance, number)
) strict, without rowid;

create trigger steps_identity before update of instance, number, tenant, node, token, visit, kind, compensates, retry_of on steps
when new.instance <> old.instance or new.number <> old.number or new.tenant <> old.tenant or new.node <> old.node
    or new.token <> old.token or new.visit <> old.visit or new.kind <> old.kind or new.compensates is not old.compensates
    or new.retry_of is not old.retry_of
begin select raise(abort, 'HF104 the identity of a step never changes'); end;
create trigger steps_final before update of status on steps
when old.status in ('completed', 'failed', 'skipped', 'cancelled') and new.status <> old.status
begin select raise(abort, 'HF105 a step that has ended never moves again'); end;

create table human_tasks (
    instance         text not null,
    number           integer not null,
    tenant           text not null check (tenant <> ''),
    definition       text not null,
    key              text not null,
    partition        text not null,
    node             text not null,
    subject          text not null,
    role             text not null,
    requester        text not null,
    kept_out         blob,
    agreement        text not null,
    stage            text not null,
    status           text not null,
    claimed_by       text not null,
    due_at           text,
    data             blob,
    guarded          blob,
    resolution       blob,
    document_version text,
    outcome          text,
    actor            text not null,
    comment          text not null,
    opened_at        text not null,
    closed_at        text,
    primary key (instance, number)
) strict, without rowid;
create index human_tasks_open on human_tasks (tenant, opened_at, instance, number) where closed_at is null;
create index human_tasks_by_definition on human_tasks (tenant, definition, opened_at, instance, number) where closed_at is null;
create index human_tasks_by_key on human_tasks (tenant, key, opened_at, instance, number) where closed_at is null;
create index human_tasks_by_requester on human_tasks (tenant, requester, opened_at, instance, number) where closed_at is null;
create index human_tasks_due on human_tasks (tenant, due_at) where closed_at is null and due_at is not null;
create trigger human_tasks_final before update on human_tasks
when old.closed_at is not null
begin select raise(abort, 'HF106 a decision that was made never changes'); end;

-- Inboxes: a row for each approver of a task, with the reason. It is kept after the task is closed.
create table task_people (
    instance   text not null,
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
    is_open    integer not null,
    decided    text not null,
    opened_at  text not null,
    primary key (instance, number, place)
) strict, without rowid;
create index task_people_open on task_people (tenant, kind, name, opened_at, instance, number) where is_open;
-- For lists of processes by their approvers, newest first.
create index task_people_instances on task_people (tenant, kind, name, instance) where is_open;
create index task_people_deputed on task_people (tenant, instance, number, place) where is_open and stands_for <> '';

create table task_decisions (
    instance         text not null,
    number           integer not null,
    sequence         integer not null,
    tenant           text not null check (tenant <> ''),
    partition        text not null,
    actor            text not null,
    on_behalf_of     text not null,
    outcome          text not null,
    comment          text not null,
    data             blob,
    document_version text,
    is_withdrawn     integer not null,
    is_applied       integer not null,
    applied          integer,
    decided_at       text not null,
    primary key (instance, number, sequence)
) strict, without rowid;
create index task_decisions_by_actor on task_decisions (tenant, actor, decided_at, instance, number, sequence);

-- Documents. Each is the run of its workflow. `documents` holds the current state, `document_versions` the earlier
-- contents, `mutations` the changes, and `audit` the actor, tenant, time (`at`) and reason of each action. All but the
-- first are never updated.
create table documents (
    instance      text not null,
    type          text not null check (type <> ''),
    id            text not null check (id <> ''),
    tenant        text not null check (tenant <> ''),
    definition    text not null,
    partition     text not null,
    status        text not null,
    version       integer not null,
    data          blob not null,
    amended_from  text not null,
    superseded_by text not null,
    requester     text not null,
    round         integer not null,
    is_resting    integer not null,
    is_amending   integer not null,
    updated_by    text not null,
    created_at    text not null,
    updated_at    text not null,
    primary key (instance, type, id)
) strict, without rowid;
create unique index documents_by_id on documents (tenant, type, id, partition);
create index documents_by_status on documents (tenant, type, status, instance);
create index documents_by_type on documents (tenant, type, instance);
create index documents_by_requester on documents (tenant, requester, type, instance);
create trigger documents_identity before update of instance, type, id, tenant, definition, amended_from, requester on documents
when new.instance <> old.instance or new.type <> old.type or new.id <> old.id or new.tenant <> old.tenant
    or new.definition <> old.definition or new.amended_from <> old.amended_from or new.requester <> old.requester
begin select raise(abort, 'HF130 the identity of a document never changes'); end;
create trigger documents_history before update of version on documents when new.version < old.version
begin select raise(abort, 'HF131 the version of a document never goes back'); end;
create trigger documents_final before update on documents when old.superseded_by <> ''
begin select raise(abort, 'HF132 a document that another one has taken the place of never changes'); end;
create trigger documents_never_go before delete on documents
when not exists (select 1 from retention where instance = old.instance)
begin select raise(abort, 'HF133 documents are not deleted'); end;

create table document_versions (
    instance   text not null,
    version    integer not null,
    tenant     text not null check (tenant <> ''),
    status     text not null,
    data       blob not null,
    data_hash  text not null,
    mutation   integer not null,
    written_by text not null,
    written_at text not null,
    primary key (instance, version)
) strict, without rowid;
create trigger document_versions_never_change before update on document_versions
begin select raise(abort, 'HF134 a version of a document never changes'); end;
create trigger document_versions_never_go before delete on document_versions
when not exists (select 1 from retention where instance = old.instance)
begin select raise(abort, 'HF134 a version of a document never changes'); end;

create table mutations (
    instance       text not null,
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
    changes        blob,
    made_at        text not null,
    primary key (instance, sequence)
) strict, without rowid;
create trigger mutations_never_change before update on mutations
begin select raise(abort, 'HF135 what was done to a document is never rewritten'); end;
create trigger mutations_never_go before delete on mutations
when not exists (select 1 from retention where instance = old.instance)
begin select raise(abort, 'HF135 what was done to a document is never rewritten'); end;

create table audit (
    instance text not null,
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
    at       text not null,
    primary key (instance, sequence)
) strict, without rowid;
create trigger audit_never_change before update on audit
begin select raise(abort, 'HF136 the audit is never rewritten'); end;
create trigger audit_never_go before delete on audit
when not exists (select 1 from retention where instance = old.instance)
begin select raise(abort, 'HF136 the audit is never rewritten'); end;

create trigger task_decisions_applied before update of applied on task_decisions
when old.applied is not null and new.applied is not old.applied
begin select raise(abort, 'HF137 an approval is used up or void once and for all'); end;
create trigger task_decisions_never_change before update of actor, on_behalf_of, outcome, document_version, decided_at on task_decisions
when (old.actor, old.on_behalf_of, old.outcome, old.document_version, old.decided_at) is not (new.actor, new.on_behalf_of, new.outcome, new.document_version, new.decided_at)
begin select raise(abort, 'HF138 what somebody decided never changes'); end;
create trigger task_decisions_never_go before delete on task_decisions
when not exists (select 1 from retention where instance = old.instance)
begin select raise(abort, 'HF138 what somebody decided never changes'); end;

create table task_comments (
    instance    text not null,
    number      integer not null,
    sequence    integer not null,
    tenant      text not null check (tenant <> ''),
    actor       text not null,
    on_behalf_of text not null,
    text        text not null,
    is_question integer not null,
    written_at  text not null,
    primary key (instance, number, sequence)
) strict, without rowid;

create table subscriptions (
    instance    text not null,
    number      integer not null,
    place       integer not null,
    tenant      text not null check (tenant <> ''),
    definition  text not null,
    partition   text not null,
    kind        text not null,
    signal      text not null,
    correlation text not null,
    opened_at   text not null,
    primary key (instance, number, place)
) strict, without rowid;
create index subscriptions_by_signal on subscriptions (tenant, kind, signal, correlation, instance, number, place);

create table published_events (
    instance     text not null,
    number       integer not null,
    tenant       text not null check (tenant <> ''),
    partition    text not null,
    id           text not null,
    event        text not null,
    correlation  text not null,
    match_one    integer not null,
    expires_at   text not null,
    data         blob not null,
    published_at text not null,
    primary key (instance, number)
) strict, without rowid;
create index published_events_by_key on published_events (tenant, event, correlation, published_at, instance);
create index published_events_by_time on published_events (tenant, published_at, instance);

-- The current step of a process, and its state as callers see it. Both follow from its events.
create table processes (
    instance     text not null,
    number       integer not null,
    tenant       text not null check (tenant <> ''),
    current_step text not null,
    state        blob not null,
    opened_at    text not null,
    moved_at     text not null,
    primary key (instance, number)
) strict, without rowid;

create table schedules (
    instance  text not null,
    number    integer not null,
    tenant    text not null check (tenant <> ''),
    workflow  text not null,
    plan      blob not null,
    standing  blob not null,
    opened_at text not null,
    moved_at  text not null,
    primary key (instance, number)
) strict, without rowid;

create table schedule_fires (
    instance text not null,
    place    integer not null,
    tenant   text not null check (tenant <> ''),
    at       text not null,
    until    text,
    why      text not null,
    status   text not null,
    detail   text not null,
    run      text,
    document text not null,
    backfill integer not null,
    told_at  text not null,
    primary key (instance, place)
) strict, without rowid;

-- Pauses and their scope. `*` means all tenants. An empty definition, version or step means all of them. Effects and
-- timers follow these rows: `held_at` is set while a pause covers the row, and `frozen_at` of a timer while a pause
-- stops its clock. `walks` counts the completed passes since the pause began or ended: 2 means that all rows are
-- updated. Ended pauses are kept.
create table pauses (
    id         integer primary key autoincrement,
    tenant     text not null check (tenant <> ''),
    definition text not null,
    version    text not null,
    step       text not null,
    clock      text not null check (clock in ('run_on', 'stand_still')),
    reason     text not null,
    paused_by  text not null,
    paused_at  text not null,
    until      text,
    ended_at   text,
    ended_by   text not null default '',
    ended_why  text not null default '',
    walks      integer not null default 0
) strict;
create unique index pauses_standing on pauses (tenant, definition, version, step) where ended_at is null;
create index pauses_walking on pauses (id) where ended_at is null or walks < 2;
create table resume_requests (
    instance        text not null,
    id              text not null,
    tenant          text not null check (tenant <> ''),
    triggered_by    text not null check (triggered_by in ('manual', 'approval', 'event', 'timeout')),
    triggered_by_id text not null,
    trigger_data    blob,
    reason          text not null,
    requested_by    text not null,
    context         blob,
    outcome         text not null check (outcome in ('open', 'executed', 'refused')),
    requested_at    text not null,
    executed_at     text,
    error_message   text not null default '',
    on_behalf_of    text not null default '',
    about           text not null default '',
    primary key (instance, id)
) strict, without rowid;
create index resume_requests_open on resume_requests (requested_at, instance) where outcome = 'open';

create table workers (
    id          text not null primary key,
    name        text not null,
    handlers    text not null,
    started_at  text not null,
    alive_until text not null
) strict, without rowid;

create table projections (
    name       text not null primary key,
    position   integer not null,
    updated_at text,
    error      text not null,
    failed_at  text
) strict, without rowid;

create table observations (
    id          integer primary key autoincrement,
    tenant      text not null check (tenant <> ''),
    instance    text not null,
    definition  text not null,
    input       text not null,
    from_status text not null,
    to_status   text not null,
    skipped     integer not null,
    at          text not null
) strict;
create index observations_by_instance on observations (instance, id);

-- In-app notifications, written at delivery. The key prevents a second delivery.
create table notifications (
    id         integer primary key autoincrement,
    tenant     text not null check (tenant <> ''),
    key        text not null,
    kind       text not null check (kind in ('user', 'role')),
    recipient  text not null,
    instance   text not null,
    step       integer not null,
    partition  text not null,
    occasion   text not null,
    kept_out   text not null,
    subject    text not null,
    body       text not null,
    created_at text not null,
    read_at    text,
    unique (tenant, key)
) strict;
create index notifications_by_recipient on notifications (tenant, kind, recipient, id);
create index notifications_unread on notifications (tenant, kind, recipient, id) where read_at is null;
create index notifications_by_instance on notifications (instance, occasion);

-- Readers of notifications to a role. A notification to a user has its own read mark.
create table notification_reads (
    notification integer not null,
    reader       text not null,
    tenant       text not null check (tenant <> ''),
    read_at      text not null,
    primary key (notification, reader)
) strict, without rowid;

-- People. `principals` are never deleted but deactivated. A grant, a delegation or an absence is never deleted either:
-- its period ends. `chains` are templates of approvals, whose versions never change.

create table principals (
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    id         text not null check (id <> ''),
    kind       text not null check (kind in ('user', 'service')),
    name       text not null,
    email      text not null,
    is_active  integer not null,
    manager    text not null check (manager <> id),
    attributes text not null,
    primary key (tenant, id)
) strict, without rowid;
create index principals_inactive on principals (tenant, id) where is_active = 0;

create table role_grants (
    id        integer primary key autoincrement,
    tenant    text not null check (tenant <> '' and tenant <> '*'),
    principal text not null,
    role      text not null check (role <> ''),
    begins_at text not null,
    ends_at   text
) strict;
create index role_grants_by_role on role_grants (tenant, role, principal);
create index role_grants_by_principal on role_grants (tenant, principal, role);

create table delegations (
    id         integer primary key autoincrement,
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    giver      text not null,
    receiver   text not null check (receiver <> giver),
    role       text not null,
    definition text not null,
    reason     text not null,
    begins_at  text not null,
    ends_at    text
) strict;
create index delegations_by_giver on delegations (tenant, giver, id);
create index delegations_by_receiver on delegations (tenant, receiver, id);

create table absences (
    id        integer primary key autoincrement,
    tenant    text not null check (tenant <> '' and tenant <> '*'),
    principal text not null,
    reason    text not null,
    begins_at text not null,
    ends_at   text
) strict;
create index absences_by_principal on absences (tenant, principal, id);

-- Audit of changes to people, definitions, keys, rules and pauses. It is written in the transaction of the change.
-- `mark` identifies the call, so that a repeated call is one change. The tenant `*` stands for shared data. Changes of
-- instances are events.

create table changes (
    id           integer primary key autoincrement,
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
    at           text not null,
    mark         text not null unique
) strict;
create index changes_by_tenant on changes (tenant, id);
create index changes_by_subject on changes (tenant, subject, name, id);
create index changes_by_actor on changes (tenant, actor, id);
create trigger changes_never_change before update on changes
begin select raise(abort, 'HF120 what was changed is never rewritten'); end;
create trigger changes_never_go before delete on changes
begin select raise(abort, 'HF120 what was changed is never rewritten'); end;

create table chains (
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    name         text not null check (name <> ''),
    version      integer not null,
    stages       blob not null,
    description  text not null,
    published_by text not null,
    published_at text not null,
    primary key (tenant, name, version)
) strict, without rowid;
create trigger chains_never_change before update on chains
begin select raise(abort, 'HF102 a published definition never changes'); end;
create trigger chains_never_go before delete on chains
begin select raise(abort, 'HF102 a published definition never changes'); end;

-- Settings of organisations for their documents: rules for a type (`rules:<type>`), and `settings`. A version never
-- changes, and the newest one is active.

create table charters (
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    name         text not null check (name <> ''),
    version      integer not null,
    body         blob not null,
    comment      text not null,
    published_by text not null,
    published_at text not null,
    primary key (tenant, name, version)
) strict, without rowid;
create trigger charters_never_change before update on charters
begin select raise(abort, 'HF102 a published definition never changes'); end;
create trigger charters_never_go before delete on charters
begin select raise(abort, 'HF102 a published definition never changes'); end;

-- Seals. Each records the length of an instance's history and the end of its hash chain. The seals of a tenant form a
-- chain of their own. The table is append-only, and seals outlive their instances.

create table seals (
    tenant    text not null check (tenant <> '' and tenant <> '*'),
    number    integer not null check (number >= 1),
    instance  text not null,
    version   integer not null,
    digest    text not null,
    link      text not null,
    sealed_by text not null,
    sealed_at text not null,
    primary key (tenant, number)
) strict, without rowid;
create index seals_by_instance on seals (tenant, instance, number);
create trigger seals_never_change before update on seals
begin select raise(abort, 'HF108 a seal is never broken'); end;
create trigger seals_never_go before delete on seals
begin select raise(abort, 'HF108 a seal is never broken'); end;

-- Document definitions: contracts with their envelopes, bodies of organisations for the slots, and the artifacts
-- compiled from both. The graph of an effective one is in `definitions`, under the version `workflow`. A draft has the
-- version 0. Envelopes are the defaults and never change. A published version can only be archived. `publishing_rules`
-- is append-only, and the last row of a tenant applies.

create table blueprints (
    id               text not null primary key,
    tenant           text not null check (tenant <> ''),
    type             text not null check (type <> ''),
    kind             text not null check (kind in ('envelope', 'body', 'effective')),
    version          integer not null check (version >= 0),
    status           text not null check (status in ('draft', 'published', 'archived')),
    is_default       integer not null check (is_default in (0, 1)),
    name             text not null,
    envelope_version integer not null,
    content          blob not null,
    hash             text not null check (hash <> ''),
    skeleton         blob,
    header           blob,
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
    created_at       text not null,
    updated_by       text not null,
    updated_at       text not null,
    published_by     text,
    published_at     text,
    archived_by      text,
    archived_at      text,
    archived_why     text not null,
    check ((status = 'draft') = (version = 0)),
    check ((status = 'draft') = (published_at is null) and (published_by is null) = (published_at is null)),
    check ((status = 'archived') = (archived_at is not null) and (archived_by is null) = (archived_at is null)),
    check (kind <> 'envelope' or (is_default = 1 and status = 'published' and skeleton is not null and header is null and compiler is null
        and graph_hash is null and workflow is null and envelope is null and body is null and replaces is null)),
    check (kind <> 'body' or (is_default = 0 and tenant <> '*' and replaces is not null and skeleton is null and header is null
        and compiler is null and graph_hash is null and workflow is null and envelope is null and body is null)),
    check (kind <> 'effective' or (is_default = 0 and status <> 'draft' and compiler is not null and graph_hash is not null
        and header is not null and workflow is not null and envelope is not null
        and skeleton is null and replaces is null))
) strict, without rowid;
create unique index blueprints_by_version on blueprints (tenant, type, kind, version) where version > 0;
create unique index blueprints_in_force on blueprints (tenant, type, kind) where status = 'published' and kind <> 'envelope';
create index blueprints_drafts on blueprints (tenant, type, id) where status = 'draft';
create index blueprints_everywhere on blueprints (type, tenant) where kind = 'body' and status = 'published';
create trigger blueprints_default before update on blueprints when old.is_default = 1
begin select raise(abort, 'HF102 a published definition never changes'); end;
create trigger blueprints_frozen before update on blueprints when old.status <> 'draft' and (
    old.status <> 'published' or new.status <> 'archived'
    or new.id <> old.id or new.tenant <> old.tenant or new.type <> old.type or new.kind <> old.kind or new.version <> old.version
    or new.is_default <> old.is_default or new.name <> old.name or new.envelope_version <> old.envelope_version
    or new.content <> old.content or new.hash <> old.hash or new.skeleton is not old.skeleton or new.header is not old.header
    or new.compiler is not old.compiler or new.graph_hash is not old.graph_hash or new.workflow is not old.workflow
    or new.envelope is not old.envelope or new.body is not old.body or new.replaces is not old.replaces or new.revision <> old.revision
    or new.drafted_by <> old.drafted_by or new.comment <> old.comment or new.created_by <> old.created_by or new.created_at <> old.created_at
    or new.updated_by <> old.updated_by or new.updated_at <> old.updated_at
    or new.published_by is not old.published_by or new.published_at is not old.published_at
)
begin select raise(abort, 'HF102 a published definition never changes'); end;
create trigger blueprints_drafted before update of id, tenant, type, kind, is_default, created_by, created_at on blueprints
when old.status = 'draft' and (
    new.id <> old.id or new.tenant <> old.tenant or new.type <> old.type or new.kind <> old.kind or new.is_default <> old.is_default
    or new.created_by <> old.created_by or new.created_at <> old.created_at
)
begin select raise(abort, 'HF102 a draft stays what it is a draft of'); end;
create trigger blueprints_never_go before delete on blueprints when old.status <> 'draft'
begin select raise(abort, 'HF102 a published definition never goes'); end;

create table publishing_rules (
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    number     integer not null,
    two_person integer not null check (two_person in (0, 1)),
    set_by     text not null,
    set_at     text not null,
    primary key (tenant, number)
) strict, without rowid;
create trigger publishing_rules_never_change before update on publishing_rules
begin select raise(abort, 'HF102 a rule of publishing is replaced by another one, and never rewritten'); end;
create trigger publishing_rules_never_go before delete on publishing_rules
begin select raise(abort, 'HF102 a rule of publishing is replaced by another one, and never rewritten'); end;

-- Suspensions of document workflows by a tenant, and reactivations: the last row of a workflow applies. The names of
-- the batches that paused its documents begin with `batch`.
create table suspensions (
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    type         text not null check (type <> ''),
    workflow     text not null check (workflow <> ''),
    number       integer not null check (number >= 1),
    is_suspended integer not null check (is_suspended in (0, 1)),
    set_by       text not null,
    set_at       text not null,
    why          text not null,
    batch        text not null,
    primary key (tenant, type, workflow, number)
) strict, without rowid;
create trigger suspensions_never_change before update on suspensions
begin select raise(abort, 'HF102 a suspension is lifted by another line, and never rewritten'); end;
create trigger suspensions_never_go before delete on suspensions
begin select raise(abort, 'HF102 a suspension is lifted by another line, and never rewritten'); end;

-- Access. `api_keys` hold the hash of a secret that was shown once. They are never deleted but revoked. `api_sessions`
-- are browser sessions with their actor, rights and expiry. `api_refusals` are requests that were refused because of
-- their caller. `api_requests` are repeatable requests with their responses, kept for a day.

create table api_keys (
    id           text not null primary key,
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    partition    text not null,
    name         text not null,
    actor        text not null check (actor <> ''),
    kind         text not null check (kind in ('user', 'service')),
    roles        text not null,
    capabilities text not null,
    hash         blob not null check (length(hash) = 32),
    created_by   text not null,
    created_at   text not null,
    expires_at   text,
    last_used_at text,
    revoked_at   text,
    revoked_by   text not null
) strict, without rowid;
create index api_keys_by_tenant on api_keys (tenant, id);

create table api_sessions (
    id           text not null primary key,
    tenant       text not null check (tenant <> '' and tenant <> '*'),
    partition    text not null,
    actor        text not null check (actor <> ''),
    kind         text not null check (kind in ('user', 'service')),
    roles        text not null,
    capabilities text not null,
    hash         blob not null check (length(hash) = 32),
    credential   text not null,
    created_at   text not null,
    expires_at   text not null,
    last_used_at text not null,
    ended_at     text
) strict, without rowid;
create index api_sessions_by_tenant on api_sessions (tenant, id);
create index api_sessions_by_age on api_sessions (tenant, expires_at);
create index api_sessions_by_actor on api_sessions (tenant, actor, id);

create table api_refusals (
    id         integer primary key autoincrement,
    tenant     text not null check (tenant <> '' and tenant <> '*'),
    actor      text not null,
    credential text not null,
    method     text not null,
    path       text not null,
    code       text not null,
    detail     text not null,
    trace      text not null,
    at         text not null
) strict;
create index api_refusals_by_tenant on api_refusals (tenant, id);
create index api_refusals_by_age on api_refusals (tenant, at);

create table api_requests (
    tenant   text not null check (tenant <> '' and tenant <> '*'),
    actor    text not null,
    key      text not null check (key <> ''),
    mark     blob not null,
    began_at text not null,
    status   integer,
    headers  text not null,
    body     blob,
    primary key (tenant, actor, key)
) strict, without rowid;
create index api_requests_by_age on api_requests (tenant, began_at);

-- Fact versions. A decision depends on facts outside its instance: rights (`access`), and organisation settings
-- (`charters`). Each change of such a fact increments its version in the same transaction. A commit names the versions
-- that its decisions used, and fails unless they are still the newest. A tenant without a row has version 0. Rows are
-- never deleted, because a repeated version would prove nothing.

create table fact_versions (
    tenant  text not null check (tenant <> '' and tenant <> '*'),
    kind    text not null check (kind in ('access', 'charters')),
    version integer not null,
    primary key (tenant, kind)
) strict, without rowid;

create trigger principals_fact_added after insert on principals
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger principals_fact_changed after update on principals
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger principals_fact_gone after delete on principals
begin
    insert into fact_versions (tenant, kind, version) values (old.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger role_grants_fact_added after insert on role_grants
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger role_grants_fact_changed after update on role_grants
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger role_grants_fact_gone after delete on role_grants
begin
    insert into fact_versions (tenant, kind, version) values (old.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger delegations_fact_added after insert on delegations
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger delegations_fact_changed after update on delegations
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger delegations_fact_gone after delete on delegations
begin
    insert into fact_versions (tenant, kind, version) values (old.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger absences_fact_added after insert on absences
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger absences_fact_changed after update on absences
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger absences_fact_gone after delete on absences
begin
    insert into fact_versions (tenant, kind, version) values (old.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
-- A new key or session invalidates no earlier read, and recording its use changes no rights.
create trigger api_keys_fact_changed after update of tenant, partition, actor, kind, roles, capabilities, expires_at, revoked_at on api_keys
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger api_keys_fact_gone after delete on api_keys
begin
    insert into fact_versions (tenant, kind, version) values (old.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger api_sessions_fact_changed after update of tenant, partition, actor, kind, roles, capabilities, credential, expires_at, ended_at on api_sessions
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger api_sessions_fact_gone after delete on api_sessions when old.ended_at is null
begin
    insert into fact_versions (tenant, kind, version) values (old.tenant, 'access', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;
create trigger charters_fact_added after insert on charters
begin
    insert into fact_versions (tenant, kind, version) values (new.tenant, 'charters', 1)
    on conflict (tenant, kind) do update set version = version + 1;
end;

-- Processes for reports, with the names and columns of their specification. A reader of the file sees all tenants.
-- Events are included if they are JSON, which is the default codec.
create index receipts_of_processes on receipts (instance) where scope = '%processes';

create view workflow_instances as
select
    i.id,
    i.definition as workflow_id,
    i.tenant as tenant_id,
    coalesce(i.partition, '') as partition_id,
    i.started_by as subject_id,
    p.current_step,
    case i.status when 'running' then 'active' when 'paused' then 'suspended' when 'aborted' then 'cancelled' else i.status end as status,
    cast(p.state as text) as state,
    i.commits as version,
    r.key as idempotency_key,
    i.created_at,
    i.updated_at,
    i.deadline_at as expires_at,
    i.definition_version as workflow_version,
    coalesce(i.key, '') as business_key,
    case i.status when 'completed' then i.reason else '' end as outcome,
    i.ended_at
from instances i
left join processes p on p.instance = i.id and p.number = 1
left join receipts r on r.instance = i.id and r.scope = '%processes'
where i.kind = 'process';

create view workflow_events as
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
        case when substr(e.data, 1, 1) = x'7b' then cast(e.data as text) end as data
    from events e
    join instances i on i.id = e.instance
    where i.kind = 'process'
),
noded as (
    select
        t.*, k.place, k.event, k.by, coalesce(s.wait_kind, '') = 'human' as is_human,
        coalesce(nullif(json_extract(t.data, '$.node'), ''), s.node) as node
    from told t
    join kinds k on k.type = t.type
    left join steps s on s.instance = t.instance and s.number = json_extract(t.data, '$.step')
    where t.data is not null
),
placed as (
    -- A call between an answer and the next step belongs to the answered step.
    select
        t.*,
        case when coalesce(instr(t.node, '/'), 0) = 0 then t.node else coalesce(
            (
                select json_extract(j.value, '$.metadata.step') from definitions d, json_each(cast(d.compiled as text), '$.nodes') j
                where d.tenant in (t.tenant, '*') and d.name = t.definition and d.version = t.definition_version and j.key = t.node
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
            when p.type = 'signal_received' then json_extract(p.data, '$.name')
            when p.type = 'event_received' then json_extract(p.data, '$.event')
            when p.type = 'step_repaired' then case json_extract(p.data, '$.repair') when 'skip' then 'step_skipped' when 'complete' then 'step_completed' else 'retry' end
            when json_extract(p.data, '$.overridden') = 1 then 'overridden'
            else json_extract(p.data, '$.outcome')
        end as name,
        -- The combined result of several approvers is not the answer of one of them if the last one decided otherwise.
        coalesce(p.type = 'step_answered' and p.place = 1 and json_extract(p.data, '$.decisions[#-1].status') <> json_extract(p.data, '$.outcome'), 0) as is_result,
        case p.by
            when 'system' then 'system'
            when 'first' then case when p.sequence = 2 or json_extract(p.data, '$.step') = 1 then p.actor else 'system' end
            when 'giver' then p.actor
            when 'actor' then coalesce(json_extract(p.data, '$.actor'), p.actor)
            when 'publisher' then coalesce(nullif(json_extract(p.data, '$.publisher'), ''), 'system')
            else coalesce(nullif(json_extract(p.data, '$.requested_by'), ''), p.actor)
        end as who
    from placed p
    where case p.type
        when 'step_started' then p.step = p.node
        when 'step_completed' then case
            when coalesce(json_extract(p.data, '$.by'), '') <> '' then 0
            when json_extract(p.data, '$.effect') is not null then 1
            when json_extract(p.data, '$.node') is not null or p.place = 0 then 0
            else not p.is_human and p.step = p.node
        end
        when 'step_answered' then p.is_human
        when 'task_decided' then not exists (
            select 1 from events n
            where n.instance = p.instance and n.sequence = p.sequence + 1 and n.cause = p.cause and n.type = 'step_answered'
                and json_extract(cast(n.data as text), '$.outcome') = json_extract(p.data, '$.outcome')
        )
        when 'step_failed' then coalesce(json_extract(p.data, '$.reason'), '') = ''
        when 'notification_failed' then not p.is_human
        else 1
    end
)
select
    n.instance || ':' || n.sequence || case when n.place = 1 and (n.type = 'step_answered' or json_extract(n.data, '$.effect') is not null) then '.1' else '' end as id,
    n.instance as workflow_instance_id,
    coalesce(
        n.step,
        (
            -- A change of the whole process belongs to its current step.
            select case when instr(json_extract(cast(l.data as text), '$.node'), '/') = 0 then json_extract(cast(l.data as text), '$.node') else coalesce(
                (
                select json_extract(j.value, '$.metadata.step') from definitions d, json_each(cast(d.compiled as text), '$.nodes') j
                where d.tenant in (n.tenant, '*') and d.name = n.definition and d.version = n.definition_version and j.key = json_extract(cast(l.data as text), '$.node')
                order by d.tenant = '*' limit 1
            ),
                json_extract(cast(l.data as text), '$.node')
            ) end
            from events l
            where l.instance = n.instance and l.sequence < n.sequence and l.type in ('step_started', 'step_completed')
                and json_extract(cast(l.data as text), '$.node') is not null and substr(json_extract(cast(l.data as text), '$.node'), 1, 1) <> '#'
            order by l.sequence desc limit 1
        ),
        ''
    ) as step_id,
    n.name as event,
    case when n.is_result then 'system' else n.who end as actor_id,
    case
        when n.is_result or (n.type = 'step_answered' and n.place = 0) then '{}'
        when n.type in ('step_answered', 'task_decided') then case coalesce(json_type(n.data, '$.data'), 'null')
            when 'object' then json_extract(n.data, '$.data')
            when 'null' then '{}'
            else json_object('data', json_extract(n.data, '$.data'))
        end
        when n.type in ('signal_received', 'event_received') then case coalesce(json_type(n.data, '$.payload'), 'null')
            when 'object' then json_extract(n.data, '$.payload')
            when 'null' then '{}'
            else json_object('data', json_extract(n.data, '$.payload'))
        end
        when n.type = 'data_changed' then json_extract(n.data, '$.patch')
        when n.name = 'step_failed' then json_object('error', json_extract(n.data, '$.error'))
        when substr(n.type, 1, 8) = 'workflow' and n.name <> 'cancelled' then json_remove(n.data, '$.has_row', '$.starter', '$.may')
        else '{}'
    end as data,
    case
        when n.is_result then ''
        when n.type = 'step_answered' and n.place = 0 then n.comment
        when n.type in ('step_answered', 'task_decided') then coalesce(nullif(json_extract(n.data, '$.comment'), ''), n.comment)
        when n.by in ('actor', 'requested_by') then coalesce(nullif(json_extract(n.data, '$.reason'), ''), n.comment)
        when n.by in ('system', 'first', 'publisher') and n.who = 'system' then ''
        else n.comment
    end as comment,
    n.at as timestamp,
    n.tenant as tenant_id,
    case
        when n.is_result then ''
        else coalesce(nullif(json_extract(n.data, '$.on_behalf_of'), ''), case when n.who = n.actor then n.on_behalf_of end, '')
    end as on_behalf_of,
    case when substr(n.type, 1, 8) = 'workflow' and n.name <> 'cancelled' then 'lifecycle' else 'step' end as category,
    n.sequence * 2 + n.place as sequence
from entries n;
