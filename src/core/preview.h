/*
 * preview.h - what a change would do to the work there is, before anybody makes it: guarantees and
 * limits of each level it touches, and the work that would be borrowed, guaranteed or unprotected.
 */
#ifndef CORE_PREVIEW_H
#define CORE_PREVIEW_H

#include "core/core.h"

enum { PREVIEW_WORK_MAX = 200 };

/* One level of the quota tree, of one class. */
struct preview_level {
    const struct project *project;
    int64_t class_number;
    int64_t quota_milli, new_quota_milli; /* its own, or the sum of its children's */
    int64_t limit_milli, new_limit_milli; /* UNBOUNDED: none */
    int64_t allocated_milli, pending_milli;
    int64_t borrowed_milli, new_borrowed_milli;
};

enum preview_effect {
    EFFECT_BORROWED,    /* it becomes borrowed: it may be stopped for others, unless never */
    EFFECT_GUARANTEED,  /* it is borrowed no more */
    EFFECT_UNPROTECTED, /* it has run long enough to be stopped */
    EFFECT_PROTECTED,   /* it is left in peace for longer */
    EFFECT_COUNT
};
extern const struct enum_names preview_effect_names;

struct preview_work {
    const struct workload *workload;
    int64_t class_number;
    int64_t charge_milli;
    enum preview_effect effect;
};

struct preview {
    struct change_record change; /* with what its fields are now in `former` */
    bool is_overcommitted;       /* it would be accepted by force only */
    struct preview_level *levels;
    size_t level_count;
    struct preview_work *work; /* the first PREVIEW_WORK_MAX */
    size_t work_count;         /* all */
};

/* Of CMD_CHANGE_CREATE; refused as that would be. Lists live in the arena. */
enum err core_preview(const struct state *state, const struct sched *sched,
                      const struct command *command, struct arena *arena, struct preview *out,
                      struct error *e) MUST_CHECK;

#endif
