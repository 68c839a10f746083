/*
 * desired.h - what each node is to hold: the signed set of grants and the payloads beside it.
 *
 * A payload (argv, environment, ...) is made once per allocation and kept while a node may
 * still ask for it. Sets are made by the engine at the end of a batch, out of exactly the state
 * that batch makes durable.
 */
#ifndef CONTROLLER_DESIRED_H
#define CONTROLLER_DESIRED_H

#include "controller/images.h"
#include "controller/keys.h"
#include "model/state.h"

struct desired;

/* Borrows both. */
struct desired *desired_new(struct keys *keys, struct images *images);
void desired_free(struct desired *desired); /* NULL is a no-op */
DEFINE_CLEANUP(desired, struct desired *, desired_free)

/* Appends the signed set of a node. Work whose description cannot be read (it was accepted, so that
 * is a fault of ours) is asked to stop, and `e` says which; the set is complete all the same. */
enum err desired_build(struct desired *desired, const struct state *state, const struct node *node,
                       struct buf *out, struct error *e) MUST_CHECK;

/* Payloads of the node's allocations that are not known to run yet, the oldest first, up to
 * `bytes_max`: `*is_cut` tells that there are more. Slices are borrowed until the next build. */
struct str_list desired_payloads(struct desired *desired, const struct node *node, size_t bytes_max,
                                 bool *is_cut, struct arena *arena);
/* One by its digest, of this node's allocations only. Empty: not known. */
struct str desired_payload(struct desired *desired, const struct node *node,
                           const struct grant_digest *digest);

/* Forgets payloads of allocations that are gone. */
void desired_forget(struct desired *desired, const struct state *state);

#endif
