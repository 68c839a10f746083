/*
 * window.h - reservations within the scheduler. Only src/sched/internal.h includes this.
 *
 * Which devices a window takes is made anew in every step, from the facts alone: window_refresh().
 * Within a step, picked devices are booked as if somebody had them, so that placing and reclaiming
 * need not know of windows; around the placing of one workload, window_let_in() opens to it what it
 * may have, and shuts what it may not.
 */
#ifndef SCHED_WINDOW_H
#define SCHED_WINDOW_H

#include "sched/internal.h"

/* window.c: reservations and the work that is tied to them */
void window_add(struct sched *sched, struct reservation *reservation);
void window_note(struct sched *sched, struct id id); /* made or changed */
void window_remove(struct sched *sched, struct id id);
void window_tie(struct sched *sched, struct swork *work); /* new work, as its record says */
void window_drop(struct swork *work);                     /* it has ended */
void window_untie(struct sched *sched, struct swork *work);
void window_enqueue(struct sched *sched, struct swork *work);
void window_dequeue(struct sched *sched, struct swork *work);
/* An allocation of tied work begins or ends to count. */
void window_count(struct sched *sched, const struct sallocation *a, bool is_added);

struct wall window_wall(const struct sched *sched, struct mono now);
/* Open: work tied to it may run. */
bool window_is_open(const struct sreservation *window, struct wall wall);
/* Open, or about to be: its devices are closed to others. */
bool window_is_near(const struct sched *sched, const struct sreservation *window, struct wall wall);

size_t window_due(const struct sched *sched, struct mono now, struct due *out, size_t max);
struct mono window_next_due(const struct sched *sched);
void window_explain(const struct sched *sched, const struct swork *work, struct arena *arena,
                    struct explanation *out);
/* Does work that is not tied wait for another's window? Then says so. */
bool window_explains(const struct sched *sched, const struct swork *work, int64_t class_number,
                     struct arena *arena, struct explanation *out);

/* window_pick.c: which devices the windows take. */
void window_refresh(struct sched *sched, struct mono now, struct arena *arena);

/* window_step.c */
/* Shuts the picked devices, evicts what is in the way of near windows, and starts tied work. Within
 * a step; of `step` only what all attempts have is set. */
void window_serve(const struct attempt *step);
void window_let_in(const struct attempt *attempt);
void window_let_out(const struct attempt *attempt);
/* It would fit now if no window took anything. */
bool window_blocks(struct sched *sched, const struct swork *work);
/* It is being stopped for a reservation. */
bool window_is_for(const struct sallocation *a);

#endif
