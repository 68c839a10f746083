/* dump.h - everything a store shows, as text: two stores are the same when their dumps are. */
#ifndef TESTS_UNIT_STORE_DUMP_H
#define TESTS_UNIT_STORE_DUMP_H

#include "store/query.h"
#include "unit/store/history.h"

/* Journal, answers, clock; then every query with every filter the history gives a reason for. */
MUST_CHECK enum err dump_store(struct store *store, const struct history *history, struct buf *out,
                               struct error *e);
MUST_CHECK enum err dump_queries(struct query *query, const struct history *history,
                                 struct buf *out, struct error *e);

/* The projection tables of an SQLite file, row by row, read without our layers. */
MUST_CHECK enum err dump_tables(const char *path, struct buf *out, struct error *e);

void dump_row(struct buf *out, const struct store_row *row);

#endif
