-- What the migrations come to. Written by docs/schema.py: run `python3 dev.py schema` instead of editing.

create schema standfast;

create table standfast.absences (
    id bigint not null generated always as identity,
    tenant text not null,
    principal text not null,
    reason text not null,
    begins_at timestamp with time zone not null,
    ends_at timestamp with time zone,
    constraint absences_pkey PRIMARY KEY (id),
    constraint absences_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.api_keys (
    id text not null,
    tenant text not null,
    partition text not null,
    name text not null,
    actor text not null,
    kind text not null,
    roles text not null,
    capabilities text not null,
    hash bytea not null,
    created_by text not null,
    created_at timestamp with time zone not null,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by text not null,
    constraint api_keys_pkey PRIMARY KEY (id),
    constraint api_keys_actor_check CHECK ((actor <> ''::text)),
    constraint api_keys_hash_check CHECK ((length(hash) = 32)),
    constraint api_keys_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'service'::text]))),
    constraint api_keys_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.api_refusals (
    id bigint not null generated always as identity,
    tenant text not null,
    actor text not null,
    credential text not null,
    method text not null,
    path text not null,
    code text not null,
    detail text not null,
    trace text not null,
    at timestamp with time zone not null,
    constraint api_refusals_pkey PRIMARY KEY (id),
    constraint api_refusals_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.api_requests (
    tenant text not null,
    actor text not null,
    key text not null,
    mark bytea not null,
    began_at timestamp with time zone not null,
    status integer,
    headers text not null,
    body bytea,
    constraint api_requests_pkey PRIMARY KEY (tenant, actor, key),
    constraint api_requests_key_check CHECK ((key <> ''::text)),
    constraint api_requests_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.api_sessions (
    id text not null,
    tenant text not null,
    partition text not null,
    actor text not null,
    kind text not null,
    roles text not null,
    capabilities text not null,
    hash bytea not null,
    credential text not null,
    created_at timestamp with time zone not null,
    expires_at timestamp with time zone not null,
    last_used_at timestamp with time zone not null,
    ended_at timestamp with time zone,
    constraint api_sessions_pkey PRIMARY KEY (id),
    constraint api_sessions_actor_check CHECK ((actor <> ''::text)),
    constraint api_sessions_hash_check CHECK ((length(hash) = 32)),
    constraint api_sessions_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'service'::text]))),
    constraint api_sessions_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.audit (
    instance uuid not null,
    sequence integer not null,
    tenant text not null,
    who text not null,
    whom text not null,
    what text not null,
    which text not null,
    place text not null,
    why text not null,
    whence text not null,
    how text not null,
    at timestamp with time zone not null,
    constraint audit_pkey PRIMARY KEY (instance, sequence),
    constraint audit_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.blueprints (
    id text not null,
    tenant text not null,
    type text not null,
    kind text not null,
    version integer not null,
    status text not null,
    is_default boolean not null,
    name text not null,
    envelope_version integer not null,
    content bytea not null,
    hash text not null,
    skeleton bytea,
    header bytea,
    compiler text,
    graph_hash text,
    workflow text,
    envelope text,
    body text,
    replaces integer,
    revision integer not null,
    drafted_by text not null,
    comment text not null,
    created_by text not null,
    created_at timestamp with time zone not null,
    updated_by text not null,
    updated_at timestamp with time zone not null,
    published_by text,
    published_at timestamp with time zone,
    archived_by text,
    archived_at timestamp with time zone,
    archived_why text not null,
    constraint blueprints_pkey PRIMARY KEY (id),
    constraint blueprints_check CHECK (((status = 'draft'::text) = (version = 0))),
    constraint blueprints_check1 CHECK ((((status = 'draft'::text) = (published_at IS NULL)) AND ((published_by IS NULL) = (published_at IS NULL)))),
    constraint blueprints_check2 CHECK ((((status = 'archived'::text) = (archived_at IS NOT NULL)) AND ((archived_by IS NULL) = (archived_at IS NULL)))),
    constraint blueprints_check3 CHECK (((kind <> 'envelope'::text) OR (is_default AND (status = 'published'::text) AND (skeleton IS NOT NULL) AND (header IS NULL) AND (compiler IS NULL) AND (graph_hash IS NULL) AND (workflow IS NULL) AND (envelope IS NULL) AND (body IS NULL) AND (replaces IS NULL)))),
    constraint blueprints_check4 CHECK (((kind <> 'body'::text) OR ((NOT is_default) AND (tenant <> '*'::text) AND (replaces IS NOT NULL) AND (skeleton IS NULL) AND (header IS NULL) AND (compiler IS NULL) AND (graph_hash IS NULL) AND (workflow IS NULL) AND (envelope IS NULL) AND (body IS NULL)))),
    constraint blueprints_check5 CHECK (((kind <> 'effective'::text) OR ((NOT is_default) AND (status <> 'draft'::text) AND (compiler IS NOT NULL) AND (graph_hash IS NOT NULL) AND (header IS NOT NULL) AND (workflow IS NOT NULL) AND (envelope IS NOT NULL) AND (skeleton IS NULL) AND (replaces IS NULL)))),
    constraint blueprints_hash_check CHECK ((hash <> ''::text)),
    constraint blueprints_kind_check CHECK ((kind = ANY (ARRAY['envelope'::text, 'body'::text, 'effective'::text]))),
    constraint blueprints_revision_check CHECK ((revision >= 1)),
    constraint blueprints_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'published'::text, 'archived'::text]))),
    constraint blueprints_tenant_check CHECK ((tenant <> ''::text)),
    constraint blueprints_type_check CHECK ((type <> ''::text)),
    constraint blueprints_version_check CHECK ((version >= 0))
);

