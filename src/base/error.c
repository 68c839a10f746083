#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void PRINTF(3, 0) error_format(struct error *e, enum err code, const char *fmt, va_list args)
{
    assert(code != ERR_OK);
    if (e == NULL)
        return;
    e->code = code;
    e->cause = 0;
    e->number = 0;
    e->field[0] = '\0';
    (void)vsnprintf(e->text, sizeof(e->text), fmt, args);
}

enum err error_set(struct error *e, enum err code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_format(e, code, fmt, args);
    va_end(args);
    return code;
}

enum err error_field(struct error *e, const char *field, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_format(e, ERR_INVALID, fmt, args);
    va_end(args);
    if (e != NULL)
        (void)snprintf(e->field, sizeof(e->field), "%s", field);
    return ERR_INVALID;
}

enum err error_cause(struct error *e, enum err code, unsigned cause, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_format(e, code, fmt, args);
    va_end(args);
    if (e != NULL)
        e->cause = cause;
    return code;
}

enum err error_wrap(struct error *e, enum err code, const char *fmt, ...)
{
    assert(code != ERR_OK);
    if (e == NULL)
        return code;

    struct error inner = *e;
    va_list args;
    va_start(args, fmt);
    error_format(e, code, fmt, args);
    va_end(args);
    e->cause = inner.cause;
    e->number = inner.number;
    memcpy(e->field, inner.field, sizeof(e->field));
    size_t used = strlen(e->text);
    (void)snprintf(e->text + used, sizeof(e->text) - used, ": %.*s", (int)(sizeof(e->text) - used),
                   inner.text);
    return code;
}

enum err error_errno(struct error *e, const char *fmt, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, fmt);
    error_format(e, ERR_IO, fmt, args);
    va_end(args);
    if (e != NULL) {
        e->number = saved;
        size_t used = strlen(e->text);
        const char *why = strerrordesc_np(saved);
        (void)snprintf(e->text + used, sizeof(e->text) - used, ": %s",
                       why != NULL ? why : "unknown error");
    }
    return ERR_IO;
}

bool err_is_shortage(const struct error *e)
{
    static const int numbers[] = { ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (e->number == numbers[i])
            return true;
    return false;
}

const char *err_name(enum err code)
{
    static const char *const names[ERR_COUNT] = {
        [ERR_OK] = "ok",
        [ERR_INVALID] = "invalid",
        [ERR_NOT_FOUND] = "not_found",
        [ERR_CONFLICT] = "conflict",
        [ERR_LIMIT] = "limit",
        [ERR_DENIED] = "denied",
        [ERR_UNAUTHENTICATED] = "unauthenticated",
        [ERR_RATE] = "rate_limited",
        [ERR_UNAVAILABLE] = "unavailable",
        [ERR_IO] = "io",
        [ERR_CORRUPT] = "corrupt",
    };
    return code < ERR_COUNT ? names[code] : "unknown";
}
