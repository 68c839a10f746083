/* statements.h - every prepared statement of the SQLite store and of its queries, by number. */
#ifndef STORE_STATEMENTS_H
#define STORE_STATEMENTS_H

#include "store/sql.h"

enum statement {
    /* head and clock */
    ST_HEAD_READ,
    ST_HEAD_ADVANCE,
    ST_EPOCH_RAISE,
    ST_CLOCK_SET,
    ST_CLOCK_READ,
    /* journal */
    ST_PART_ADD,
    ST_PARTS_AFTER,
    ST_PART_LAST,
    ST_PART_FIRST,
    ST_PARTS_REMOVE,
    /* archive */
    ST_SEGMENT_ADD,
    ST_SEGMENTS_AFTER,
    ST_SEGMENT_LAST,
    ST_SEGMENT_OLDEST,
    ST_SEGMENT_REMOVE,
    ST_HEAD_DROP,
    ST_ARCHIVE_TO,
    /* snapshots */
    ST_SNAPSHOT_ADD,
    ST_SNAPSHOT_NEWEST,
    ST_SNAPSHOT_NTH,
    ST_SNAPSHOT_OLDEST,
    ST_SNAPSHOTS_REMOVE,
    /* answers */
    ST_ANSWERS_ADD,
    ST_ANSWERS_READ,
    ST_ANSWERS_FIND,
    ST_ANSWERS_TRIM,
    /* projections */
    ST_PROJECT_SET,
    ST_WORKLOAD_ADD,
    ST_WORKLOAD_RECORD_ADD,
    ST_WORKLOAD_CHANGE,
    ST_ALLOCATION_ADD,
    ST_ALLOCATION_CHANGE,
    ST_USAGE_ADD,
    ST_LEDGER_GROW,
    ST_AUDIT_ADD,
    /* retention */
    ST_TRIM_ALLOCATIONS,
    ST_TRIM_RECORDS,
    ST_TRIM_WORKLOADS,
    ST_TRIM_USAGE,
    ST_TRIM_AUDIT,
    /* queries */
    ST_QUERY_ENDED,
    ST_QUERY_ENDED_TENANT,
    ST_QUERY_ENDED_PROJECT,
    ST_QUERY_WORKLOAD,
    ST_QUERY_USAGE,
    ST_QUERY_USAGE_TENANT,
    ST_QUERY_USAGE_PROJECT,
    ST_QUERY_USAGE_WORKLOAD,
    ST_QUERY_AUDIT,
    ST_QUERY_AUDIT_TENANT,
    ST_QUERY_AUDIT_WORKLOAD,
    ST_QUERY_EVENTS,
    ST_QUERY_EVENTS_TENANT,
    ST_COUNT
};

extern const char *const store_statements[ST_COUNT];

#endif
