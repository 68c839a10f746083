/*
 * test.h - tables of cases over cmocka, and random tests that can be repeated.
 *
 *     FOR_EACH_CASE (c, fit_cases)
 *         CHECK(c->name, best_fit(c->free, 3, c->wants) == c->node);
 *
 * A CHECK that fails names its row and ends the test it stands in.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* wants the four before it */
/* clang-format on */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/base.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration */
#define FOR_EACH_CASE(c, cases)                                                                    \
    for (__typeof__(&(cases)[0]) c = (cases); c < (cases) + COUNT_OF(cases); c++)
/* NOLINTEND(bugprone-macro-parentheses) */

#define CHECK(name, ok)                                                                            \
    do {                                                                                           \
        if (!(ok))                                                                                 \
            test_fail((name), #ok, __FILE__, __LINE__);                                            \
    } while (0)

/* The same with the text of a struct error, for calls that should have worked. */
#define CHECK_OK(name, call, e)                                                                    \
    do {                                                                                           \
        if ((call) != ERR_OK)                                                                      \
            test_fail((name), (e)->text, __FILE__, __LINE__);                                      \
    } while (0)

static inline void __attribute__((noreturn))
test_fail(const char *name, const char *what, const char *file, int line)
{
    print_error("%s:%d: %s: %s\n", file, line, name, what);
    _fail(file, line); /* jumps, but does not say so to compilers */
    abort();
}

/* What only root may do is skipped by others, and fails where root cannot: CI is root. */
#define SKIP_UNLESS_ROOT(what)                                                                     \
    do {                                                                                           \
        CHECK(what, geteuid() != 0);                                                               \
        print_message("# SKIP root is needed: %s\n", (what));                                      \
        skip();                                                                                    \
    } while (0)

/* A new seed each run, printed; BERTH_TEST_SEED repeats a run. */
static inline uint64_t test_seed(void)
{
    uint64_t seed = 0;
    const char *given = getenv("BERTH_TEST_SEED"); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (given != NULL)
        seed = strtoull(given, NULL, 10);
    else if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        test_fail("seed", "no entropy", __FILE__, __LINE__);
    print_message("# BERTH_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* SplitMix64 of Steele, Lea and Flood: good enough for tests, and the same everywhere. */
WRAPS static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Roughly uniform in 0..bound-1. */
static inline size_t test_below(uint64_t *state, size_t bound)
{
    return (size_t)(test_random(state) % bound);
}

#endif
