/*
 * watch.h - a driver that is asked on a thread of its own. A vendor's library may keep a call for
 * as long as it likes (a device whose firmware hangs, a driver that is being unloaded); whoever
 * looks after work cannot wait for it. One question at a time; the answer is there or it is not.
 */
#ifndef AGENT_GPU_WATCH_H
#define AGENT_GPU_WATCH_H

#include "agent/gpu/gpu.h"
#include "base/timepoint.h"

enum { GPU_ANSWER_EVENTS = 64 };

/* What gpu_poll found; more than fit come with the next answer. */
struct gpu_answer {
    size_t count;
    struct gpu_event events[GPU_ANSWER_EVENTS];
};

struct gpu_watch; /* opaque: fields live in watch.c. Used from one thread. */

/* Takes `gpu` over, also when it fails: from here on only the thread speaks to the driver. */
MUST_CHECK enum err gpu_watch_new(struct gpu_watch **out, struct gpu *gpu, struct error *e);
/*
 * NULL is a no-op. The thread gets `patience_ms` to come back from the driver; after that it keeps
 * itself and the driver, because nothing can take them from it.
 */
void gpu_watch_free(struct gpu_watch *watch, int patience_ms);

/* None of these waits. */
void gpu_watch_ask(struct gpu_watch *watch, struct mono now); /* no-op: an answer is still due */
bool gpu_watch_take(struct gpu_watch *watch, struct gpu_answer *out); /* false: nothing yet */
/* For how long an answer has been due; 0: none is. */
int64_t gpu_watch_due_ms(const struct gpu_watch *watch, struct mono now);

#endif
