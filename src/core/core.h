/*
 * core.h - decide: the only place that knows scheduling, money and access together.
 *
 * decide(state, command) gives the events that follow, or a refusal; it changes nothing. Equal
 * arguments give equal events. The caller numbers the events, evolves the state by them and makes
 * them durable before anybody hears of it.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "model/command.h"
#include "model/state.h"
#include "sched/sched.h"

/*
 * On success appends to `events` (in the arena); none at all means the command was already true.
 * Refusals leave `events` as it was; `e` has code, cause, field and a text that says what to
 * change. Of a foreign object nothing is said: it is exactly as absent (ERR_NOT_FOUND).
 */
enum err decide(const struct state *state, const struct sched *sched, const struct command *command,
                struct arena *arena, struct event_list *events, struct error *e) MUST_CHECK;

/* The events that carry out a plan of the scheduler (all entries are still valid: same state). */
void decide_plan(const struct state *state, const struct plan *plan, struct mono now,
                 struct wall wall, struct arena *arena, struct event_list *events);

/* When so many devices of a class could be reserved for so long: the earliest from `from` on. */
struct slot_query {
    int64_t class_number;
    int64_t gpu_milli;
    int64_t duration_s;
    struct wall from;
};
struct slot {
    struct window window;
    int64_t free_milli; /* could be reserved in it, at least `gpu_milli` */
};
enum { SLOTS_MAX = 32 };
/* At most `max` of them that do not overlap; returns how many. `most_milli` gets what could be
 * reserved if nothing else were. */
size_t core_slots(const struct state *state, const struct sched *sched,
                  const struct slot_query *query, struct slot *out, size_t max,
                  int64_t *most_milli);

/* The earliest moment at which CMD_TICK has something to do; INT64_MAX: never. Deadlines depend on
 * when nodes were last back in contact, so the scheduler's index keeps them; asking costs
 * nothing. */
struct mono core_next_deadline(const struct sched *sched);

/* Should the node of an allocation run it, or end it? What desired sets say. A lost one goes on
 * only while its workload waits for its node. */
bool core_wants_running(const struct allocation *allocation);

/*
 * A certificate of the node that our authority signed. Newer than the present one: renewed and
 * shown for the first time now, or given out after the backup that was restored; from then on
 * it is the present one (CMD_NODE_RENEW). Old: the node has shown a newer one, or another
 * machine has joined in its place.
 */
enum node_certificate { NODE_CERTIFICATE_PRESENT, NODE_CERTIFICATE_NEWER, NODE_CERTIFICATE_OLD };
enum node_certificate node_certificate(const struct node_record *node,
                                       const struct digest *fingerprint, struct wall issued);

#endif
