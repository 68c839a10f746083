/* table.h - CSV with a header line; columns are found by their names. */
#ifndef SIM_TABLE_H
#define SIM_TABLE_H

#include "base/str.h"

enum { COLUMNS_MAX = 32 };

struct table {
    struct str names[COLUMNS_MAX];
    size_t column_count;
    struct str rest; /* lines not read yet */
    size_t line;     /* of the one read last, from 1 */
    struct str fields[COLUMNS_MAX];
};

void table_open(struct table *table, struct str text);
/* The next line; false at the end, or with ERR_INVALID when it does not match the header. */
bool table_next(struct table *table, enum err *rc, struct error *e);
bool table_text(const struct table *table, const char *name, struct str *out);
/* An integer that is not negative. ERR_INVALID. */
enum err table_number(const struct table *table, const char *name, int64_t *out, struct error *e)
    MUST_CHECK;

#endif
