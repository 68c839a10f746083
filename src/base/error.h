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

/* What has failed is never ERR_OK. Said where it is called, so that compilers and analyzers, which
 * see one file at a time, do not follow "it failed, and all was well" to a crash. */
static inline enum err err_known(enum err code)
{
    if (code == ERR_OK)
        __builtin_unreachable(); /* the functions below assert it */
    return code;
}

/* Fills `e` (NULL is fine) and returns `code`, so that failing is one line. Clears field
 * and cause. The code is never ERR_OK, here and below. */
#define err_set(...) err_known(error_set(__VA_ARGS__))
enum err error_set(struct error *e, enum err code, const char *fmt, ...) PRINTF(3, 4);

/* The same, naming the field at fault. */
#define err_field(...) err_known(error_field(__VA_ARGS__))
enum err error_field(struct error *e, const char *field, const char *fmt, ...) PRINTF(3, 4);

/* The same, with a cause out of the closed list (model/cause.h). */
#define err_cause(...) err_known(error_cause(__VA_ARGS__))
enum err error_cause(struct error *e, enum err code, unsigned cause, const char *fmt, ...)
    PRINTF(4, 5);

/* Puts context in front of the text already there and returns `code` unchanged. */
#define err_wrap(...) err_known(error_wrap(__VA_ARGS__))
enum err error_wrap(struct error *e, enum err code, const char *fmt, ...) PRINTF(3, 4);

/* For a failed system call: ERR_IO, text followed by the meaning of errno. */
#define err_errno(...) err_known(error_errno(__VA_ARGS__))
enum err error_errno(struct error *e, const char *fmt, ...) PRINTF(2, 3);

/* True: what was missing (room, descriptors, memory, processes) may be there again in a while. */
bool err_is_shortage(const struct error *e);

/* Static name of a code, for logs: "invalid", "not_found", ... */
const char *err_name(enum err code); /* for tests */

#endif
