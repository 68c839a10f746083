#include "store/statements.h"

/* Of journal and journal_segments alike: those that hold a row after ?1, in order. */
#define PARTS_AFTER(table)                                                                         \
    "SELECT first_sequence, last_sequence, previous_check, raw_bytes, content FROM " table         \
    " WHERE first_sequence >= coalesce((SELECT max(first_sequence) FROM " table                    \
    " WHERE first_sequence <= ?1 + 1), 0) AND last_sequence > ?1 ORDER BY first_sequence"

#define WORKLOAD_COLUMNS                                                                           \
    "w.key, w.id, w.array_id, w.array_index, w.project, w.tenant, w.name, w.user, "                \
    "w.project_path, w.state, w.cause, w.detail, w.attempt, w.evictions, w.failures, "             \
    "w.node_losses, w.submitted_ns, w.started_ns, w.ended_ns, w.exit_is_known, w.exit_code, "      \
    "w.exit_signal, w.exit_is_oom, r.body, r.version "                                             \
    "FROM workloads w LEFT JOIN workload_records r ON r.key = w.key "

/* Newest first: ?1 is the key of the page's predecessor. */
#define ENDED(filter)                                                                              \
    "SELECT " WORKLOAD_COLUMNS "WHERE w.ended_ns > 0 AND w.key < ?1 AND " filter                   \
    " ORDER BY w.key DESC LIMIT ?2"

#define USAGE(filter)                                                                              \
    "SELECT key, allocation, workload, project, tenant, class_number, charge_milli, start_ns, "    \
    "duration_ms, price_micros_per_hour, amount_micros, cause FROM usage_segments "                \
    "WHERE key > ?1 AND " filter " ORDER BY key LIMIT ?2"

#define AUDIT_COLUMNS                                                                              \
    "sequence, wall_ns, role, actor_tenant, actor_token, actor_node, actor_name, "                 \
    "request, tenant, type, object, project, "                                                     \
    "(SELECT id FROM workloads WHERE key = workload_key) FROM audit"
#define AUDIT(filter)                                                                              \
    "SELECT " AUDIT_COLUMNS " WHERE sequence < ?1 AND " filter " ORDER BY sequence DESC LIMIT ?2"

/* Further filters than the one an index serves: ?3 tenant, ?4 project, ?5 workload; NULL is any. */
#define WORKLOAD_KEY "(SELECT key FROM workloads WHERE id = ?5)"
#define MORE_FILTERS                                                                               \
    " AND (?3 IS NULL OR tenant = ?3) AND (?4 IS NULL OR project = ?4) "                           \
    "AND (?5 IS NULL OR workload_key = " WORKLOAD_KEY ")"
#define MORE_FILTERS_ENDED                                                                         \
    " AND (?3 IS NULL OR w.tenant = ?3) AND (?4 IS NULL OR w.project = ?4) "                       \
    "AND (?5 IS NULL OR w.id = ?5)"

