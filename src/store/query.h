/*
 * query.h - read-only lists of what is no longer in memory: ended workloads, usage, audit, journal.
 *
 * A query object has its own read-only connection and is used by one worker thread at a time. Pages
 * are keyset pages: `after` is the last row's key of the page before, 0 starts; newest first where
 * said. A tenant filter of none means the operator's view of all.
 */
#ifndef STORE_QUERY_H
#define STORE_QUERY_H

#include "store/store.h"

struct query;

enum err query_open_sqlite(const char *path, struct query **out, struct error *e) MUST_CHECK;
/* Reads a memory store directly; valid as long as it is. */
struct query *query_open_memory(struct store *store); /* for tests */
void query_free(struct query *query);
DEFINE_CLEANUP(query, struct query *, query_free)

struct query_page {
    struct id tenant;   /* none: all tenants */
    struct id project;  /* none: any */
    struct id workload; /* none: any */
    uint64_t after;     /* key of the last row seen; 0: from the start */
    size_t limit;       /* at most 1000 */
};

struct ended_workload {
    uint64_t key; /* sequence of submission */
    struct id id, array, project, tenant;
    int64_t array_index;
    struct str name, user, project_path;
    enum workload_state state;
    enum cause cause;
    struct str detail;
    int64_t attempt, evictions, failures, node_losses;
    struct wall submitted, started, ended;
    struct exit_status exit;
    struct str record_json;  /* the submitted event's body */
    unsigned record_version; /* of that event */
};

struct usage_row {
    uint64_t key;
    struct segment segment;
};

struct audit_row {
    uint64_t key; /* journal sequence */
    struct wall at;
    struct actor actor;
    struct id request;
    struct id tenant;
    struct id project, workload; /* that it is about; none: another thing, or no longer kept */
    struct str verb;             /* event name */
    struct str object;           /* text id */
    struct str body;             /* empty: the journal has let it go */
    unsigned version;            /* of the event */
};

typedef enum err ended_workload_fn(void *arg, const struct ended_workload *row, struct error *e);
typedef enum err usage_row_fn(void *arg, const struct usage_row *row, struct error *e);
typedef enum err audit_row_fn(void *arg, const struct audit_row *row, struct error *e);

struct answer_lookup {
    uint64_t number;
    struct digest key;
    struct wall now;
};

/* The answer of this number, if it is this key's and has not expired; ERR_NOT_FOUND. One indexed
 * read: cheap enough for the loop. `out` borrows from the arena. */
enum err query_answer(struct query *query, const struct answer_lookup *lookup, struct arena *arena,
                      struct store_answer *out, struct error *e) MUST_CHECK;

/* Newest first. */
enum err query_ended_workloads(struct query *query, const struct query_page *page,
                               ended_workload_fn *each, void *arg, struct error *e) MUST_CHECK;
enum err query_workload(struct query *query, struct id id, ended_workload_fn *each, void *arg,
                        struct error *e) MUST_CHECK; /* ERR_NOT_FOUND */
/* Oldest first. */
enum err query_usage(struct query *query, const struct query_page *page, usage_row_fn *each,
                     void *arg, struct error *e) MUST_CHECK;
enum err query_audit(struct query *query, const struct query_page *page, audit_row_fn *each,
                     void *arg, struct error *e) MUST_CHECK; /* newest first */
/* Journal rows of one tenant's feed (none: all) oldest first: feeds that resume. `after` is a
 * sequence of that feed: the tenant's own (tenant_sequence of the rows) where one is named. */
enum err query_events(struct query *query, const struct query_page *page, store_row_fn *each,
                      void *arg, struct error *e) MUST_CHECK;

#endif
