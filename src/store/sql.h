/*
 * sql.h - a thin layer over SQLite: one connection with its prepared statements, arguments bound
 * and columns read in order, and result codes told apart as the callers of a store need them.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include <sqlite3.h>

#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "model/record.h"

enum { SQL_PAGE_BYTES = 4096, SQL_BUSY_MS = 10000 };

enum sql_mode { SQL_CREATE, SQL_WRITE, SQL_READ_ONLY };

/* All-zero is a closed connection. */
struct sql {
    sqlite3 *db;               /* owned */
    const char *path;          /* owned copy, for messages */
    const char *const *texts;  /* borrowed for ever: the statements by number */
    sqlite3_stmt **statements; /* owned; prepared when first used */
    uint8_t (**ids)[16];       /* owned; bytes bound to each argument of each statement */
    size_t count;
};

MUST_CHECK enum err sql_open(struct sql *sql, const char *path, enum sql_mode mode,
                             struct error *e);
/* Statement numbers of sql_get() are indexes into `texts`. */
void sql_use(struct sql *sql, const char *const *texts, size_t count);
/* Gives the statements up again; calls of them must have ended. */
void sql_use_end(struct sql *sql);
void sql_close(struct sql *sql);
DEFINE_CLEANUP_AT(sql, struct sql, sql_close)

/*
 * Translates the connection's last failure. ERR_UNAVAILABLE: disk full, or locked by
 * another process. ERR_CORRUPT: the file is not what was written. ERR_CONFLICT: a
 * constraint. ERR_IO: all else.
 */
enum err sql_fail(const struct sql *sql, struct error *e, const char *doing);

MUST_CHECK enum err sql_exec(struct sql *sql, const char *text, struct error *e);
/* The first column of the first row; ERR_CORRUPT when there is none. */
MUST_CHECK enum err sql_read_int(struct sql *sql, const char *text, int64_t *out, struct error *e);

MUST_CHECK enum err sql_begin(struct sql *sql, struct error *e); /* takes the write lock */
MUST_CHECK enum err sql_commit(struct sql *sql, struct error *e);
void sql_rollback(struct sql *sql); /* no transaction: a no-op */

/* One use of a statement: arguments bound in order, then rows with their columns read in order. */
struct sql_call {
    struct sql *sql; /* borrowed */
    sqlite3_stmt *statement;
    uint8_t (*ids)[16]; /* borrowed from `sql` */
    int argument;
    int column;
    bool failed;
};

/* Failures are kept and come out of sql_run() or sql_next(). Bound bytes are borrowed
 * until then. */
struct sql_call sql_get(struct sql *sql, size_t number);
void sql_int(struct sql_call *call, int64_t value);
void sql_u64(struct sql_call *call, uint64_t value); /* as its bit pattern */
void sql_text(struct sql_call *call, struct str text);
void sql_name(struct sql_call *call, const char *text); /* a static text */
void sql_blob(struct sql_call *call, const void *bytes, size_t size);
void sql_id(struct sql_call *call, struct id id);                     /* none: NULL */
void sql_digest(struct sql_call *call, const struct digest *digest);  /* for tests */
void sql_exit(struct sql_call *call, const struct exit_status *exit); /* four columns */

/* Runs a statement that gives no rows. */
MUST_CHECK enum err sql_run(struct sql_call *call, struct error *e);
/* Steps to the next row; `*has_row` is false at the end, when the statement is free again. */
MUST_CHECK enum err sql_next(struct sql_call *call, bool *has_row, struct error *e);
void sql_end(struct sql_call *call); /* before the end of the rows; twice is fine */
DEFINE_CLEANUP_AT(sql_call, struct sql_call, sql_end)

/* Columns; what they point to is valid until the next step. */
int64_t sql_get_int(struct sql_call *call);
uint64_t sql_get_u64(struct sql_call *call);
struct str sql_get_text(struct sql_call *call);
struct str sql_get_blob(struct sql_call *call);
struct id sql_get_id(struct sql_call *call);
void sql_get_digest(struct sql_call *call, struct digest *out);
struct exit_status sql_get_exit(struct sql_call *call);
/* A name out of a table of the model; an unknown one is 0. */
unsigned sql_get_enum(struct sql_call *call, const struct enum_names *names);

#endif
