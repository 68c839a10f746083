/*
 * history.h - a made-up life of a cluster: batches of events as the engine would append them,
 * random but legal, and everything that was made so far to compare with.
 */
#ifndef TESTS_UNIT_STORE_HISTORY_H
#define TESTS_UNIT_STORE_HISTORY_H

#include "store/store.h"

enum { HISTORY_TENANTS = 4, HISTORY_PROJECTS = 12, HISTORY_CLASSES = 3 };

struct history_project {
    struct id id, tenant;
    struct str path;
};

struct history_workload {
    struct id id, project, tenant, allocation;
    enum workload_state state;
    int64_t attempt;
};

struct history {
    uint64_t random;
    struct arena arena; /* of everything below */
    struct history_project projects[HISTORY_PROJECTS];
    size_t project_count;
    VEC(struct history_workload) live;
    VEC(struct id) ended;             /* workloads */
    VEC(struct store_event) events;   /* all of them; [i] has sequence i + 1 */
    VEC(struct store_answer) answers; /* all of them */
    struct store_clock clock;         /* of the last batch */
    uint64_t sequence;
    struct mono at;
    struct wall wall;
    bool has_old_numbers;                 /* events without numbers of their feed */
    size_t body_max;                      /* 0: 300 */
    size_t projects_before, ended_before; /* the newest batch */
};

void history_init(struct history *history, uint64_t seed);
void history_done(struct history *history);
DEFINE_CLEANUP_AT(history, struct history, history_done)

/* The next batch; borrowed until the history is done. */
struct store_batch history_batch(struct history *history, size_t events, size_t answers);
/* Takes the newest batch back: it was not stored. Later ids differ from those taken back. */
void history_take_back(struct history *history, const struct store_batch *batch);

/* A store_decode_fn; `arg` is the history. */
enum err history_decode(void *arg, const struct store_row *row, struct arena *arena,
                        struct event *out, struct error *e);

#endif
