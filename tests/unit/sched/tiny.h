/*
 * tiny.h - random clusters so small that every possibility can be tried: for tests that compare the
 * scheduler with an oracle which does just that. Each cluster follows from one seed; the seed of
 * one that fails is printed, and BERTH_TEST_SEED with it begins with that cluster.
 */
#ifndef TESTS_UNIT_SCHED_TINY_H
#define TESTS_UNIT_SCHED_TINY_H

#include "unit/sched/lab.h"
#include "unit/test.h"

/* With sanitizers a twentieth of what the plain build does. */
#if defined(__SANITIZE_ADDRESS__)
enum { TINY_CLUSTERS = 5000 };
#else
enum { TINY_CLUSTERS = 100000 };
#endif

struct tiny {
    struct lab lab;
    uint64_t seed;
    uint64_t random;
    size_t counts[4]; /* what a test wants to have seen, of all clusters so far */
};

/* `cluster` gets a lab with nothing in it, as many times as promised. */
void tiny_run(size_t clusters, void (*cluster)(struct tiny *tiny), struct tiny *tiny);

#define TINY_CHECK(tiny, what, ok)                                                                 \
    do {                                                                                           \
        if (!(ok))                                                                                 \
            tiny_fail((tiny), (what), __FILE__, __LINE__);                                         \
    } while (0)
void __attribute__((noreturn))
tiny_fail(const struct tiny *tiny, const char *what, const char *file, int line);

size_t tiny_below(struct tiny *tiny, size_t bound);
bool tiny_one_in(struct tiny *tiny, size_t n);
int64_t tiny_pick(struct tiny *tiny, const int64_t *values, size_t count);

/* A project whose fields are as given, over-committed or not. */
void tiny_project(struct tiny *tiny, const char *path, struct quota_spec quota, int64_t priority);
/* 2 to 5 projects in up to three levels, with random fields; returns how many. */
size_t tiny_projects(struct tiny *tiny, int64_t devices, const char *paths[]);
enum { TINY_PROJECTS_MAX = 5 };

/* Up to four nodes, projects, and settings of reclaim; returns how many projects. */
size_t tiny_world(struct tiny *tiny, const char *paths[]);
/* One of them without children. */
const char *tiny_leaf(struct tiny *tiny, const char *const paths[], size_t count);
struct lab_job tiny_job(struct tiny *tiny, const char *project);

#endif
