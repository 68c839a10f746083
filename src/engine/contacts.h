/*
 * contacts.h - when each node was last heard of. Kept out of the journal: only changes between in
 * contact, unknown and lost are events. Nothing is declared lost before every node had lost_after_s
 * to report after a start of the controller.
 */
#ifndef ENGINE_CONTACTS_H
#define ENGINE_CONTACTS_H

#include "model/state.h"

struct contacts;

struct contacts *contacts_new(void);
void contacts_free(struct contacts *contacts); /* NULL is a no-op */

/* All nodes of the state count as heard of now. */
void contacts_start(struct contacts *contacts, const struct state *state, struct mono now);
void contacts_seen(struct contacts *contacts, struct id node, struct mono now);

/* Calls `changed` for every node whose contact by now differs from its recorded one for
 * the worse. */
void contacts_turn(struct contacts *contacts, const struct state *state, struct mono now,
                   void (*changed)(void *arg, struct id node, enum node_contact contact),
                   void *arg);

/* When to turn next. */
struct mono contacts_wake_at(const struct contacts *contacts);

#endif
