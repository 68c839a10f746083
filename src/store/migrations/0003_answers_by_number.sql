-- Answers are found by number, which the controller knows by key: an index over keys, which are random,
-- had a page written for every request. They expire in the order they were given.
CREATE TABLE answers_by_number (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL CHECK (length(key) = 32),
    body_hash BLOB NOT NULL CHECK (length(body_hash) = 32),
    status INTEGER NOT NULL,
    version INTEGER NOT NULL,
    expires_ns INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;
INSERT INTO answers_by_number
    SELECT id, key, body_hash, status, version, expires_ns, content FROM answers;
DROP TABLE answers;
ALTER TABLE answers_by_number RENAME TO answers;
-- What a start reads, without their contents.
CREATE INDEX answers_keys ON answers (id, key, expires_ns);
