/*
 * logstore.h - the output of workloads, as their nodes shipped it.
 *
 * One file an allocation: the node's spool, byte for byte (wire/spool.h says how stdout, stderr and
 * gaps are told apart), appended in order of offset, so that what was stored once is never stored
 * twice. Each project has a quota, which makes its oldest ended output go first, and an age at
 * which output goes; what is removed or refused is told as a gap.
 */
#ifndef CONTROLLER_LOGSTORE_H
#define CONTROLLER_LOGSTORE_H

#include "base/error.h"
#include "base/id.h"
#include "base/timepoint.h"

struct logstore;

struct log_key {
    struct id project;
    struct id workload;
    struct id allocation;
    int64_t attempt;
    int64_t rank;
};

/* What holds for a project at this moment, also for one that is removed; asked again each time. */
struct logstore_limits {
    int64_t quota_mib;
    int64_t age_s;
};
typedef struct logstore_limits logstore_limits_fn(void *arg, struct id project);

enum err logstore_open(const char *dir, logstore_limits_fn *limits, void *arg,
                       struct logstore **out, struct error *e) MUST_CHECK;
void logstore_free(struct logstore *logs); /* NULL is a no-op */
DEFINE_CLEANUP(logstore, struct logstore *, logstore_free)

/* Bytes stored of it; 0 when nothing is. */
uint64_t logstore_size(struct logstore *logs, const struct log_key *key);
bool logstore_is_final(struct logstore *logs, const struct log_key *key);
/* The quota was reached: the rest of it is not wanted. */
bool logstore_is_cut(struct logstore *logs, const struct log_key *key);
/*
 * Appends at `offset`. What is stored already is skipped; ERR_CONFLICT when bytes before it are
 * missing; ERR_LIMIT when the project's quota is used up by output that is still growing: the rest
 * of this output is dropped, and readers are told.
 */
enum err logstore_append(struct logstore *logs, const struct log_key *key, uint64_t offset,
                         struct str bytes, struct error *e) MUST_CHECK;
/* Nothing follows. */
void logstore_finish(struct logstore *logs, const struct log_key *key);

/*
 * Output that will come: kept until it is complete, so that a controller that starts anew knows
 * whose it is although the allocation has left the state meanwhile. Not durable against power loss.
 */
void logstore_expect(struct logstore *logs, const struct log_key *key, struct id node);
/* False: nothing is expected of that allocation. */
bool logstore_expected(struct logstore *logs, struct id allocation, struct log_key *key,
                       struct id *node);
/* It wrote nothing: not expected any more. */
void logstore_forget(struct logstore *logs, struct id allocation);
/* True: output of one of its attempts is expected. */
bool logstore_awaits(const struct logstore *logs, struct id workload);

/* One stored output, for reading: by workload, in order of attempt and rank. */
struct log_entry {
    struct log_key key;
    uint64_t size;
    bool is_final;
    bool is_cut; /* the quota was reached: bytes after `size` were dropped */
};
typedef bool log_entry_fn(void *arg, const struct log_entry *entry); /* false: stop */
void logstore_list(struct logstore *logs, struct id project, struct id workload, log_entry_fn *each,
                   void *arg);
/* Reads up to `max` bytes of the spool from `offset`. ERR_NOT_FOUND. */
enum err logstore_read(struct logstore *logs, const struct log_key *key, uint64_t offset,
                       size_t max, struct buf *out, struct error *e) MUST_CHECK;

/* Everything appended before is on disk when it returns: before a node is told that its copy may
 * go. Blocking, and safe on a worker while the loop goes on appending. */
enum err logstore_sync(const struct logstore *logs, struct error *e) MUST_CHECK;

/* Removes output whose last byte is older than the age of its project, unless its allocation still
 * lives: work may be silent for long. Then what is beyond a quota that was lowered, oldest first,
 * and none that still grows. Returns how many files went by age. */
size_t logstore_expire(struct logstore *logs, struct wall now,
                       bool (*is_live)(void *arg, struct id allocation), void *arg);

#endif
