-- Ids are 16 bytes, NULL for none. States, causes and roles are stored by name, event types by their
-- stable number. Times are nanoseconds; 0 is "never".

-- One row: where the journal ends, and who may append.
CREATE TABLE store_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    check_key BLOB NOT NULL CHECK (length(check_key) = 16), -- names this store; keys its checks
    epoch INTEGER NOT NULL,
    sequence INTEGER NOT NULL,        -- of the last event stored
    check_value INTEGER NOT NULL,     -- of its row
    dropped_sequence INTEGER NOT NULL, -- events up to here fell to retention
    dropped_check INTEGER NOT NULL,   -- check of the last of them: where the kept chain begins
    archive_to INTEGER NOT NULL       -- journal rows up to here may move into segments
) STRICT;

CREATE TABLE store_clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot_id TEXT NOT NULL,
    boottime_ns INTEGER NOT NULL,
    mono_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL
) STRICT;

-- The truth. check_value is a SipHash of the row and of the check of the row before it.
CREATE TABLE journal (
    sequence INTEGER PRIMARY KEY,
    type INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    role TEXT NOT NULL,
    actor_tenant BLOB,
    actor_token BLOB,
    actor_node BLOB,
    actor_name TEXT NOT NULL,
    request BLOB,
    tenant BLOB,
    object TEXT NOT NULL,
    body TEXT NOT NULL,
    check_value INTEGER NOT NULL
) STRICT;

-- Older journal rows, deflated a thousand or so together; a row leaves `journal` in the transaction
-- that puts it here.
CREATE TABLE journal_segments (
    first_sequence INTEGER PRIMARY KEY,
    last_sequence INTEGER NOT NULL,
    previous_check INTEGER NOT NULL, -- of the row before the first
    last_check INTEGER NOT NULL,
    last_wall_ns INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE snapshots (
    sequence INTEGER PRIMARY KEY,
    raw_bytes INTEGER NOT NULL,
    check_value INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE answers (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
    body_hash BLOB NOT NULL CHECK (length(body_hash) = 32),
    status INTEGER NOT NULL,
    version INTEGER NOT NULL,
    expires_ns INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;
CREATE INDEX answers_by_expiry ON answers (expires_ns);

-- Projections: made from the journal, and made again from it by `berthd rebuild`.

CREATE TABLE projects (
    id BLOB PRIMARY KEY,
    parent BLOB,
    tenant BLOB NOT NULL,
    path TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The key is the sequence of the submission. The submitted record has a table of its own, so that a
-- change of state does not rewrite it.
CREATE TABLE workloads (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    array_id BLOB,
    array_index INTEGER NOT NULL,
    project BLOB NOT NULL,
    tenant BLOB,
    name TEXT NOT NULL,
    user TEXT NOT NULL,
    project_path TEXT NOT NULL,
    state TEXT NOT NULL,
    cause TEXT NOT NULL,
    detail TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    evictions INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    node_losses INTEGER NOT NULL,
    submitted_ns INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER NOT NULL,
    exit_is_known INTEGER NOT NULL,
    exit_code INTEGER NOT NULL,
    exit_signal INTEGER NOT NULL,
    exit_is_oom INTEGER NOT NULL
) STRICT;
CREATE INDEX workloads_ended_by_tenant ON workloads (tenant, key) WHERE ended_ns > 0;
CREATE INDEX workloads_ended_by_project ON workloads (project, key) WHERE ended_ns > 0;
CREATE INDEX workloads_by_end ON workloads (ended_ns) WHERE ended_ns > 0;

CREATE TABLE workload_records (
    key INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- The key is the sequence of the grant. Keys grow with time, so an index over them is written at its
-- end; one over ids is written all over, which a long history makes expensive. Hence rows refer to
-- each other by key, and only live allocations are found by id.
CREATE TABLE allocations (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    workload_key INTEGER NOT NULL,
    project BLOB NOT NULL,
    tenant BLOB,
    node BLOB,
    attempt INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    class_number INTEGER NOT NULL,
    charge_milli INTEGER NOT NULL,
    state TEXT NOT NULL,
    stop_cause TEXT NOT NULL,
    evictor BLOB,
    granted_ns INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER NOT NULL,
    exit_is_known INTEGER NOT NULL,
    exit_code INTEGER NOT NULL,
    exit_signal INTEGER NOT NULL,
    exit_is_oom INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX allocations_live ON allocations (id) WHERE state <> 'ended';
CREATE INDEX allocations_by_workload ON allocations (workload_key);

-- The key is the sequence of the event that ended the use.
CREATE TABLE usage_segments (
    key INTEGER PRIMARY KEY,
    allocation_key INTEGER NOT NULL,
    workload_key INTEGER NOT NULL,
    allocation BLOB NOT NULL,
    workload BLOB NOT NULL,
    project BLOB NOT NULL,
    tenant BLOB,
    class_number INTEGER NOT NULL,
    charge_milli INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    price_micros_per_hour INTEGER NOT NULL,
    amount_micros INTEGER NOT NULL,
    cause TEXT NOT NULL,
    recorded_ns INTEGER NOT NULL,
    -- Nothing is billed twice; work on a node that was lost and came back begins a new use.
    UNIQUE (allocation_key, start_ns)
) STRICT;
CREATE INDEX usage_by_tenant ON usage_segments (tenant, key);
CREATE INDEX usage_by_project ON usage_segments (project, key);
CREATE INDEX usage_by_workload ON usage_segments (workload_key, key);

-- Totals of all usage segments that ever ended.
CREATE TABLE ledger (
    project BLOB NOT NULL,
    class_number INTEGER NOT NULL,
    tenant BLOB,
    milli_ms INTEGER NOT NULL,
    amount_micros INTEGER NOT NULL,
    segments INTEGER NOT NULL,
    PRIMARY KEY (project, class_number)
) STRICT, WITHOUT ROWID;

-- One row an event: who did what to what. The body stays in the journal.
CREATE TABLE audit (
    sequence INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    role TEXT NOT NULL,
    actor_tenant BLOB,
    actor_token BLOB,
    actor_node BLOB,
    actor_name TEXT NOT NULL,
    request BLOB,
    tenant BLOB,
    type INTEGER NOT NULL,
    object TEXT NOT NULL,
    project BLOB,
    workload_key INTEGER
) STRICT;
CREATE INDEX audit_by_tenant ON audit (tenant, sequence);
CREATE INDEX audit_by_workload ON audit (workload_key, sequence) WHERE workload_key IS NOT NULL;

INSERT INTO store_head VALUES (1, randomblob(16), 0, 0, 0, 0, 0, 0);
