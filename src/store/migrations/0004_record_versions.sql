-- The body of a submission is read by the table of the version it was written with. So far there was one.
ALTER TABLE workload_records ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
