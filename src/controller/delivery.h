/*
 * delivery.h - berth-courier behind berth-egress, once: one request, one answer, without waiting.
 */
#ifndef CONTROLLER_DELIVERY_H
#define CONTROLLER_DELIVERY_H

#include "net/loop.h"
#include "net/reach.h"

struct delivery;

struct delivery_order {
    struct loop *loop;
    enum reach reach; /* of the host */
    struct str host;  /* may have a port */
    struct str task;  /* as berth-courier reads it */
    /* "": it was taken there. The delivery is over, and gone after this. */
    void (*done)(void *arg, const char *fault);
    void *arg;
};

enum { DELIVERY_FAULT_MAX = 160 };

/* Nothing of `order` is needed afterwards. ERR_NOT_FOUND: the programs are not there. */
MUST_CHECK enum err delivery_start(const struct delivery_order *order, struct delivery **out,
                                   struct error *e);
/* Without a word to anybody. NULL is a no-op. */
void delivery_abort(struct delivery *delivery);

#endif
