/*
 * policy.h - the fields that changes set, one by one: what they are called, where a patch has them,
 * and what they are now. One table, so that nobody forgets one.
 */
#ifndef MODEL_POLICY_H
#define MODEL_POLICY_H

#include "model/state.h"

enum policy_kind { POLICY_QUOTA, POLICY_PROJECT, POLICY_SETTING };

struct policy_field {
    const char *name; /* "limit_milli" */
    enum policy_kind kind;
    size_t offset;                  /* in struct quota, policy_patch or settings_patch */
    size_t record_offset;           /* in struct quota, project_record or settings_record */
    size_t record_size;             /* there it may be an enum or a bool */
    const struct enum_names *names; /* NULL: a number */
};

/* One field of a patch, with its value there. */
struct policy_cell {
    const struct policy_field *field;
    int64_t class_number; /* POLICY_QUOTA */
    int64_t *value;       /* the patch's */
};

/* Goes over what a patch says, from `*at` 0 on; false: that was all. */
bool policy_next(struct policy_patch *patch, size_t *at, struct policy_cell *out);
/* The same field of another patch; NULL: it has no room for it. */
int64_t *policy_find(struct policy_patch *patch, const struct policy_cell *cell);
/* Does it say anything of that field? */
bool policy_has(const struct policy_patch *patch, const struct policy_cell *cell);

/* What the field is at present, of the project or of the settings. */
int64_t policy_present(const struct state *state, const struct project *project,
                       const struct policy_cell *cell);
/* Sets a field of POLICY_SETTING. */
void policy_set(struct settings_record *settings, const struct policy_cell *cell);

/* A patch that says nothing. */
struct policy_patch policy_nothing(void);
/* The same fields as of `like`, without their values; its rows live in the arena. */
struct policy_patch policy_blank(const struct policy_patch *like, struct arena *arena);
/* A copy whose rows live in the arena. */
struct policy_patch policy_copy(const struct policy_patch *patch, struct arena *arena);

#endif
