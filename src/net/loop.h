/*
 * loop.h - one thread that waits for descriptors, timers and messages, and a few workers
 * for what blocks.
 *
 * Everything of net/ runs on the loop's thread. Only loop_post, loop_stop and the blocking half of
 * loop_work may run on another; locks live in loop.c and nowhere else.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/error.h"
#include "base/timepoint.h"

struct loop;

MUST_CHECK enum err loop_new(struct loop **out, struct error *e);
/* Ends the workers first, as loop_drain does. What was watched stays open. NULL is a no-op. */
void loop_free(struct loop *loop);
DEFINE_CLEANUP(loop, struct loop *, loop_free)

/* Serves until loop_stop. */
MUST_CHECK enum err loop_run(struct loop *loop, struct error *e);
/* One round: waits at most `wait_ms` (-1: for ever) and serves what is ready. For tests
 * and tools. */
MUST_CHECK enum err loop_turn(struct loop *loop, int wait_ms, struct error *e);
/* From any thread. loop_run returns after the round in progress. */
void loop_stop(struct loop *loop);

/* The monotonic time: of the round's start for all that is served in it, which is cheap;
 * else of now. */
struct mono loop_now(const struct loop *loop);

/* A watched descriptor, embedded in its owner. Levels, not edges: what is left is
 * reported again. */
struct loop_watch {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT; EPOLLERR and EPOLLHUP always come */
    void (*on_ready)(struct loop_watch *watch, uint32_t events);
    void *arg; /* borrowed */
};

/* `watch` stays where it is until loop_watch_remove. */
MUST_CHECK enum err loop_watch_add(struct loop *loop, struct loop_watch *watch, struct error *e);
void loop_watch_change(struct loop *loop, struct loop_watch *watch, uint32_t events);
/* Before the descriptor is closed. on_ready is not called again, not even in this round. */
void loop_watch_remove(struct loop *loop, struct loop_watch *watch);

/* A timer, embedded in its owner; all-zero with fn and arg set is a stopped one. */
struct loop_timer {
    struct mono at;
    size_t slot; /* place in the heap + 1; 0: stopped */
    void (*fn)(void *arg);
    void *arg; /* borrowed */
};

/* Starts it or moves it; fires once, never before `at`. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, struct mono at);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer);

/* Something to do at the end of this round, embedded in its owner; queued at most once. */
struct loop_task {
    struct loop_task *next;
    struct loop_task *prev; /* NULL: not queued */
    void (*fn)(void *arg);
    void *arg; /* borrowed */
};

void loop_task_queue(struct loop *loop, struct loop_task *task);
void loop_task_cancel(struct loop *loop, struct loop_task *task);

/* From any thread: calls fn(arg) on the loop's thread, in order of posting. */
void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg);

/*
 * Calls fn(arg) on a worker, where it may block, then done(arg) on the loop's thread. Works queue
 * up behind LOOP_WORKERS threads, which start with the first use. From the loop's thread only.
 */
enum { LOOP_WORKERS = 4 };
void loop_work(struct loop *loop, void (*fn)(void *arg), void (*done)(void *arg), void *arg);
/* Waits for all works and calls their `done`: before what they point to is freed. */
void loop_drain(struct loop *loop);
size_t loop_work_count(const struct loop *loop); /* queued or running; for tests */

#endif