/* clang-format off */
const char *const store_statements[ST_COUNT] = {
    [ST_HEAD_READ] =
        "SELECT check_key, epoch, sequence, check_value, dropped_sequence, dropped_check, archive_to "
        "FROM store_head WHERE id = 1",
    [ST_HEAD_ADVANCE] = "UPDATE store_head SET sequence = ?, check_value = ? WHERE id = 1",
    [ST_EPOCH_RAISE] =
        "UPDATE store_head SET epoch = max(epoch + 1, ?) WHERE id = 1 RETURNING epoch",
    [ST_CLOCK_SET] =
        "INSERT INTO store_clock VALUES (1, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "boot_id = excluded.boot_id, boottime_ns = excluded.boottime_ns, "
        "mono_ns = excluded.mono_ns, wall_ns = excluded.wall_ns",
    [ST_CLOCK_READ] = "SELECT boot_id, boottime_ns, mono_ns, wall_ns FROM store_clock WHERE id = 1",

    [ST_PART_ADD] = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)",
    [ST_PARTS_AFTER] = PARTS_AFTER("journal"),
    [ST_PART_LAST] =
        "SELECT last_sequence, last_check FROM journal ORDER BY first_sequence DESC LIMIT 1",
    [ST_PART_FIRST] =
        "SELECT first_sequence, previous_check FROM journal ORDER BY first_sequence LIMIT 1",
    [ST_PARTS_REMOVE] = "DELETE FROM journal WHERE first_sequence <= ?",

    [ST_SEGMENT_ADD] = "INSERT INTO journal_segments VALUES (?, ?, ?, ?, ?, ?, ?)",
    [ST_SEGMENTS_AFTER] = PARTS_AFTER("journal_segments"),
    [ST_SEGMENT_LAST] =
        "SELECT last_sequence, last_check FROM journal_segments "
        "ORDER BY first_sequence DESC LIMIT 1",
    [ST_SEGMENT_OLDEST] =
        "SELECT last_sequence, last_check, last_wall_ns FROM journal_segments "
        "ORDER BY first_sequence LIMIT 1",
    [ST_SEGMENT_REMOVE] = "DELETE FROM journal_segments WHERE last_sequence = ?",
    [ST_HEAD_DROP] = "UPDATE store_head SET dropped_sequence = ?, dropped_check = ? WHERE id = 1",
    [ST_ARCHIVE_TO] = "UPDATE store_head SET archive_to = max(archive_to, ?) WHERE id = 1",

    [ST_SNAPSHOT_ADD] = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)",
    [ST_SNAPSHOT_NEWEST] =
        "SELECT sequence, raw_bytes, check_value, content FROM snapshots "
        "ORDER BY sequence DESC LIMIT 1",
    [ST_SNAPSHOT_NTH] = "SELECT sequence FROM snapshots ORDER BY sequence DESC LIMIT 1 OFFSET ?",
    [ST_SNAPSHOT_OLDEST] = "SELECT min(sequence) FROM snapshots",
    [ST_SNAPSHOTS_REMOVE] = "DELETE FROM snapshots WHERE sequence < ?",

    [ST_ANSWERS_ADD] = "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)",
    [ST_ANSWERS_READ] = "SELECT heads FROM answers ORDER BY first_number",
    [ST_ANSWERS_FIND] =
        "SELECT heads, raw_bytes, content FROM answers WHERE first_number <= ? "
        "ORDER BY first_number DESC LIMIT 1",
    [ST_ANSWERS_TRIM] =
        "DELETE FROM answers WHERE first_number IN (SELECT first_number FROM answers "
        "ORDER BY first_number LIMIT ?2) AND expires_ns <= ?1",

    [ST_PROJECT_SET] = "INSERT OR REPLACE INTO projects VALUES (?, ?, ?, ?)",
    [ST_WORKLOAD_ADD] =
        "INSERT INTO workloads VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
        "coalesce((SELECT path FROM projects WHERE id = ?5), ''), ?9, ?10, ?11, ?12, ?13, ?14, "
        "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
    /* As long as the workload is kept; and once, for stores from before had it from the
     * beginning. */
    [ST_WORKLOAD_RECORD_ADD] =
        "INSERT OR IGNORE INTO workload_records (key, body, version) "
        "SELECT key, ?2, ?3 FROM workloads WHERE key = ?1",
    [ST_WORKLOAD_CHANGE] =
        "UPDATE workloads SET state = ?2, cause = ?3, detail = ?4, attempt = ?5, evictions = ?6, "
        "failures = ?7, node_losses = ?8, started_ns = CASE WHEN ?9 > 0 AND state <> ?2 THEN ?9 ELSE started_ns END, "
        "ended_ns = ?10, exit_is_known = ?11, exit_code = ?12, exit_signal = ?13, "
        "exit_is_oom = ?14 WHERE id = ?1",
    [ST_ALLOCATION_ADD] =
        "INSERT INTO allocations VALUES (?1, ?2, "
        "coalesce((SELECT key FROM workloads WHERE id = ?3), 0), ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    [ST_ALLOCATION_CHANGE] =
        "UPDATE allocations SET state = ?2, stop_cause = ?3, evictor = ?4, "
        "started_ns = CASE WHEN ?5 > 0 AND state <> ?2 THEN ?5 ELSE started_ns END, "
        "ended_ns = CASE WHEN ended_ns = 0 THEN ?6 ELSE ended_ns END, "
        "exit_is_known = ?7, exit_code = ?8, exit_signal = ?9, exit_is_oom = ?10 "
        "WHERE id = ?1 AND state <> 'ended'",
    /* An allocation that is not known (it always is) has a key of its own. */
    [ST_USAGE_ADD] =
        "INSERT INTO usage_segments VALUES (?1, coalesce((SELECT a.key FROM workloads w "
        "JOIN allocations a ON a.workload_key = w.key WHERE w.id = ?3 AND a.id = ?2), -?1), "
        "coalesce((SELECT key FROM workloads WHERE id = ?3), 0), "
        "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [ST_LEDGER_GROW] =
        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (project, class_number) "
        "DO UPDATE SET milli_ms = milli_ms + excluded.milli_ms, "
        "amount_micros = amount_micros + excluded.amount_micros, "
        "segments = segments + excluded.segments",
    /* ?12 project, ?13 workload, ?14 allocation: what is missing follows from what is known. ?15 is
     * the tenant's sequence; 0 only when a journal older than those numbers is projected again. */
    [ST_AUDIT_ADD] =
        "INSERT INTO audit SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
        "coalesce(?12, w.project, a.project), coalesce(w.key, a.workload_key), "
        "CASE WHEN ?9 IS NULL THEN 0 WHEN ?15 > 0 THEN ?15 ELSE 1 + "
        "coalesce((SELECT max(tenant_sequence) FROM audit WHERE tenant = ?9), 0) END "
        "FROM (SELECT 1) LEFT JOIN workloads w ON w.id = ?13 "
        "LEFT JOIN allocations a ON a.id = ?14 AND a.state <> 'ended'",

    [ST_TRIM_ALLOCATIONS] =
        "DELETE FROM allocations WHERE workload_key IN (SELECT key FROM workloads "
        "WHERE ended_ns > 0 AND ended_ns < ?1 ORDER BY ended_ns, key LIMIT ?2)",
    [ST_TRIM_RECORDS] =
        "DELETE FROM workload_records WHERE key IN (SELECT key FROM workloads "
        "WHERE ended_ns > 0 AND ended_ns < ?1 ORDER BY ended_ns, key LIMIT ?2)",
    [ST_TRIM_WORKLOADS] =
        "DELETE FROM workloads WHERE key IN (SELECT key FROM workloads "
        "WHERE ended_ns > 0 AND ended_ns < ?1 ORDER BY ended_ns, key LIMIT ?2)",
    /* Rows are in the order they were recorded, so the oldest come first without an index. */
    [ST_TRIM_USAGE] =
        "DELETE FROM usage_segments WHERE key IN (SELECT key FROM usage_segments "
        "ORDER BY key LIMIT ?2) AND recorded_ns < ?1",
    [ST_TRIM_AUDIT] =
        "DELETE FROM audit WHERE sequence IN (SELECT sequence FROM audit "
        "ORDER BY sequence LIMIT ?2) AND wall_ns < ?1",

    [ST_QUERY_ENDED] = ENDED("1" MORE_FILTERS_ENDED),
    [ST_QUERY_ENDED_TENANT] = ENDED("w.tenant = ?3" MORE_FILTERS_ENDED),
    [ST_QUERY_ENDED_PROJECT] = ENDED("w.project = ?4" MORE_FILTERS_ENDED),
    [ST_QUERY_WORKLOAD] = "SELECT " WORKLOAD_COLUMNS "WHERE w.id = ?",
    [ST_QUERY_USAGE] = USAGE("1" MORE_FILTERS),
    [ST_QUERY_USAGE_TENANT] = USAGE("tenant = ?3" MORE_FILTERS),
    [ST_QUERY_USAGE_PROJECT] = USAGE("project = ?4" MORE_FILTERS),
    [ST_QUERY_USAGE_WORKLOAD] = USAGE("workload_key = " WORKLOAD_KEY MORE_FILTERS),
    [ST_QUERY_AUDIT] = AUDIT("1" MORE_FILTERS),
    /* The order of a tenant's numbers is that of the sequences. ?1 most often is a row of
     * the tenant. */
    [ST_QUERY_AUDIT_TENANT] =
        "SELECT " AUDIT_COLUMNS " WHERE tenant = ?3 AND tenant_sequence < CASE "
        "WHEN ?1 = 9223372036854775807 THEN ?1 ELSE coalesce("
        "(SELECT tenant_sequence FROM audit WHERE sequence = ?1 AND tenant = ?3), "
        "(SELECT tenant_sequence + 1 FROM audit WHERE sequence < ?1 AND tenant = ?3 "
        "ORDER BY sequence DESC LIMIT 1), 0) END" MORE_FILTERS
        " ORDER BY tenant_sequence DESC LIMIT ?2",
    [ST_QUERY_AUDIT_WORKLOAD] =
        AUDIT("sequence IN (SELECT " WORKLOAD_KEY " UNION ALL SELECT sequence FROM audit "
              "WHERE workload_key = " WORKLOAD_KEY " AND workload_key <> sequence "
              "AND sequence < ?1)" MORE_FILTERS),
    /* Which events a feed has is known from the audit; their rows may be live or archived. */
    [ST_QUERY_EVENTS] =
        "SELECT sequence, tenant_sequence FROM audit WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
    [ST_QUERY_EVENTS_TENANT] =
        "SELECT sequence, tenant_sequence FROM audit WHERE tenant = ?3 AND tenant_sequence > ?1 "
        "ORDER BY tenant_sequence LIMIT ?2",
};
/* clang-format on */
