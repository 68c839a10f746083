-- What one transaction adds to the journal and to the answers is packed together: such rows are much
-- alike, and one by one they were two thirds of all pages written. The program moves the rows there are
-- and drops their tables (store/upgrade.c).
ALTER TABLE journal RENAME TO journal_rows;
ALTER TABLE answers RENAME TO answer_rows;

-- A part is consecutive rows, encoded as in segments and packed (store/lz.h); parts move into segments.
CREATE TABLE journal (
    first_sequence INTEGER PRIMARY KEY,
    last_sequence INTEGER NOT NULL,
    previous_check INTEGER NOT NULL, -- of the row before the first
    last_check INTEGER NOT NULL,
    last_wall_ns INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- Heads are what a start reads: number, key, body_hash, status, version, expires_ns, size of the content.
CREATE TABLE answers (
    first_number INTEGER PRIMARY KEY,
    last_number INTEGER NOT NULL,
    expires_ns INTEGER NOT NULL, -- the last of them
    heads BLOB NOT NULL,
    raw_bytes INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- From now on a submission's body is copied into workload_records when it leaves `journal`.

-- A tenant's rows are found in the order of its own numbers.
DROP INDEX audit_by_tenant;
-- The row of a submission is found by its sequence, which is the workload's key.
DROP INDEX audit_by_workload;
CREATE INDEX audit_by_workload ON audit (workload_key, sequence) WHERE workload_key <> sequence;
