/*
 * herald.h - owners are told what becomes of their work, by hooks: a web server of theirs, or mail.
 *
 * What is told comes out of the journal, in its order. Each hook has a place in it up to which it
 * was told, kept in a file: after a crash it is told from there, so everything at least once. Each
 * has a queue of its own, so that one which does not answer keeps nobody waiting; it is tried
 * again, later each time, and what is too old or too much by then is dropped, and counted.
 *
 * The controller does not talk to strangers: berth-courier does, once for each delivery, run by
 * berth-egress, which lets it connect only where it may. The loop waits for none of them.
 */
#ifndef CONTROLLER_HERALD_H
#define CONTROLLER_HERALD_H

#include "controller/config.h"
#include "controller/keys.h"
#include "engine/engine.h"
#include "net/loop.h"

struct herald;

/* All borrowed. */
struct herald_options {
    struct loop *loop;
    struct engine *engine;
    const struct keys *keys;
    const struct config *config;
    const char *store_path;
    const char *cursor_path;       /* of the file with the hooks' places */
    void (*on_decided)(void *arg); /* the engine has something to do */
    void *arg;
};

/* Without berth-egress and berth-courier beside us hooks have a fault, and all else works. */
struct herald *herald_new(const struct herald_options *options);
/* Reads up to where the journal is, if some hook has not been told all of it. */
void herald_start(struct herald *herald);
/* A durable event, in order. Before the start, and for NULL, a no-op. */
void herald_publish(struct herald *herald, const struct event *event);
/* Ends deliveries under way, which are made again at the next start. */
void herald_stop(struct herald *herald);
/* Keeps the places. NULL is a no-op. */
void herald_free(struct herald *herald);

#endif
