/*
 * world.h - a controller without I/O: routes, decide, evolve and the scheduler's view, request by
 * request. What a test sends is what a client would; what it gets is status, headers and body.
 */
#ifndef TESTS_UNIT_API_WORLD_H
#define TESTS_UNIT_API_WORLD_H

#include "api/api.h"
#include "wire/json_read.h"

struct world {
    struct state *state;
    struct sched *sched;
    struct arena events;  /* of everything decided: records borrow nothing from it */
    struct arena request; /* of the request under way */
    struct actor actor;   /* who asks next */
    uint64_t ids;
    int64_t seconds; /* of both clocks */
    struct store *store;
    struct query *query;
    /* Of the last request: */
    struct api_answer answer;
    struct api_result result;
    struct error error;
    json_t *json; /* owned; NULL: no JSON came back */
};

void world_init(struct world *world); /* tenants amber and birch, a class, a pool, a node of 4 */
void world_done(struct world *world);
DEFINE_CLEANUP_AT(world, struct world, world_done)

struct actor actor_admin(void);
/* "alice" of the tenant of that path. */
struct actor actor_member(const struct world *world, const char *tenant);

/*
 * Sends a request; `target` is a path with its query. Returns the status. Queries go to the store,
 * bodies for the blob store count as stored.
 */
unsigned world_send(struct world *world, enum http_method method, const char *target,
                    const char *body);
unsigned world_get(struct world *world, const char *target);
unsigned world_post(struct world *world, const char *target, const char *body);

/* Something that no request brings about, at this moment, to the first tenant. */
void world_happen(struct world *world, struct event event);
/* The scheduler decides what is left to decide. */
void world_schedule(struct world *world);

/* Of the last answer's JSON: "items.0.name" as text; "" when it is not there. Borrowed. */
const char *world_text(const struct world *world, const char *path);
int64_t world_number(const struct world *world, const char *path); /* -1: not there */

#endif
