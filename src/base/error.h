/* error.h - the one error idiom: a code to act on, a text that tells an operator what to change. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/base.h"

enum err {
    ERR_OK,
    ERR_INVALID,         /* the input is wrong; `field` says where */
    ERR_NOT_FOUND,       /* absent, or foreign: never told apart */
    ERR_CONFLICT,        /* the object's state or version forbids it */
    ERR_LIMIT,           /* a quota, a limit or a size bound */
    ERR_DENIED,          /* authenticated, but not permitted */
    ERR_UNAUTHENTICATED, /* no valid credential */
    ERR_RATE,            /* too many requests */
    ERR_UNAVAILABLE,     /* cannot be served now; try again */
    ERR_IO,              /* a system call failed */
    ERR_CORRUPT,         /* stored bytes are not what was written */
    ERR_COUNT
};

struct error {
    enum err code;
    unsigned cause; /* enum cause of model/cause.h where one applies, else 0 */
    int number;     /* errno of the system call that failed, else 0 */
    char field[64]; /* path of the offending field, "" when none */
    char text[320]; /* what is wrong and what to change, without a full stop */
};

/* Fills `e` (NULL is fine) and returns `code`, so that failing is one line. Clears field
 * and cause. */
enum err err_set(struct error *e, enum err code, const char *fmt, ...) PRINTF(3, 4);

/* The same, naming the field at fault. */
enum err err_field(struct error *e, const char *field, const char *fmt, ...) PRINTF(3, 4);

/* The same, with a cause out of the closed list (model/cause.h). */
enum err err_cause(struct error *e, enum err code, unsigned cause, const char *fmt, ...)
    PRINTF(4, 5);

/* Puts context in front of the text already there and returns `code` unchanged. */
enum err err_wrap(struct error *e, enum err code, const char *fmt, ...) PRINTF(3, 4);

/* For a failed system call: ERR_IO, text followed by the meaning of errno. */
enum err err_errno(struct error *e, const char *fmt, ...) PRINTF(2, 3);

/* True: what was missing (room, descriptors, memory, processes) may be there again in a while. */
bool err_is_shortage(const struct error *e);

/* Static name of a code, for logs: "invalid", "not_found", ... */
const char *err_name(enum err code); /* for tests */

#endif
