/*
 * world.h - a state and the events that made it: builders for tests that tell a story, and a source
 * of random histories that are valid by construction.
 */
#ifndef TESTS_UNIT_MODEL_WORLD_H
#define TESTS_UNIT_MODEL_WORLD_H

#include "model/state.h"

struct world {
    struct state *state;
    struct arena arena; /* of what the events borrow, so that they can be replayed */
    VEC(struct event) history;
    uint64_t random;
    uint64_t next_id;
    struct str spec; /* of the workload before: often that of the next as well */
};

void world_init(struct world *world, uint64_t seed);
void world_done(struct world *world);
DEFINE_CLEANUP_AT(world, struct world, world_done)

/* Numbers the event, moves time on, applies and remembers it. */
void world_apply(struct world *world, struct event event);
struct id world_id(struct world *world);
/* Random text of at most `most` bytes, possibly none. */
struct str world_text(struct world *world, size_t most);
struct str world_copy(struct world *world, const char *text);

/* One object each, with plausible fields. Names are copied. */
struct id world_class(struct world *world, const char *name);
struct id world_pool(struct world *world, const char *name, int64_t class_number);
struct id world_project(struct world *world, struct id parent, const char *name);
struct id world_node(struct world *world, const char *name, struct id pool);
struct id world_submit(struct world *world, struct id project);
struct id world_submit_element(struct world *world, struct id project, struct id array,
                               int64_t index);
struct id world_grant(struct world *world, struct id workload, struct id node, int64_t rank);
struct id world_grant_of(struct world *world, struct id workload, struct id node, int64_t rank,
                         int64_t class_number, int64_t charge_milli);
void world_remove(struct world *world, enum event_type type, struct id id);
/* A step of the transition table; counters stay, a use that ends there is billed. */
void world_workload(struct world *world, struct id workload, enum workload_state state);
void world_allocation(struct world *world, struct id allocation, enum allocation_state state);

/* One random event that is valid now; may find nothing to do. */
void world_step(struct world *world);
/* Ends and removes everything that can be removed, by events. Classes stay. */
void world_clear(struct world *world);

/* A new state made of the whole history. */
struct state *world_replay(const struct world *world);

#endif
