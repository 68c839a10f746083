/* base.h - attributes and ownership helpers that every file leans on. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(bugprone-macro-parentheses): types, names and attributes cannot stand in any */
#define MUST_CHECK      __attribute__((warn_unused_result))
#define PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#define COUNT_OF(a)     (sizeof(a) / sizeof((a)[0]))

/* AUTO(buf) struct buf b = { 0 }; releases it on every way out of the scope. */
#define AUTO(name) __attribute__((cleanup(name##_cleanup)))
#define DEFINE_CLEANUP(name, type, release)                                                        \
    static inline void name##_cleanup(type *slot)                                                  \
    {                                                                                              \
        release(*slot);                                                                            \
    }
/* The same for embedded objects, which are released by address. */
#define DEFINE_CLEANUP_AT(name, type, release)                                                     \
    static inline void name##_cleanup(type *slot)                                                  \
    {                                                                                              \
        release(slot);                                                                             \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

/* Moves a pointer out of its variable, so that AUTO no longer frees it. */
#define TAKE(ptr)                                                                                  \
    __extension__({                                                                                \
        __typeof__(ptr) taken_ = (ptr);                                                            \
        (ptr) = NULL;                                                                              \
        taken_;                                                                                    \
    })

/* For hash functions, whose arithmetic wraps on purpose (clang's integer sanitizer reports it). */
#ifdef __clang__
#define WRAPS __attribute__((no_sanitize("integer")))
#else
#define WRAPS
#endif

#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

#endif