create table standfast.chains (
    tenant text not null,
    name text not null,
    version integer not null,
    stages bytea not null,
    description text not null,
    published_by text not null,
    published_at timestamp with time zone not null,
    constraint chains_pkey PRIMARY KEY (tenant, name, version),
    constraint chains_name_check CHECK ((name <> ''::text)),
    constraint chains_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.changes (
    id bigint not null generated always as identity,
    tenant text not null,
    subject text not null,
    name text not null,
    action text not null,
    before text not null,
    after text not null,
    reason text not null,
    actor text not null,
    on_behalf_of text not null,
    trace text not null,
    at timestamp with time zone not null,
    mark text not null,
    constraint changes_mark_key UNIQUE (mark),
    constraint changes_pkey PRIMARY KEY (id),
    constraint changes_action_check CHECK ((action <> ''::text)),
    constraint changes_actor_check CHECK ((actor <> ''::text)),
    constraint changes_subject_check CHECK ((subject <> ''::text)),
    constraint changes_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.charters (
    tenant text not null,
    name text not null,
    version integer not null,
    body bytea not null,
    comment text not null,
    published_by text not null,
    published_at timestamp with time zone not null,
    constraint charters_pkey PRIMARY KEY (tenant, name, version),
    constraint charters_name_check CHECK ((name <> ''::text)),
    constraint charters_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.dead_letters (
    id bigint not null generated always as identity,
    tenant text not null,
    source text not null,
    instance uuid,
    definition text not null,
    key text not null,
    number integer not null,
    name text not null,
    language text not null default ''::text,
    type text not null,
    version smallint not null default 1,
    data bytea not null,
    options bytea not null default '\x'::bytea,
    priority smallint not null default 0,
    attempts integer not null,
    fence integer not null default 0,
    reason text not null,
    error text not null,
    actor text not null default ''::text,
    definition_version text not null default ''::text,
    parent uuid,
    command_id text not null default ''::text,
    comment text not null default ''::text,
    created_at timestamp with time zone not null,
    context bytea,
    partition text not null default ''::text,
    constraint dead_letters_pkey PRIMARY KEY (id),
    constraint dead_letters_source_check CHECK ((source = ANY (ARRAY['step'::text, 'compensation'::text, 'effect'::text, 'timer'::text, 'inbox'::text]))),
    constraint dead_letters_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.definition_triggers (
    event text not null,
    tenant text not null,
    definition text not null,
    constraint definition_triggers_pkey PRIMARY KEY (event, tenant, definition),
    constraint definition_triggers_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.definitions (
    tenant text not null,
    name text not null,
    version text not null,
    kind text not null,
    source bytea not null,
    compiled bytea not null,
    hash text not null,
    compiler text not null,
    status text not null,
    media_type text not null,
    description text not null,
    published_by text not null,
    published_at timestamp with time zone not null,
    archived_by text not null default ''::text,
    archived_at timestamp with time zone,
    archived_why text not null default ''::text,
    constraint definitions_pkey PRIMARY KEY (tenant, name, version),
    constraint definitions_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'published'::text, 'retired'::text]))),
    constraint definitions_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.delegations (
    id bigint not null generated always as identity,
    tenant text not null,
    giver text not null,
    receiver text not null,
    role text not null,
    definition text not null,
    reason text not null,
    begins_at timestamp with time zone not null,
    ends_at timestamp with time zone,
    constraint delegations_pkey PRIMARY KEY (id),
    constraint delegations_check CHECK ((receiver <> giver)),
    constraint delegations_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.document_versions (
    instance uuid not null,
    version integer not null,
    tenant text not null,
    status text not null,
    data bytea not null,
    data_hash text not null,
    mutation integer not null,
    written_by text not null,
    written_at timestamp with time zone not null,
    constraint document_versions_pkey PRIMARY KEY (instance, version),
    constraint document_versions_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.documents (
    instance uuid not null,
    type text not null,
    id text not null,
    tenant text not null,
    definition text not null,
    partition text not null,
    status text not null,
    version integer not null,
    data bytea not null,
    amended_from text not null,
    superseded_by text not null,
    requester text not null,
    round integer not null,
    is_resting boolean not null,
    is_amending boolean not null,
    updated_by text not null,
    created_at timestamp with time zone not null,
    updated_at timestamp with time zone not null,
    constraint documents_pkey PRIMARY KEY (instance, type, id),
    constraint documents_id_check CHECK ((id <> ''::text)),
    constraint documents_tenant_check CHECK ((tenant <> ''::text)),
    constraint documents_type_check CHECK ((type <> ''::text))
);

create table standfast.effects (
    instance uuid not null,
    number integer not null,
    tenant text not null,
    definition text not null,
    language text not null,
    handler text not null,
    type text not null,
    version smallint not null,
    data bytea not null,
    options bytea not null,
    priority smallint not null,
    rank bigint not null,
    parked_until timestamp with time zone,
    owner uuid,
    claimed_at timestamp with time zone,
    fence integer not null,
    attempts integer not null,
    error text not null,
    created_at timestamp with time zone not null,
    stop_requested boolean not null default false,
    context bytea,
    held_at timestamp with time zone,
    constraint effects_pkey PRIMARY KEY (instance, number),
    constraint effects_priority_check CHECK (((priority >= 0) AND (priority <= 100))),
    constraint effects_tenant_check CHECK ((tenant <> ''::text))
) with (fillfactor=70, autovacuum_vacuum_threshold=500, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_cost_delay=1, autovacuum_analyze_threshold=1000, autovacuum_analyze_scale_factor=0.05);

create table standfast.events (
    instance uuid not null,
    sequence integer not null,
    "position" bigint not null,
    tenant text not null,
    type text not null,
    version smallint not null,
    data bytea not null,
    at timestamp with time zone not null,
    actor text not null,
    comment text not null,
    cause text not null,
    on_behalf_of text,
    trace text,
    constraint events_pkey PRIMARY KEY (instance, sequence),
    constraint events_tenant_check CHECK ((tenant <> ''::text))
) partition by RANGE (instance);

create table standfast.fact_versions (
    tenant text not null,
    kind text not null,
    version bigint not null,
    constraint fact_versions_pkey PRIMARY KEY (tenant, kind),
    constraint fact_versions_kind_check CHECK ((kind = ANY (ARRAY['access'::text, 'charters'::text]))),
    constraint fact_versions_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
) with (fillfactor=50);

create table standfast.human_tasks (
    instance uuid not null,
    number integer not null,
    tenant text not null,
    definition text not null,
    key text not null,
    partition text not null,
    node text not null,
    subject text not null,
    role text not null,
    requester text not null,
    kept_out bytea,
    agreement text not null,
    stage text not null,
    status text not null,
    claimed_by text not null,
    due_at timestamp with time zone,
    data bytea,
    guarded bytea,
    resolution bytea,
    document_version text,
    outcome text,
    actor text not null,
    comment text not null,
    opened_at timestamp with time zone not null,
    closed_at timestamp with time zone,
    constraint human_tasks_pkey PRIMARY KEY (instance, number),
    constraint human_tasks_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.inbox (
    id bigint not null generated always as identity,
    tenant text not null,
    target text not null,
    definition text not null,
    key text not null,
    instance uuid,
    language text not null,
    type text not null,
    version smallint not null,
    data bytea not null,
    command_id text not null,
    actor text not null,
    comment text not null,
    created_at timestamp with time zone not null,
    definition_version text not null default ''::text,
    parent uuid,
    attempts integer not null default 0,
    error text not null default ''::text,
    due_at timestamp with time zone,
    claimed_until timestamp with time zone,
    context bytea,
    partition text not null default ''::text,
    constraint inbox_pkey PRIMARY KEY (id),
    constraint inbox_comment_check CHECK ((octet_length(comment) <= 65536)),
    constraint inbox_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
) with (fillfactor=70, autovacuum_vacuum_threshold=500, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_cost_delay=1);

create table standfast.instances (
    id uuid not null,
    tenant text not null,
    definition text not null,
    definition_version text not null,
    kind text not null,
    key text,
    status text not null,
    reason text not null,
    begun boolean not null,
    version integer not null,
    issued integer not null,
    commits integer not null,
    parent uuid,
    created_at timestamp with time zone not null,
    updated_at timestamp with time zone not null,
    ended_at timestamp with time zone,
    partition text,
    started_by text not null,
    paused_at timestamp with time zone,
    deadline_at timestamp with time zone,
    attributes jsonb,
    next_step text,
    constraint instances_pkey PRIMARY KEY (id),
    constraint instances_tenant_check CHECK ((tenant <> ''::text))
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.1);

create table standfast.meta (
    name text not null,
    value text not null,
    constraint meta_pkey PRIMARY KEY (name)
);

create table standfast.migrations (
    number integer not null,
    name text not null,
    applied_at timestamp with time zone not null default clock_timestamp(),
    constraint migrations_pkey PRIMARY KEY (number)
);

create table standfast.mutations (
    instance uuid not null,
    sequence integer not null,
    tenant text not null,
    kind text not null,
    action text not null,
    version_before integer not null,
    version_after integer not null,
    actor text not null,
    on_behalf_of text not null,
    run_as text not null,
    step integer,
    reason text not null,
    changes bytea,
    made_at timestamp with time zone not null,
    constraint mutations_pkey PRIMARY KEY (instance, sequence),
    constraint mutations_kind_check CHECK ((kind = ANY (ARRAY['business'::text, 'workflow'::text]))),
    constraint mutations_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.notification_reads (
    notification bigint not null,
    reader text not null,
    tenant text not null,
    read_at timestamp with time zone not null,
    constraint notification_reads_pkey PRIMARY KEY (notification, reader),
    constraint notification_reads_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.notifications (
    id bigint not null generated always as identity,
    tenant text not null,
    key text not null,
    kind text not null,
    recipient text not null,
    instance uuid not null,
    step integer not null,
    partition text not null,
    occasion text not null,
    kept_out text not null,
    subject text not null,
    body text not null,
    created_at timestamp with time zone not null,
    read_at timestamp with time zone,
    constraint notifications_tenant_key_key UNIQUE (tenant, key),
    constraint notifications_pkey PRIMARY KEY (id),
    constraint notifications_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'role'::text]))),
    constraint notifications_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.observations (
    id bigint not null generated always as identity,
    tenant text not null,
    instance uuid not null,
    definition text not null,
    input text not null,
    from_status text not null,
    to_status text not null,
    skipped boolean not null,
    at timestamp with time zone not null,
    constraint observations_pkey PRIMARY KEY (id),
    constraint observations_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.pauses (
    id bigint not null generated always as identity,
    tenant text not null,
    definition text not null,
    version text not null,
    step text not null,
    clock text not null,
    reason text not null,
    paused_by text not null,
    paused_at timestamp with time zone not null,
    until timestamp with time zone,
    ended_at timestamp with time zone,
    ended_by text not null default ''::text,
    ended_why text not null default ''::text,
    walks smallint not null default 0,
    constraint pauses_pkey PRIMARY KEY (id),
    constraint pauses_clock_check CHECK ((clock = ANY (ARRAY['run_on'::text, 'stand_still'::text]))),
    constraint pauses_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.principals (
    tenant text not null,
    id text not null,
    kind text not null,
    name text not null,
    email text not null,
    is_active boolean not null,
    manager text not null,
    attributes text not null,
    constraint principals_pkey PRIMARY KEY (tenant, id),
    constraint principals_check CHECK ((manager <> id)),
    constraint principals_id_check CHECK ((id <> ''::text)),
    constraint principals_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'service'::text]))),
    constraint principals_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.processes (
    instance uuid not null,
    number integer not null,
    tenant text not null,
    current_step text not null,
    state bytea not null,
    opened_at timestamp with time zone not null,
    moved_at timestamp with time zone not null,
    constraint processes_pkey PRIMARY KEY (instance, number),
    constraint processes_tenant_check CHECK ((tenant <> ''::text))
) with (fillfactor=70);

create table standfast.projections (
    name text not null,
    "position" bigint not null,
    updated_at timestamp with time zone,
    error text not null,
    failed_at timestamp with time zone,
    constraint projections_pkey PRIMARY KEY (name)
) with (fillfactor=50);

create table standfast.published_events (
    instance uuid not null,
    number integer not null,
    tenant text not null,
    partition text not null,
    id text not null,
    event text not null,
    correlation text not null,
    match_one boolean not null,
    expires_at timestamp with time zone not null,
    data bytea not null,
    published_at timestamp with time zone not null,
    constraint published_events_pkey PRIMARY KEY (instance, number),
    constraint published_events_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.publishing_rules (
    tenant text not null,
    number integer not null,
    two_person boolean not null,
    set_by text not null,
    set_at timestamp with time zone not null,
    constraint publishing_rules_pkey PRIMARY KEY (tenant, number),
    constraint publishing_rules_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.receipts (
    tenant text not null,
    scope text not null,
    key text not null,
    instance uuid,
    version integer not null,
    digest bytea not null,
    created_at timestamp with time zone not null,
    constraint receipts_pkey PRIMARY KEY (tenant, scope, key),
    constraint receipts_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.resume_requests (
    instance uuid not null,
    id uuid not null,
    tenant text not null,
    triggered_by text not null,
    triggered_by_id text not null,
    trigger_data bytea,
    reason text not null,
    requested_by text not null,
    context bytea,
    outcome text not null,
    requested_at timestamp with time zone not null,
    executed_at timestamp with time zone,
    error_message text not null default ''::text,
    on_behalf_of text not null default ''::text,
    about text not null default ''::text,
    constraint resume_requests_pkey PRIMARY KEY (instance, id),
    constraint resume_requests_outcome_check CHECK ((outcome = ANY (ARRAY['open'::text, 'executed'::text, 'refused'::text]))),
    constraint resume_requests_tenant_check CHECK ((tenant <> ''::text)),
    constraint resume_requests_triggered_by_check CHECK ((triggered_by = ANY (ARRAY['manual'::text, 'approval'::text, 'event'::text, 'timeout'::text])))
);

create table standfast.role_grants (
    id bigint not null generated always as identity,
    tenant text not null,
    principal text not null,
    role text not null,
    begins_at timestamp with time zone not null,
    ends_at timestamp with time zone,
    constraint role_grants_pkey PRIMARY KEY (id),
    constraint role_grants_role_check CHECK ((role <> ''::text)),
    constraint role_grants_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.schedule_fires (
    instance uuid not null,
    place integer not null,
    tenant text not null,
    at timestamp with time zone not null,
    until timestamp with time zone,
    why text not null,
    status text not null,
    detail text not null,
    run uuid,
    document text not null,
    backfill integer not null,
    told_at timestamp with time zone not null,
    constraint schedule_fires_pkey PRIMARY KEY (instance, place),
    constraint schedule_fires_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.schedules (
    instance uuid not null,
    number integer not null,
    tenant text not null,
    workflow text not null,
    plan bytea not null,
    standing bytea not null,
    opened_at timestamp with time zone not null,
    moved_at timestamp with time zone not null,
    constraint schedules_pkey PRIMARY KEY (instance, number),
    constraint schedules_tenant_check CHECK ((tenant <> ''::text))
) with (fillfactor=70);

create table standfast.seals (
    tenant text not null,
    number bigint not null,
    instance uuid not null,
    version integer not null,
    digest text not null,
    link text not null,
    sealed_by text not null,
    sealed_at timestamp with time zone not null,
    constraint seals_pkey PRIMARY KEY (tenant, number),
    constraint seals_number_check CHECK ((number >= 1)),
    constraint seals_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text)))
);

create table standfast.snapshots (
    instance uuid not null,
    tenant text not null,
    version integer not null,
    state_version integer not null,
    data bytea not null,
    fingerprint text not null,
    constraint snapshots_pkey PRIMARY KEY (instance)
) with (fillfactor=70);

create table standfast.steps (
    instance uuid not null,
    number integer not null,
    tenant text not null,
    node text not null,
    token text not null,
    visit integer not null,
    kind text not null,
    status text not null,
    compensates integer,
    retry_of integer,
    wait_kind text not null,
    attempts integer not null,
    outcome text not null,
    error text not null,
    input bytea,
    output bytea,
    opened_at timestamp with time zone not null,
    moved_at timestamp with time zone not null,
    started_at timestamp with time zone,
    constraint steps_pkey PRIMARY KEY (instance, number),
    constraint steps_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'completed'::text, 'failed'::text, 'skipped'::text, 'cancelled'::text]))),
    constraint steps_tenant_check CHECK ((tenant <> ''::text))
) partition by RANGE (instance);

create table standfast.subscriptions (
    instance uuid not null,
    number integer not null,
    place integer not null,
    tenant text not null,
    definition text not null,
    partition text not null,
    kind text not null,
    signal text not null,
    correlation text not null,
    opened_at timestamp with time zone not null,
    constraint subscriptions_pkey PRIMARY KEY (instance, number, place),
    constraint subscriptions_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.suspensions (
    tenant text not null,
    type text not null,
    workflow text not null,
    number integer not null,
    is_suspended boolean not null,
    set_by text not null,
    set_at timestamp with time zone not null,
    why text not null,
    batch text not null,
    constraint suspensions_pkey PRIMARY KEY (tenant, type, workflow, number),
    constraint suspensions_number_check CHECK ((number >= 1)),
    constraint suspensions_tenant_check CHECK (((tenant <> ''::text) AND (tenant <> '*'::text))),
    constraint suspensions_type_check CHECK ((type <> ''::text)),
    constraint suspensions_workflow_check CHECK ((workflow <> ''::text))
);

create table standfast.task_comments (
    instance uuid not null,
    number integer not null,
    sequence integer not null,
    tenant text not null,
    actor text not null,
    on_behalf_of text not null,
    text text not null,
    is_question boolean not null,
    written_at timestamp with time zone not null,
    constraint task_comments_pkey PRIMARY KEY (instance, number, sequence),
    constraint task_comments_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.task_decisions (
    instance uuid not null,
    number integer not null,
    sequence integer not null,
    tenant text not null,
    partition text not null,
    actor text not null,
    on_behalf_of text not null,
    outcome text not null,
    comment text not null,
    data bytea,
    document_version text,
    is_withdrawn boolean not null,
    is_applied boolean not null,
    applied boolean,
    decided_at timestamp with time zone not null,
    constraint task_decisions_pkey PRIMARY KEY (instance, number, sequence),
    constraint task_decisions_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.task_people (
    instance uuid not null,
    number integer not null,
    place integer not null,
    tenant text not null,
    partition text not null,
    kind text not null,
    name text not null,
    via text not null,
    stands_for text not null,
    weight integer not null,
    stage integer not null,
    is_open boolean not null,
    decided text not null,
    opened_at timestamp with time zone not null,
    constraint task_people_pkey PRIMARY KEY (instance, number, place),
    constraint task_people_tenant_check CHECK ((tenant <> ''::text))
);

create table standfast.timers (
    instance uuid not null,
    key text not null,
    number integer not null,
    tenant text not null,
    definition text not null,
    language text not null,
    type text not null,
    version smallint not null,
    data bytea not null,
    due_at timestamp with time zone not null,
    attempts integer not null,
    error text not null,
    claimed_until timestamp with time zone,
    context bytea,
    held_at timestamp with time zone,
    frozen_at timestamp with time zone,
    constraint timers_pkey PRIMARY KEY (instance, key),
    constraint timers_tenant_check CHECK ((tenant <> ''::text))
) with (fillfactor=70, autovacuum_vacuum_threshold=500, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_cost_delay=1);

create table standfast.workers (
    id uuid not null,
    name text not null,
    handlers text[] not null,
    started_at timestamp with time zone not null,
    alive_until timestamp with time zone not null,
    constraint workers_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200);

create table standfast.events_default partition of standfast.events DEFAULT;
create table standfast.steps_default partition of standfast.steps DEFAULT with (fillfactor=70);

CREATE INDEX absences_by_principal ON standfast.absences USING btree (tenant, principal, id);
CREATE INDEX api_keys_by_tenant ON standfast.api_keys USING btree (tenant, id);
CREATE INDEX api_refusals_by_age ON standfast.api_refusals USING btree (tenant, at);
CREATE INDEX api_refusals_by_tenant ON standfast.api_refusals USING btree (tenant, id);
CREATE INDEX api_requests_by_age ON standfast.api_requests USING btree (tenant, began_at);
CREATE INDEX api_sessions_by_actor ON standfast.api_sessions USING btree (tenant, actor, id);
CREATE INDEX api_sessions_by_age ON standfast.api_sessions USING btree (tenant, expires_at);
CREATE INDEX api_sessions_by_tenant ON standfast.api_sessions USING btree (tenant, id);
CREATE UNIQUE INDEX blueprints_by_version ON standfast.blueprints USING btree (tenant, type, kind, version) WHERE (version > 0);
CREATE INDEX blueprints_drafts ON standfast.blueprints USING btree (tenant, type, id) WHERE (status = 'draft'::text);
CREATE INDEX blueprints_everywhere ON standfast.blueprints USING btree (type, tenant) WHERE ((kind = 'body'::text) AND (status = 'published'::text));
CREATE UNIQUE INDEX blueprints_in_force ON standfast.blueprints USING btree (tenant, type, kind) WHERE ((status = 'published'::text) AND (kind <> 'envelope'::text));
CREATE INDEX changes_by_actor ON standfast.changes USING btree (tenant, actor, id);
CREATE INDEX changes_by_subject ON standfast.changes USING btree (tenant, subject, name, id);
CREATE INDEX changes_by_tenant ON standfast.changes USING btree (tenant, id);
CREATE INDEX dead_letters_by_instance ON standfast.dead_letters USING btree (instance, source, number);
CREATE INDEX dead_letters_by_tenant ON standfast.dead_letters USING btree (tenant, id);
CREATE INDEX delegations_by_giver ON standfast.delegations USING btree (tenant, giver, id);
CREATE INDEX delegations_by_receiver ON standfast.delegations USING btree (tenant, receiver, id);
CREATE UNIQUE INDEX documents_by_id ON standfast.documents USING btree (tenant, type, id, partition);
CREATE INDEX documents_by_requester ON standfast.documents USING btree (tenant, requester, type, instance);
CREATE INDEX documents_by_status ON standfast.documents USING btree (tenant, type, status, instance);
CREATE INDEX documents_by_type ON standfast.documents USING btree (tenant, type, instance);
CREATE INDEX effects_claimed ON standfast.effects USING btree (tenant, instance) WHERE ((owner IS NOT NULL) AND (fence > 0));
CREATE INDEX effects_held ON standfast.effects USING btree (tenant, definition) WHERE (held_at IS NOT NULL);
CREATE INDEX effects_parked ON standfast.effects USING btree (parked_until) WHERE (parked_until IS NOT NULL);
CREATE INDEX effects_ready ON standfast.effects USING btree (handler, language, type, version, rank, instance, number) WHERE ((owner IS NULL) AND (parked_until IS NULL) AND (held_at IS NULL));
CREATE INDEX events_by_position ON standfast.events USING btree ("position");
CREATE INDEX human_tasks_by_definition ON standfast.human_tasks USING btree (tenant, definition, opened_at, instance, number) WHERE (closed_at IS NULL);
CREATE INDEX human_tasks_by_key ON standfast.human_tasks USING btree (tenant, key, opened_at, instance, number) WHERE (closed_at IS NULL);
CREATE INDEX human_tasks_by_requester ON standfast.human_tasks USING btree (tenant, requester, opened_at, instance, number) WHERE (closed_at IS NULL);
CREATE INDEX human_tasks_due ON standfast.human_tasks USING btree (tenant, due_at) WHERE ((closed_at IS NULL) AND (due_at IS NOT NULL));
CREATE INDEX human_tasks_open ON standfast.human_tasks USING btree (tenant, opened_at, instance, number) WHERE (closed_at IS NULL);
CREATE INDEX inbox_by_target ON standfast.inbox USING btree (tenant, target, id);
CREATE INDEX inbox_by_word ON standfast.inbox USING btree (language, type, version, id) WHERE (created_at > '-infinity'::timestamp with time zone);
CREATE INDEX instances_by_attribute ON standfast.instances USING gin (attributes jsonb_path_ops) WHERE (attributes IS NOT NULL);
CREATE INDEX instances_by_definition ON standfast.instances USING btree (tenant, definition, definition_version, status, begun, GREATEST(id)) WHERE (created_at > '-infinity'::timestamp with time zone);
CREATE INDEX instances_by_end ON standfast.instances USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE UNIQUE INDEX instances_by_key ON standfast.instances USING btree (tenant, key, definition, (
CASE
    WHEN (partition IS NULL) THEN ''::text
    ELSE partition
END)) WHERE (key IS NOT NULL);
CREATE INDEX instances_by_next_step ON standfast.instances USING btree (tenant, next_step, paused_at DESC, id DESC) WHERE (next_step IS NOT NULL);
CREATE INDEX instances_by_parent ON standfast.instances USING btree (parent, status, GREATEST(id)) WHERE (parent IS NOT NULL);
CREATE INDEX instances_by_pause ON standfast.instances USING btree (tenant, paused_at DESC, id DESC) WHERE (paused_at IS NOT NULL);
CREATE INDEX instances_by_pause_reason ON standfast.instances USING btree (tenant, reason, paused_at DESC, id DESC) WHERE (paused_at IS NOT NULL);
CREATE INDEX instances_by_reason ON standfast.instances USING btree (tenant, reason, GREATEST(id)) WHERE ((ended_at IS NOT NULL) AND (reason <> ''::text));
CREATE INDEX instances_by_starter ON standfast.instances USING btree (tenant, started_by, GREATEST(id)) WHERE (kind = 'process'::text);
CREATE INDEX instances_by_status ON standfast.instances USING btree (tenant, kind, status, begun, GREATEST(id)) WHERE (created_at < 'infinity'::timestamp with time zone);
CREATE INDEX instances_events_by_end ON standfast.instances USING btree (ended_at) WHERE ((kind = 'event'::text) AND (ended_at IS NOT NULL));
CREATE INDEX instances_expiring ON standfast.instances USING btree (deadline_at, id) WHERE ((kind = 'process'::text) AND (status = 'running'::text) AND (deadline_at IS NOT NULL));
CREATE INDEX instances_expiring_of_tenant ON standfast.instances USING btree (tenant, deadline_at, id) WHERE ((kind = 'process'::text) AND (status = 'running'::text) AND (deadline_at IS NOT NULL));
CREATE INDEX instances_late ON standfast.instances USING btree (reason, paused_at) WHERE (paused_at IS NOT NULL);
CREATE INDEX instances_of_partition ON standfast.instances USING btree (tenant, partition, kind, definition, status, begun, GREATEST(id)) WHERE ((partition IS NOT NULL) AND (created_at <> 'infinity'::timestamp with time zone));
CREATE INDEX instances_processes ON standfast.instances USING btree (tenant, (
CASE
    WHEN (partition IS NULL) THEN ''::text
    ELSE partition
END), status, GREATEST(id)) WHERE ((kind = 'process'::text) AND (created_at <> '-infinity'::timestamp with time zone));
CREATE INDEX notifications_by_instance ON standfast.notifications USING btree (instance, occasion);
CREATE INDEX notifications_by_recipient ON standfast.notifications USING btree (tenant, kind, recipient, id);
CREATE INDEX notifications_unread ON standfast.notifications USING btree (tenant, kind, recipient, id) WHERE (read_at IS NULL);
CREATE INDEX observations_by_instance ON standfast.observations USING btree (instance, id);
CREATE UNIQUE INDEX pauses_standing ON standfast.pauses USING btree (tenant, definition, version, step) WHERE (ended_at IS NULL);
CREATE INDEX pauses_walking ON standfast.pauses USING btree (id) WHERE ((ended_at IS NULL) OR (walks < 2));
CREATE INDEX principals_inactive ON standfast.principals USING btree (tenant, id) WHERE (NOT is_active);
CREATE INDEX published_events_by_key ON standfast.published_events USING btree (tenant, event, correlation, published_at, instance);
CREATE INDEX published_events_by_time ON standfast.published_events USING btree (tenant, published_at, instance);
CREATE INDEX receipts_by_age ON standfast.receipts USING brin (created_at);
CREATE INDEX receipts_of_processes ON standfast.receipts USING btree (instance) WHERE (scope = '%processes'::text);
CREATE INDEX resume_requests_open ON standfast.resume_requests USING btree (requested_at, instance) WHERE (outcome = 'open'::text);
CREATE INDEX role_grants_by_principal ON standfast.role_grants USING btree (tenant, principal, role);
CREATE INDEX role_grants_by_role ON standfast.role_grants USING btree (tenant, role, principal);
CREATE INDEX seals_by_instance ON standfast.seals USING btree (tenant, instance, number);
CREATE INDEX subscriptions_by_signal ON standfast.subscriptions USING btree (tenant, kind, signal, correlation, instance, number, place);
CREATE INDEX task_decisions_by_actor ON standfast.task_decisions USING btree (tenant, actor, decided_at, instance, number, sequence);
CREATE INDEX task_people_deputed ON standfast.task_people USING btree (tenant, instance, number, place) WHERE (is_open AND (stands_for <> ''::text));
CREATE INDEX task_people_instances ON standfast.task_people USING btree (tenant, kind, name, instance) WHERE is_open;
CREATE INDEX task_people_open ON standfast.task_people USING btree (tenant, kind, name, opened_at, instance, number) WHERE is_open;
CREATE INDEX timers_due ON standfast.timers USING btree (language, type, version, due_at) WHERE (held_at IS NULL);
CREATE INDEX timers_held ON standfast.timers USING btree (tenant, definition) WHERE (held_at IS NOT NULL);

alter table standfast.absences enable row level security, force row level security;
alter table standfast.api_keys enable row level security, force row level security;
alter table standfast.api_refusals enable row level security, force row level security;
alter table standfast.api_requests enable row level security, force row level security;
alter table standfast.api_sessions enable row level security, force row level security;
alter table standfast.audit enable row level security, force row level security;
alter table standfast.blueprints enable row level security, force row level security;
alter table standfast.chains enable row level security, force row level security;
alter table standfast.changes enable row level security, force row level security;
alter table standfast.charters enable row level security, force row level security;
alter table standfast.dead_letters enable row level security, force row level security;
alter table standfast.definition_triggers enable row level security, force row level security;
alter table standfast.definitions enable row level security, force row level security;
alter table standfast.delegations enable row level security, force row level security;
alter table standfast.document_versions enable row level security, force row level security;
alter table standfast.documents enable row level security, force row level security;
alter table standfast.effects enable row level security, force row level security;
alter table standfast.events enable row level security, force row level security;
alter table standfast.fact_versions enable row level security, force row level security;
alter table standfast.human_tasks enable row level security, force row level security;
alter table standfast.inbox enable row level security, force row level security;
alter table standfast.instances enable row level security, force row level security;
alter table standfast.meta enable row level security, force row level security;
alter table standfast.mutations enable row level security, force row level security;
alter table standfast.notification_reads enable row level security, force row level security;
alter table standfast.notifications enable row level security, force row level security;
alter table standfast.observations enable row level security, force row level security;
alter table standfast.pauses enable row level security, force row level security;
alter table standfast.principals enable row level security, force row level security;
alter table standfast.processes enable row level security, force row level security;
alter table standfast.projections enable row level security, force row level security;
alter table standfast.published_events enable row level security, force row level security;
alter table standfast.publishing_rules enable row level security, force row level security;
alter table standfast.receipts enable row level security, force row level security;
alter table standfast.resume_requests enable row level security, force row level security;
alter table standfast.role_grants enable row level security, force row level security;
alter table standfast.schedule_fires enable row level security, force row level security;
alter table standfast.schedules enable row level security, force row level security;
alter table standfast.seals enable row level security, force row level security;
alter table standfast.snapshots enable row level security, force row level security;
alter table standfast.steps enable row level security, force row level security;
alter table standfast.subscriptions enable row level security, force row level security;
alter table standfast.suspensions enable row level security, force row level security;
alter table standfast.task_comments enable row level security, force row level security;
alter table standfast.task_decisions enable row level security, force row level security;
alter table standfast.task_people enable row level security, force row level security;
alter table standfast.timers enable row level security, force row level security;
alter table standfast.workers enable row level security, force row level security;

create policy engine on standfast.absences as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.absences as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.api_keys as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.api_keys as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.api_refusals as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.api_refusals as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.api_requests as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.api_requests as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.api_sessions as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.api_sessions as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.audit as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.audit as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.blueprints as permissive for all to standfast_engine using (true) with check (true);
create policy shared on standfast.blueprints as permissive for select to standfast_tenant using ((tenant = '*'::text));
create policy tenant on standfast.blueprints as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.chains as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.chains as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.changes as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.changes as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.charters as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.charters as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.dead_letters as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.dead_letters as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.definition_triggers as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.definition_triggers as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.definitions as permissive for all to standfast_engine using (true) with check (true);
create policy shared on standfast.definitions as permissive for select to standfast_tenant using ((tenant = '*'::text));
create policy tenant on standfast.definitions as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.delegations as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.delegations as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.document_versions as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.document_versions as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.documents as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.documents as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.effects as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.effects as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.events as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.events as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.fact_versions as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.fact_versions as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.human_tasks as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.human_tasks as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.inbox as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.inbox as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.instances as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.instances as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.meta as permissive for all to standfast_engine using (true) with check (true);
create policy identity on standfast.meta as permissive for select to standfast_tenant using ((name = 'identity'::text));
create policy engine on standfast.mutations as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.mutations as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.notification_reads as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.notification_reads as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.notifications as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.notifications as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.observations as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.observations as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.pauses as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.pauses as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.principals as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.principals as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.processes as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.processes as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.projections as permissive for all to standfast_engine using (true) with check (true);
create policy engine on standfast.published_events as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.published_events as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.publishing_rules as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.publishing_rules as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.receipts as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.receipts as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.resume_requests as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.resume_requests as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.role_grants as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.role_grants as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.schedule_fires as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.schedule_fires as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.schedules as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.schedules as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.seals as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.seals as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.snapshots as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.snapshots as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.steps as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.steps as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.subscriptions as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.subscriptions as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.suspensions as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.suspensions as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.task_comments as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.task_comments as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.task_decisions as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.task_decisions as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.task_people as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.task_people as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.timers as permissive for all to standfast_engine using (true) with check (true);
create policy tenant on standfast.timers as permissive for all to standfast_tenant using ((tenant = current_setting('standfast.tenant'::text, true))) with check ((tenant = current_setting('standfast.tenant'::text, true)));
create policy engine on standfast.workers as permissive for all to standfast_engine using (true) with check (true);

CREATE OR REPLACE FUNCTION standfast.count_fact()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    insert into standfast.fact_versions as f (tenant, kind, version)
    values (case when tg_op = 'DELETE' then old.tenant else new.tenant end, tg_argv[0], 1)
    on conflict (tenant, kind) do update set version = f.version + 1;
    return null;
end $function$
;

CREATE OR REPLACE FUNCTION standfast.id_floor(moment timestamp with time zone)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$function$
;

CREATE OR REPLACE FUNCTION standfast.instances_having(wanted jsonb)
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
    select i.id from standfast.instances i where i.attributes @> wanted and i.tenant = current_setting('standfast.tenant', true)
$function$
;

CREATE OR REPLACE FUNCTION standfast.keep_events()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
end $function$
;

CREATE OR REPLACE FUNCTION standfast.language_of(tenant text, definition text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    select case when exists (
        select 1 from standfast.definitions d where d.tenant in ('*', language_of.tenant) and d.name = language_of.definition
    ) then '$graph' else language_of.definition end
$function$
;

CREATE OR REPLACE FUNCTION standfast.make_partitions(moment timestamp with time zone, months integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
end $function$
;

CREATE OR REPLACE FUNCTION standfast.never_emptied(name text, code text, message text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    execute format(
        'create trigger %I before truncate on standfast.%I for each statement execute function standfast.refuse(%L, %L)',
        name || '_never_emptied', name, code, message
    );
end $function$
;

CREATE OR REPLACE FUNCTION standfast.refuse()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    raise exception '%', tg_argv[1] using errcode = tg_argv[0];
end $function$
;

CREATE OR REPLACE FUNCTION standfast.require(holds boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if not holds then
        raise exception 'somebody else was first' using errcode = 'HF001';
    end if;
end $function$
;

CREATE OR REPLACE FUNCTION standfast.require_facts(hold boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if not hold then
        raise exception 'a fact that the decision was based on has changed' using errcode = 'HF002';
    end if;
end $function$
;

CREATE OR REPLACE FUNCTION standfast.start_key(tenant text, instance uuid)
 RETURNS text
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
    select r.key from standfast.receipts r
    where r.instance = start_key.instance and r.tenant = start_key.tenant and r.scope = '%processes' limit 1
$function$
;

CREATE OR REPLACE FUNCTION standfast.submit(definition text, command text, data text, key text DEFAULT ''::text, instance uuid DEFAULT NULL::uuid, command_id text DEFAULT ''::text, tenant text DEFAULT 'default'::text, actor text DEFAULT CURRENT_USER, comment text DEFAULT ''::text, version integer DEFAULT 1, partition text DEFAULT ''::text)
 RETURNS bigint
 LANGUAGE sql
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION standfast.wall_off(name text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    execute format('alter table standfast.%I enable row level security', name);
    execute format('alter table standfast.%I force row level security', name);
    execute format('create policy engine on standfast.%I to standfast_engine using (true) with check (true)', name);
    execute format(
        'create policy tenant on standfast.%I to standfast_tenant using (tenant = current_setting(''standfast.tenant'', true)) '
        || 'with check (tenant = current_setting(''standfast.tenant'', true))', name
    );
    execute format('grant select, insert, update, delete on standfast.%I to standfast_engine', name);
end $function$
;

-- standfast.workflow_events (id text, workflow_instance_id uuid, step_id text, event text, actor_id text, data json, comment text, timestamp timestamp with time zone, tenant_id text, on_behalf_of text, category text, sequence integer)
create view standfast.workflow_events with (security_invoker=true) as
 WITH kinds(type, place, event, by) AS (
         VALUES ('step_started'::text,0,'step_entered'::text,'first'::text), ('step_completed'::text,0,'step_entered'::text,'first'::text), ('step_completed'::text,1,'step_completed'::text,'system'::text), ('step_answered'::text,0,'step_completed'::text,'giver'::text), ('step_answered'::text,1,''::text,'actor'::text), ('task_decided'::text,0,''::text,'actor'::text), ('task_decision_withdrawn'::text,0,'answer_withdrawn'::text,'actor'::text), ('step_failed'::text,0,'step_failed'::text,'system'::text), ('step_paused'::text,0,'step_failed'::text,'system'::text), ('notification_failed'::text,0,'step_failed'::text,'system'::text), ('step_repaired'::text,0,''::text,'actor'::text), ('data_changed'::text,0,'data_changed'::text,'actor'::text), ('move_back_started'::text,0,'moved_back'::text,'actor'::text), ('signal_received'::text,0,''::text,'giver'::text), ('event_received'::text,0,''::text,'publisher'::text), ('timeout'::text,0,'timeout'::text,'system'::text), ('workflow_cancelled'::text,0,'cancelled'::text,'requested_by'::text), ('workflow_aborted'::text,0,'cancelled'::text,'requested_by'::text), ('workflow_started'::text,0,'workflow_started'::text,'giver'::text), ('workflow_completed'::text,0,'workflow_completed'::text,'giver'::text), ('workflow_failed'::text,0,'workflow_failed'::text,'giver'::text), ('workflow_paused'::text,0,'workflow_paused'::text,'giver'::text), ('workflow_resumed'::text,0,'workflow_resumed'::text,'giver'::text)
        ), told AS (
         SELECT e.instance,
            e.sequence,
            e.tenant,
            e.type,
            e.at,
            e.actor,
            e.comment,
            e.cause,
            e.on_behalf_of,
            i.definition,
            i.definition_version,
                CASE
                    WHEN e.data >= '\x7b'::bytea AND e.data < '\x7c'::bytea THEN convert_from(e.data, 'UTF8'::name)::json
                    ELSE NULL::json
                END AS data
           FROM standfast.events e
             JOIN standfast.instances i ON i.id = e.instance
          WHERE i.kind = 'process'::text
        ), noded AS (
         SELECT t.instance,
            t.sequence,
            t.tenant,
            t.type,
            t.at,
            t.actor,
            t.comment,
            t.cause,
            t.on_behalf_of,
            t.definition,
            t.definition_version,
            t.data,
            k.place,
            k.event,
            k.by,
            COALESCE(s.wait_kind, ''::text) = 'human'::text AS is_human,
            COALESCE(NULLIF(t.data ->> 'node'::text, ''::text), s.node) AS node
           FROM told t
             JOIN kinds k ON k.type = t.type
             LEFT JOIN standfast.steps s ON s.instance = t.instance AND s.number = ((t.data ->> 'step'::text)::integer)
          WHERE t.data IS NOT NULL
        ), placed AS (
         SELECT t.instance,
            t.sequence,
            t.tenant,
            t.type,
            t.at,
            t.actor,
            t.comment,
            t.cause,
            t.on_behalf_of,
            t.definition,
            t.definition_version,
            t.data,
            t.place,
            t.event,
            t.by,
            t.is_human,
            t.node,
                CASE
                    WHEN COALESCE(strpos(t.node, '/'::text), 0) = 0 THEN t.node
                    ELSE COALESCE(( SELECT convert_from(d.compiled, 'UTF8'::name)::json #>> ARRAY['nodes'::text, t.node, 'metadata'::text, 'step'::text]
                       FROM standfast.definitions d
                      WHERE (d.tenant = ANY (ARRAY[t.tenant, '*'::text])) AND d.name = t.definition AND d.version = t.definition_version
                      ORDER BY (d.tenant = '*'::text)
                     LIMIT 1), t.node)
                END AS step
           FROM noded t
        ), entries AS (
         SELECT p.instance,
            p.sequence,
            p.tenant,
            p.type,
            p.at,
            p.actor,
            p.comment,
            p.cause,
            p.on_behalf_of,
            p.definition,
            p.definition_version,
            p.data,
            p.place,
            p.event,
            p.by,
            p.is_human,
            p.node,
            p.step,
                CASE
                    WHEN p.event <> ''::text THEN p.event
                    WHEN p.type = 'signal_received'::text THEN p.data ->> 'name'::text
                    WHEN p.type = 'event_received'::text THEN p.data ->> 'event'::text
                    WHEN p.type = 'step_repaired'::text THEN
                    CASE p.data ->> 'repair'::text
                        WHEN 'skip'::text THEN 'step_skipped'::text
                        WHEN 'complete'::text THEN 'step_completed'::text
                        ELSE 'retry'::text
                    END
                    WHEN (p.data ->> 'overridden'::text) = 'true'::text THEN 'overridden'::text
                    ELSE p.data ->> 'outcome'::text
                END AS name,
            COALESCE(p.type = 'step_answered'::text AND p.place = 1 AND (((p.data -> 'decisions'::text) -> '-1'::integer) ->> 'status'::text) <> (p.data ->> 'outcome'::text), false) AS is_result,
                CASE p.by
                    WHEN 'system'::text THEN 'system'::text
                    WHEN 'first'::text THEN
                    CASE
                        WHEN p.sequence = 2 OR ((p.data ->> 'step'::text)::integer) = 1 THEN p.actor
                        ELSE 'system'::text
                    END
                    WHEN 'giver'::text THEN p.actor
                    WHEN 'actor'::text THEN COALESCE(p.data ->> 'actor'::text, p.actor)
                    WHEN 'publisher'::text THEN COALESCE(NULLIF(p.data ->> 'publisher'::text, ''::text), 'system'::text)
                    ELSE COALESCE(NULLIF(p.data ->> 'requested_by'::text, ''::text), p.actor)
                END AS who
           FROM placed p
          WHERE
                CASE p.type
                    WHEN 'step_started'::text THEN p.step = p.node
                    WHEN 'step_completed'::text THEN
                    CASE
                        WHEN COALESCE(p.data ->> 'by'::text, ''::text) <> ''::text THEN false
                        WHEN (p.data ->> 'effect'::text) IS NOT NULL THEN true
                        WHEN (p.data ->> 'node'::text) IS NOT NULL OR p.place = 0 THEN false
                        ELSE NOT p.is_human AND p.step = p.node
                    END
                    WHEN 'step_answered'::text THEN p.is_human
                    WHEN 'task_decided'::text THEN NOT (EXISTS ( SELECT 1
                       FROM standfast.events n_1
                      WHERE n_1.instance = p.instance AND n_1.sequence = (p.sequence + 1) AND n_1.cause = p.cause AND n_1.type = 'step_answered'::text AND (convert_from(n_1.data, 'UTF8'::name)::json ->> 'outcome'::text) = (p.data ->> 'outcome'::text)))
                    WHEN 'step_failed'::text THEN COALESCE(p.data ->> 'reason'::text, ''::text) = ''::text
                    WHEN 'notification_failed'::text THEN NOT p.is_human
                    ELSE true
                END
        )
 SELECT ((instance::text || ':'::text) || sequence) ||
        CASE
            WHEN place = 1 AND (type = 'step_answered'::text OR (data ->> 'effect'::text) IS NOT NULL) THEN '.1'::text
            ELSE ''::text
        END AS id,
    instance AS workflow_instance_id,
    COALESCE(step, ( SELECT
                CASE
                    WHEN strpos(convert_from(l.data, 'UTF8'::name)::json ->> 'node'::text, '/'::text) = 0 THEN convert_from(l.data, 'UTF8'::name)::json ->> 'node'::text
                    ELSE COALESCE(( SELECT convert_from(d.compiled, 'UTF8'::name)::json #>> ARRAY['nodes'::text, convert_from(l.data, 'UTF8'::name)::json ->> 'node'::text, 'metadata'::text, 'step'::text]
                       FROM standfast.definitions d
                      WHERE (d.tenant = ANY (ARRAY[n.tenant, '*'::text])) AND d.name = n.definition AND d.version = n.definition_version
                      ORDER BY (d.tenant = '*'::text)
                     LIMIT 1), convert_from(l.data, 'UTF8'::name)::json ->> 'node'::text)
                END AS "coalesce"
           FROM standfast.events l
          WHERE l.instance = n.instance AND l.sequence < n.sequence AND (l.type = ANY (ARRAY['step_started'::text, 'step_completed'::text])) AND (convert_from(l.data, 'UTF8'::name)::json ->> 'node'::text) IS NOT NULL AND substr(convert_from(l.data, 'UTF8'::name)::json ->> 'node'::text, 1, 1) <> '#'::text
          ORDER BY l.sequence DESC
         LIMIT 1), ''::text) AS step_id,
    name AS event,
        CASE
            WHEN is_result THEN 'system'::text
            ELSE who
        END AS actor_id,
        CASE
            WHEN is_result OR type = 'step_answered'::text AND place = 0 THEN '{}'::json
            WHEN type = ANY (ARRAY['step_answered'::text, 'task_decided'::text]) THEN
            CASE COALESCE(json_typeof(data -> 'data'::text), 'null'::text)
                WHEN 'object'::text THEN data -> 'data'::text
                WHEN 'null'::text THEN '{}'::json
                ELSE json_build_object('data', data -> 'data'::text)
            END
            WHEN type = ANY (ARRAY['signal_received'::text, 'event_received'::text]) THEN
            CASE COALESCE(json_typeof(data -> 'payload'::text), 'null'::text)
                WHEN 'object'::text THEN data -> 'payload'::text
                WHEN 'null'::text THEN '{}'::json
                ELSE json_build_object('data', data -> 'payload'::text)
            END
            WHEN type = 'data_changed'::text THEN data -> 'patch'::text
            WHEN name = 'step_failed'::text THEN json_build_object('error', data -> 'error'::text)
            WHEN substr(type, 1, 8) = 'workflow'::text AND name <> 'cancelled'::text THEN (data::jsonb - ARRAY['has_row'::text, 'starter'::text, 'may'::text])::json
            ELSE '{}'::json
        END AS data,
        CASE
            WHEN is_result THEN ''::text
            WHEN type = 'step_answered'::text AND place = 0 THEN comment
            WHEN type = ANY (ARRAY['step_answered'::text, 'task_decided'::text]) THEN COALESCE(NULLIF(data ->> 'comment'::text, ''::text), comment)
            WHEN by = ANY (ARRAY['actor'::text, 'requested_by'::text]) THEN COALESCE(NULLIF(data ->> 'reason'::text, ''::text), comment)
            WHEN (by = ANY (ARRAY['system'::text, 'first'::text, 'publisher'::text])) AND who = 'system'::text THEN ''::text
            ELSE comment
        END AS comment,
    at AS "timestamp",
    tenant AS tenant_id,
        CASE
            WHEN is_result THEN ''::text
            ELSE COALESCE(NULLIF(data ->> 'on_behalf_of'::text, ''::text),
            CASE
                WHEN who = actor THEN on_behalf_of
                ELSE NULL::text
            END, ''::text)
        END AS on_behalf_of,
        CASE
            WHEN substr(type, 1, 8) = 'workflow'::text AND name <> 'cancelled'::text THEN 'lifecycle'::text
            ELSE 'step'::text
        END AS category,
    sequence * 2 + place AS sequence
   FROM entries n;

-- standfast.workflow_instances (id uuid, workflow_id text, tenant_id text, partition_id text, subject_id text, current_step text, status text, state json, version integer, idempotency_key text, created_at timestamp with time zone, updated_at timestamp with time zone, expires_at timestamp with time zone, workflow_version text, business_key text, outcome text, ended_at timestamp with time zone)
create view standfast.workflow_instances with (security_invoker=true) as
 SELECT i.id,
    i.definition AS workflow_id,
    i.tenant AS tenant_id,
    COALESCE(i.partition, ''::text) AS partition_id,
    i.started_by AS subject_id,
    p.current_step,
        CASE i.status
            WHEN 'running'::text THEN 'active'::text
            WHEN 'paused'::text THEN 'suspended'::text
            WHEN 'aborted'::text THEN 'cancelled'::text
            ELSE i.status
        END AS status,
    convert_from(p.state, 'UTF8'::name)::json AS state,
    i.commits AS version,
    standfast.start_key(i.tenant, i.id) AS idempotency_key,
    i.created_at,
    i.updated_at,
    i.deadline_at AS expires_at,
    i.definition_version AS workflow_version,
    COALESCE(i.key, ''::text) AS business_key,
        CASE i.status
            WHEN 'completed'::text THEN i.reason
            ELSE ''::text
        END AS outcome,
    i.ended_at
   FROM standfast.instances i
     LEFT JOIN standfast.processes p ON p.instance = i.id AND p.number = 1
  WHERE i.kind = 'process'::text;

CREATE TRIGGER absences_fact AFTER INSERT OR DELETE OR UPDATE ON standfast.absences FOR EACH ROW EXECUTE FUNCTION standfast.count_fact('access');
CREATE TRIGGER api_keys_fact AFTER DELETE OR UPDATE OF tenant, partition, actor, kind, roles, capabilities, expires_at, revoked_at ON standfast.api_keys FOR EACH ROW EXECUTE FUNCTION standfast.count_fact('access');
CREATE TRIGGER api_sessions_fact AFTER UPDATE OF tenant, partition, actor, kind, roles, capabilities, credential, expires_at, ended_at ON standfast.api_sessions FOR EACH ROW EXECUTE FUNCTION standfast.count_fact('access');
CREATE TRIGGER api_sessions_gone AFTER DELETE ON standfast.api_sessions FOR EACH ROW WHEN ((old.ended_at IS NULL)) EXECUTE FUNCTION standfast.count_fact('access');
CREATE TRIGGER audit_never_change BEFORE UPDATE ON standfast.audit FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF136', 'the audit is never rewritten');
CREATE TRIGGER audit_never_emptied BEFORE TRUNCATE ON standfast.audit FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF136', 'the audit is never rewritten');
CREATE TRIGGER audit_never_go BEFORE DELETE ON standfast.audit FOR EACH ROW WHEN ((COALESCE(current_setting('standfast.retention'::text, true), ''::text) <> (old.instance)::text)) EXECUTE FUNCTION standfast.refuse('HF136', 'the audit is never rewritten');
CREATE TRIGGER blueprints_default BEFORE UPDATE ON standfast.blueprints FOR EACH ROW WHEN (old.is_default) EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never changes');
CREATE TRIGGER blueprints_drafted BEFORE UPDATE OF id, tenant, type, kind, is_default, created_by, created_at ON standfast.blueprints FOR EACH ROW WHEN (((old.status = 'draft'::text) AND ((new.id <> old.id) OR (new.tenant <> old.tenant) OR (new.type <> old.type) OR (new.kind <> old.kind) OR (new.is_default <> old.is_default) OR (new.created_by <> old.created_by) OR (new.created_at <> old.created_at)))) EXECUTE FUNCTION standfast.refuse('HF102', 'a draft stays what it is a draft of');
CREATE TRIGGER blueprints_frozen BEFORE UPDATE ON standfast.blueprints FOR EACH ROW WHEN (((old.status <> 'draft'::text) AND ((old.status <> 'published'::text) OR (new.status <> 'archived'::text) OR (new.id <> old.id) OR (new.tenant <> old.tenant) OR (new.type <> old.type) OR (new.kind <> old.kind) OR (new.version <> old.version) OR (new.is_default <> old.is_default) OR (new.name <> old.name) OR (new.envelope_version <> old.envelope_version) OR (new.content <> old.content) OR (new.hash <> old.hash) OR (new.skeleton IS DISTINCT FROM old.skeleton) OR (new.header IS DISTINCT FROM old.header) OR (new.compiler IS DISTINCT FROM old.compiler) OR (new.graph_hash IS DISTINCT FROM old.graph_hash) OR (new.workflow IS DISTINCT FROM old.workflow) OR (new.envelope IS DISTINCT FROM old.envelope) OR (new.body IS DISTINCT FROM old.body) OR (new.replaces IS DISTINCT FROM old.replaces) OR (new.revision <> old.revision) OR (new.drafted_by <> old.drafted_by) OR (new.comment <> old.comment) OR (new.created_by <> old.created_by) OR (new.created_at <> old.created_at) OR (new.updated_by <> old.updated_by) OR (new.updated_at <> old.updated_at) OR (new.published_by IS DISTINCT FROM old.published_by) OR (new.published_at IS DISTINCT FROM old.published_at)))) EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never changes');
CREATE TRIGGER blueprints_never_emptied BEFORE TRUNCATE ON standfast.blueprints FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never goes');
CREATE TRIGGER blueprints_never_go BEFORE DELETE ON standfast.blueprints FOR EACH ROW WHEN ((old.status <> 'draft'::text)) EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never goes');
CREATE TRIGGER chains_never_change BEFORE DELETE OR UPDATE ON standfast.chains FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never changes');
CREATE TRIGGER chains_never_emptied BEFORE TRUNCATE ON standfast.chains FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never changes');
CREATE TRIGGER changes_never_change BEFORE DELETE OR UPDATE ON standfast.changes FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF120', 'what was changed is never rewritten');
CREATE TRIGGER changes_never_emptied BEFORE TRUNCATE ON standfast.changes FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF120', 'what was changed is never rewritten');
CREATE TRIGGER charters_fact AFTER INSERT ON standfast.charters FOR EACH ROW EXECUTE FUNCTION standfast.count_fact('charters');
CREATE TRIGGER charters_never_change BEFORE DELETE OR UPDATE ON standfast.charters FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never changes');
CREATE TRIGGER charters_never_emptied BEFORE TRUNCATE ON standfast.charters FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never changes');
CREATE TRIGGER definitions_immutable BEFORE UPDATE ON standfast.definitions FOR EACH ROW WHEN (((old.status <> 'draft'::text) AND ((new.source <> old.source) OR (new.media_type <> old.media_type) OR (new.compiled <> old.compiled) OR (new.hash <> old.hash) OR (new.kind <> old.kind) OR (new.compiler <> old.compiler) OR (new.status = 'draft'::text) OR (new.tenant <> old.tenant) OR (new.name <> old.name) OR (new.version <> old.version)))) EXECUTE FUNCTION standfast.refuse('HF102', 'a published definition never changes');
CREATE TRIGGER delegations_fact AFTER INSERT OR DELETE OR UPDATE ON standfast.delegations FOR EACH ROW EXECUTE FUNCTION standfast.count_fact('access');
CREATE TRIGGER document_versions_never_change BEFORE UPDATE ON standfast.document_versions FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF134', 'a version of a document never changes');
CREATE TRIGGER document_versions_never_emptied BEFORE TRUNCATE ON standfast.document_versions FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF134', 'a version of a document never changes');
CREATE TRIGGER document_versions_never_go BEFORE DELETE ON standfast.document_versions FOR EACH ROW WHEN ((COALESCE(current_setting('standfast.retention'::text, true), ''::text) <> (old.instance)::text)) EXECUTE FUNCTION standfast.refuse('HF134', 'a version of a document never changes');
CREATE TRIGGER documents_final BEFORE UPDATE ON standfast.documents FOR EACH ROW WHEN ((old.superseded_by <> ''::text)) EXECUTE FUNCTION standfast.refuse('HF132', 'a document that another one has taken the place of never changes');
CREATE TRIGGER documents_history BEFORE UPDATE OF version ON standfast.documents FOR EACH ROW WHEN ((new.version < old.version)) EXECUTE FUNCTION standfast.refuse('HF131', 'the version of a document never goes back');
CREATE TRIGGER documents_identity BEFORE UPDATE OF instance, type, id, tenant, definition, amended_from, requester ON standfast.documents FOR EACH ROW WHEN (((new.instance <> old.instance) OR (new.type <> old.type) OR (new.id <> old.id) OR (new.tenant <> old.tenant) OR (new.definition <> old.definition) OR (new.amended_from <> old.amended_from) OR (new.requester <> old.requester))) EXECUTE FUNCTION standfast.refuse('HF130', 'the identity of a document never changes');
CREATE TRIGGER documents_never_emptied BEFORE TRUNCATE ON standfast.documents FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF133', 'documents are not deleted');
CREATE TRIGGER documents_never_go BEFORE DELETE ON standfast.documents FOR EACH ROW WHEN ((COALESCE(current_setting('standfast.retention'::text, true), ''::text) <> (old.instance)::text)) EXECUTE FUNCTION standfast.refuse('HF133', 'documents are not deleted');
CREATE TRIGGER events_append_only BEFORE DELETE OR UPDATE ON standfast.events FOR EACH ROW EXECUTE FUNCTION standfast.keep_events();
CREATE TRIGGER events_never_emptied BEFORE TRUNCATE ON standfast.events FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF101', 'events are append-only');
CREATE TRIGGER human_tasks_final BEFORE UPDATE ON standfast.human_tasks FOR EACH ROW WHEN ((old.closed_at IS NOT NULL)) EXECUTE FUNCTION standfast.refuse('HF106', 'a decision that was made never changes');
CREATE TRIGGER instances_final BEFORE UPDATE OF status, ended_at ON standfast.instances FOR EACH ROW WHEN (((old.kind = 'envelope'::text) AND (old.ended_at IS NOT NULL) AND ((new.status <> old.status) OR (new.ended_at IS NULL)) AND (COALESCE(current_setting('standfast.retention'::text, true), ''::text) <> (old.id)::text))) EXECUTE FUNCTION standfast.refuse('HF107', 'a document that has ended stays as it ended');
CREATE TRIGGER instances_history BEFORE UPDATE OF version ON standfast.instances FOR EACH ROW WHEN ((new.version < old.version)) EXECUTE FUNCTION standfast.refuse('HF103', 'the identity of an instance never changes');
CREATE TRIGGER instances_identity BEFORE UPDATE OF id, tenant, definition, kind, key, created_at, partition ON standfast.instances FOR EACH ROW WHEN (((new.id <> old.id) OR (new.tenant <> old.tenant) OR (new.definition <> old.definition) OR (new.kind <> old.kind) OR (new.key IS DISTINCT FROM old.key) OR (new.created_at <> old.created_at) OR (new.partition IS DISTINCT FROM old.partition))) EXECUTE FUNCTION standfast.refuse('HF103', 'the identity of an instance never changes');
CREATE TRIGGER mutations_never_change BEFORE UPDATE ON standfast.mutations FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF135', 'what was done to a document is never rewritten');
CREATE TRIGGER mutations_never_emptied BEFORE TRUNCATE ON standfast.mutations FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF135', 'what was done to a document is never rewritten');
CREATE TRIGGER mutations_never_go BEFORE DELETE ON standfast.mutations FOR EACH ROW WHEN ((COALESCE(current_setting('standfast.retention'::text, true), ''::text) <> (old.instance)::text)) EXECUTE FUNCTION standfast.refuse('HF135', 'what was done to a document is never rewritten');
CREATE TRIGGER principals_fact AFTER INSERT OR DELETE OR UPDATE ON standfast.principals FOR EACH ROW EXECUTE FUNCTION standfast.count_fact('access');
CREATE TRIGGER publishing_rules_never_change BEFORE UPDATE ON standfast.publishing_rules FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF102', 'a rule of publishing is replaced by another one, and never rewritten');
CREATE TRIGGER publishing_rules_never_emptied BEFORE TRUNCATE ON standfast.publishing_rules FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF102', 'a rule of publishing is replaced by another one, and never rewritten');
CREATE TRIGGER publishing_rules_never_go BEFORE DELETE ON standfast.publishing_rules FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF102', 'a rule of publishing is replaced by another one, and never rewritten');
CREATE TRIGGER role_grants_fact AFTER INSERT OR DELETE OR UPDATE ON standfast.role_grants FOR EACH ROW EXECUTE FUNCTION standfast.count_fact('access');
CREATE TRIGGER seals_never_change BEFORE DELETE OR UPDATE ON standfast.seals FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF108', 'a seal is never broken');
CREATE TRIGGER seals_never_emptied BEFORE TRUNCATE ON standfast.seals FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF108', 'a seal is never broken');
CREATE TRIGGER steps_final BEFORE UPDATE OF status ON standfast.steps FOR EACH ROW WHEN (((old.status = ANY (ARRAY['completed'::text, 'failed'::text, 'skipped'::text, 'cancelled'::text])) AND (new.status <> old.status))) EXECUTE FUNCTION standfast.refuse('HF105', 'a step that has ended never moves again');
CREATE TRIGGER steps_identity BEFORE UPDATE OF instance, number, tenant, node, token, visit, kind, compensates, retry_of ON standfast.steps FOR EACH ROW WHEN (((new.instance <> old.instance) OR (new.number <> old.number) OR (new.tenant <> old.tenant) OR (new.node <> old.node) OR (new.token <> old.token) OR (new.visit <> old.visit) OR (new.kind <> old.kind) OR (new.compensates IS DISTINCT FROM old.compensates) OR (new.retry_of IS DISTINCT FROM old.retry_of))) EXECUTE FUNCTION standfast.refuse('HF104', 'the identity of a step never changes');
CREATE TRIGGER suspensions_never_change BEFORE UPDATE ON standfast.suspensions FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF102', 'a suspension is lifted by another line, and never rewritten');
CREATE TRIGGER suspensions_never_emptied BEFORE TRUNCATE ON standfast.suspensions FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF102', 'a suspension is lifted by another line, and never rewritten');
CREATE TRIGGER suspensions_never_go BEFORE DELETE ON standfast.suspensions FOR EACH ROW EXECUTE FUNCTION standfast.refuse('HF102', 'a suspension is lifted by another line, and never rewritten');
CREATE TRIGGER task_decisions_applied BEFORE UPDATE OF applied ON standfast.task_decisions FOR EACH ROW WHEN (((old.applied IS NOT NULL) AND (new.applied IS DISTINCT FROM old.applied))) EXECUTE FUNCTION standfast.refuse('HF137', 'an approval is used up or void once and for all');
CREATE TRIGGER task_decisions_never_change BEFORE UPDATE OF actor, on_behalf_of, outcome, document_version, decided_at ON standfast.task_decisions FOR EACH ROW WHEN (((old.actor IS DISTINCT FROM new.actor) OR (old.on_behalf_of IS DISTINCT FROM new.on_behalf_of) OR (old.outcome IS DISTINCT FROM new.outcome) OR (old.document_version IS DISTINCT FROM new.document_version) OR (old.decided_at IS DISTINCT FROM new.decided_at))) EXECUTE FUNCTION standfast.refuse('HF138', 'what somebody decided never changes');
CREATE TRIGGER task_decisions_never_emptied BEFORE TRUNCATE ON standfast.task_decisions FOR EACH STATEMENT EXECUTE FUNCTION standfast.refuse('HF138', 'what somebody decided never changes');
CREATE TRIGGER task_decisions_never_go BEFORE DELETE ON standfast.task_decisions FOR EACH ROW WHEN ((COALESCE(current_setting('standfast.retention'::text, true), ''::text) <> (old.instance)::text)) EXECUTE FUNCTION standfast.refuse('HF138', 'what somebody decided never changes');

revoke all on function standfast.instances_having(jsonb) from public;
revoke all on function standfast.make_partitions(timestamp with time zone,integer) from public;
revoke all on function standfast.never_emptied(text,text,text) from public;
revoke all on function standfast.start_key(text,uuid) from public;

grant execute on function standfast.instances_having(jsonb) to standfast_tenant;
grant execute on function standfast.make_partitions(timestamp with time zone,integer) to standfast_engine;
grant execute on function standfast.start_key(text,uuid) to standfast_engine;
grant execute on function standfast.start_key(text,uuid) to standfast_tenant;
grant usage on schema standfast to standfast_engine;
grant usage on schema standfast to standfast_tenant;
grant usage on sequence standfast.absences_id_seq to standfast_engine;
grant usage on sequence standfast.absences_id_seq to standfast_tenant;
grant usage on sequence standfast.api_refusals_id_seq to standfast_engine;
grant usage on sequence standfast.api_refusals_id_seq to standfast_tenant;
grant usage on sequence standfast.changes_id_seq to standfast_engine;
grant usage on sequence standfast.changes_id_seq to standfast_tenant;
grant usage on sequence standfast.dead_letters_id_seq to standfast_engine;
grant usage on sequence standfast.dead_letters_id_seq to standfast_tenant;
grant usage on sequence standfast.delegations_id_seq to standfast_engine;
grant usage on sequence standfast.delegations_id_seq to standfast_tenant;
grant usage on sequence standfast.inbox_id_seq to standfast_engine;
grant usage on sequence standfast.inbox_id_seq to standfast_tenant;
grant usage on sequence standfast.notifications_id_seq to standfast_engine;
grant usage on sequence standfast.notifications_id_seq to standfast_tenant;
grant usage on sequence standfast.observations_id_seq to standfast_engine;
grant usage on sequence standfast.observations_id_seq to standfast_tenant;
grant usage on sequence standfast.pauses_id_seq to standfast_engine;
grant usage on sequence standfast.pauses_id_seq to standfast_tenant;
grant usage on sequence standfast.role_grants_id_seq to standfast_engine;
grant usage on sequence standfast.role_grants_id_seq to standfast_tenant;
grant delete, insert, select, update on table standfast.absences to standfast_engine;
grant select on table standfast.absences to standfast_tenant;
grant insert, select, update on table standfast.api_keys to standfast_engine;
grant delete, insert, select, update on table standfast.api_refusals to standfast_engine;
grant delete, insert, select, update on table standfast.api_requests to standfast_engine;
grant delete, insert, select, update on table standfast.api_sessions to standfast_engine;
grant delete, insert, select, update on table standfast.audit to standfast_engine;
grant select on table standfast.audit to standfast_tenant;
grant delete, insert, select, update on table standfast.blueprints to standfast_engine;
grant select on table standfast.blueprints to standfast_tenant;
grant insert, select on table standfast.chains to standfast_engine;
grant select on table standfast.chains to standfast_tenant;
grant insert, select on table standfast.changes to standfast_engine;
grant select on table standfast.changes to standfast_tenant;
grant insert, select on table standfast.charters to standfast_engine;
grant select on table standfast.charters to standfast_tenant;
grant delete, insert, select, update on table standfast.dead_letters to standfast_engine;
grant select on table standfast.dead_letters to standfast_tenant;
grant delete, insert, select, update on table standfast.definition_triggers to standfast_engine;
grant delete, insert, select, update on table standfast.definitions to standfast_engine;
grant select on table standfast.definitions to standfast_tenant;
grant delete, insert, select, update on table standfast.delegations to standfast_engine;
grant select on table standfast.delegations to standfast_tenant;
grant delete, insert, select, update on table standfast.document_versions to standfast_engine;
grant select on table standfast.document_versions to standfast_tenant;
grant delete, insert, select, update on table standfast.documents to standfast_engine;
grant select on table standfast.documents to standfast_tenant;
grant delete, insert, select, update on table standfast.effects to standfast_engine;
grant select on table standfast.effects to standfast_tenant;
grant delete, insert, select on table standfast.events to standfast_engine;
grant select on table standfast.events to standfast_tenant;
grant delete, insert, select, update on table standfast.events_default to standfast_engine;
grant insert, select, update on table standfast.fact_versions to standfast_engine;
grant delete, insert, select, update on table standfast.human_tasks to standfast_engine;
grant select on table standfast.human_tasks to standfast_tenant;
grant delete, insert, select, update on table standfast.inbox to standfast_engine;
grant insert, select on table standfast.inbox to standfast_tenant;
grant delete, insert, select, update on table standfast.instances to standfast_engine;
grant select on table standfast.instances to standfast_tenant;
grant delete, insert, select, update on table standfast.meta to standfast_engine;
grant select on table standfast.meta to standfast_tenant;
grant delete, insert, select, update on table standfast.migrations to standfast_engine;
grant delete, insert, select, update on table standfast.mutations to standfast_engine;
grant select on table standfast.mutations to standfast_tenant;
grant delete, insert, select, update on table standfast.notification_reads to standfast_engine;
grant select on table standfast.notification_reads to standfast_tenant;
grant delete, insert, select, update on table standfast.notifications to standfast_engine;
grant select on table standfast.notifications to standfast_tenant;
grant delete, insert, select, update on table standfast.observations to standfast_engine;
grant select on table standfast.observations to standfast_tenant;
grant delete, insert, select, update on table standfast.pauses to standfast_engine;
grant select on table standfast.pauses to standfast_tenant;
grant delete, insert, select, update on table standfast.principals to standfast_engine;
grant select on table standfast.principals to standfast_tenant;
grant delete, insert, select, update on table standfast.processes to standfast_engine;
grant select on table standfast.processes to standfast_tenant;
grant delete, insert, select, update on table standfast.projections to standfast_engine;
grant delete, insert, select, update on table standfast.published_events to standfast_engine;
grant select on table standfast.published_events to standfast_tenant;
grant insert, select on table standfast.publishing_rules to standfast_engine;
grant select on table standfast.publishing_rules to standfast_tenant;
grant delete, insert, select, update on table standfast.receipts to standfast_engine;
grant delete, insert, select, update on table standfast.resume_requests to standfast_engine;
grant select on table standfast.resume_requests to standfast_tenant;
grant delete, insert, select, update on table standfast.role_grants to standfast_engine;
grant select on table standfast.role_grants to standfast_tenant;
grant delete, insert, select, update on table standfast.schedule_fires to standfast_engine;
grant select on table standfast.schedule_fires to standfast_tenant;
grant delete, insert, select, update on table standfast.schedules to standfast_engine;
grant select on table standfast.schedules to standfast_tenant;
grant insert, select on table standfast.seals to standfast_engine;
grant select on table standfast.seals to standfast_tenant;
grant delete, insert, select, update on table standfast.snapshots to standfast_engine;
grant select on table standfast.snapshots to standfast_tenant;
grant delete, insert, select, update on table standfast.steps to standfast_engine;
grant select on table standfast.steps to standfast_tenant;
grant delete, insert, select, update on table standfast.steps_default to standfast_engine;
grant delete, insert, select, update on table standfast.subscriptions to standfast_engine;
grant select on table standfast.subscriptions to standfast_tenant;
grant insert, select on table standfast.suspensions to standfast_engine;
grant select on table standfast.suspensions to standfast_tenant;
grant delete, insert, select, update on table standfast.task_comments to standfast_engine;
grant select on table standfast.task_comments to standfast_tenant;
grant delete, insert, select, update on table standfast.task_decisions to standfast_engine;
grant select on table standfast.task_decisions to standfast_tenant;
grant delete, insert, select, update on table standfast.task_people to standfast_engine;
grant select on table standfast.task_people to standfast_tenant;
grant delete, insert, select, update on table standfast.timers to standfast_engine;
grant select on table standfast.timers to standfast_tenant;
grant delete, insert, select, update on table standfast.workers to standfast_engine;
grant select on table standfast.workflow_events to standfast_engine;
grant select on table standfast.workflow_events to standfast_tenant;
grant select on table standfast.workflow_instances to standfast_engine;
grant select on table standfast.workflow_instances to standfast_tenant;
