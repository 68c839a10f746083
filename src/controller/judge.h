/*
 * judge.h - a thread that sees when the loop has stopped turning, and says so in its place.
 *
 * What the loop says of itself (pulse.h) nobody hears once it is stuck in one call. So a thread of
 * its own counts ticks in which the loop gave no sign. After a while it answers at the local socket
 * with 503 and the reason, and whoever begins TLS with the alert internal_error, where both would
 * only have waited; later it ends the process, which whoever watches over it starts again: nodes
 * and their work do not need the controller for that long. Ticks are counted and not seconds, so
 * that a machine that slept is no reason.
 */
#ifndef CONTROLLER_JUDGE_H
#define CONTROLLER_JUDGE_H

#include "base/error.h"

struct judge;

struct judge_options {
    int listener; /* borrowed: a stream socket that listens and does not block; -1: none */
    int secure;   /* likewise, for those who speak TLS */
    unsigned tick_ms;
    unsigned late_ticks;    /* without a sign: it is stuck */
    unsigned end_ticks;     /* then it will not come back */
    void (*end)(void *arg); /* on the judge's thread, once */
    void *arg;
};

enum err judge_start(const struct judge_options *options, struct judge **out, struct error *e)
    MUST_CHECK;
/* From the loop's thread: it turns. */
void judge_sign(struct judge *judge);
/* Before the listener is closed. NULL is a no-op. */
void judge_stop(struct judge *judge);
DEFINE_CLEANUP(judge, struct judge *, judge_stop)

#endif
