/*
 * decision.h - what the scheduler decided, read out of the journal: which workload it started,
 * stopped or ended, by which rule, why, and with what numbers. Nothing is kept for it: there is one
 * truth.
 */
#ifndef API_DECISION_H
#define API_DECISION_H

#include "model/record.h"

struct json_writer;
struct query;
struct api_query;

struct decision_filter {
    const char *rule;        /* one of the table's; NULL: any */
    struct wall since;       /* nothing older */
    struct id_list projects; /* of these, in order of compare_ids; none: any */
};

/* A rule as it is named; ERR_INVALID says which there are. */
enum err decision_rule_parse(struct str text, const char **out, struct error *e) MUST_CHECK;
int decision_compare_ids(const void *a, const void *b); /* for qsort */

/* Where a page ends: the last row that it needs no more, and whether there is more behind it. */
struct decision_end {
    uint64_t last;
    bool has_more;
};

/* On a worker: the page's decisions as items of the array begun in `w`, the newest first. */
enum err decisions_run(const struct api_query *query, struct query *connection,
                       struct json_writer *w, struct decision_end *end, struct error *e) MUST_CHECK;

#endif
