#include "model/policy.h"

#include <assert.h>
#include <string.h>

#define SIZE_OF(type, member) sizeof(((struct type *)0)->member)
#define QUOTA(member)                                                                              \
    {                                                                                              \
#member, POLICY_QUOTA, offsetof(struct quota, member), offsetof(struct quota, member),     \
            SIZE_OF(quota, member), NULL                                                           \
    }
#define PROJECT(member)                                                                            \
    {                                                                                              \
#member, POLICY_PROJECT, offsetof(struct policy_patch, member),                            \
            offsetof(struct project_record, member), SIZE_OF(project_record, member), NULL         \
    }
#define SETTING_OF(member, words)                                                                  \
    {                                                                                              \
#member, POLICY_SETTING, offsetof(struct settings_patch, member),                          \
            offsetof(struct settings_record, member), SIZE_OF(settings_record, member), (words)    \
    }
#define SETTING(member) SETTING_OF(member, NULL)

static const struct policy_field of_class[] = {
    QUOTA(quota_milli),
    QUOTA(lend_limit_milli),
    QUOTA(limit_milli),
    QUOTA(over_quota_weight),
};

static const struct policy_field others[] = {
    PROJECT(priority),
    PROJECT(log_quota_mib),
    PROJECT(log_days),
    SETTING(grace_s),
    SETTING(kill_confirm_s),
    SETTING(min_runtime_s),
    SETTING(min_runtime_in_quota_s),
    SETTING(start_timeout_s),
    SETTING(lost_after_s),
    SETTING(unknown_after_s),
    SETTING(device_reserve_mib),
    SETTING(gang_repair_s),
    SETTING(backoff_base_s),
    SETTING(backoff_max_s),
    SETTING(lead_s),
    SETTING(history_k_milli),
    SETTING(history_half_life_s),
    SETTING(consolidate_max_moves),
    SETTING(ended_keep_s),
    SETTING(ended_keep_count),
    SETTING(default_time_limit_s),
    SETTING(starvation_after_s),
    SETTING_OF(reclaim_to, &reclaim_to_names),
    SETTING_OF(placement, &placement_names),
    SETTING_OF(consolidate, &consolidate_names),
    SETTING_OF(user_fairness, &user_fairness_names),
};

/* All of a settings_patch is in the table. */
static_assert(sizeof(struct settings_patch) == (COUNT_OF(others) - 3) * sizeof(int64_t), "a row");

static int64_t *number_at(void *base, size_t offset)
{
    return (int64_t *)(void *)((char *)base + offset);
}

static int64_t *value_of(struct policy_patch *patch, const struct policy_field *field,
                         struct quota *row)
{
    switch (field->kind) {
    case POLICY_QUOTA:
        return number_at(row, field->offset);
    case POLICY_PROJECT:
        return number_at(patch, field->offset);
    case POLICY_SETTING:
        return number_at(&patch->settings, field->offset);
    }
    assert(!"a kind of field that does not exist");
    return NULL;
}

bool policy_next(struct policy_patch *patch, size_t *at, struct policy_cell *out)
{
    size_t rows = patch->quotas.count * COUNT_OF(of_class);
    for (size_t i = *at; i < rows + COUNT_OF(others); i++) {
        bool is_row = i < rows;
        struct quota *row = is_row ? &patch->quotas.items[i / COUNT_OF(of_class)] : NULL;
        const struct policy_field *field =
            is_row ? &of_class[i % COUNT_OF(of_class)] : &others[i - rows];
        int64_t *value = value_of(patch, field, row);
        if (*value == UNSET)
            continue;
        *at = i + 1;
        *out = (struct policy_cell){ field, is_row ? row->class_number : UNSET, value };
        return true;
    }
    return false;
}

int64_t *policy_find(struct policy_patch *patch, const struct policy_cell *cell)
{
    if (cell->field->kind != POLICY_QUOTA)
        return value_of(patch, cell->field, NULL);
    for (size_t i = 0; i < patch->quotas.count; i++) {
        struct quota *row = &patch->quotas.items[i];
        if (row->class_number == cell->class_number)
            return value_of(patch, cell->field, row);
    }
    return NULL;
}

bool policy_has(const struct policy_patch *patch, const struct policy_cell *cell)
{
    struct policy_patch copy = *patch; /* only read: what it points to stays as it is */
    const int64_t *value = policy_find(&copy, cell);
    return value != NULL && *value != UNSET;
}

/* ---- against the state --------------------------------------------------------------------- */

/* A number of any of the widths that records have. */
static int64_t number_read(const void *record, const struct policy_field *field)
{
    const char *at = (const char *)record + field->record_offset;
    int64_t wide = 0;
    uint32_t narrow = 0;
    assert(field->record_size == sizeof(wide) || field->record_size == sizeof(narrow));
    if (field->record_size == sizeof(wide))
        memcpy(&wide, at, sizeof(wide));
    else
        memcpy(&narrow, at, sizeof(narrow));
    return field->record_size == sizeof(wide) ? wide : (int64_t)narrow;
}

int64_t policy_present(const struct state *state, const struct project *project,
                       const struct policy_cell *cell)
{
    struct quota quota;
    switch (cell->field->kind) {
    case POLICY_QUOTA:
        quota = project_quota(project, cell->class_number);
        return number_read(&quota, cell->field);
    case POLICY_PROJECT:
        return number_read(&project->r, cell->field);
    case POLICY_SETTING:
        return number_read(&state->settings, cell->field);
    }
    assert(!"a kind of field that does not exist");
    return UNSET;
}

void policy_set(struct settings_record *settings, const struct policy_cell *cell)
{
    char *at = (char *)settings + cell->field->record_offset;
    uint32_t narrow = (uint32_t)*cell->value;
    assert(cell->field->kind == POLICY_SETTING);
    if (cell->field->record_size == sizeof(*cell->value))
        memcpy(at, cell->value, sizeof(*cell->value));
    else
        memcpy(at, &narrow, sizeof(narrow));
}

/* ---- patches ------------------------------------------------------------------------------- */

struct policy_patch policy_nothing(void)
{
    struct policy_patch patch = { .quotas = { 0 } };
    for (size_t i = 0; i < COUNT_OF(others); i++)
        *value_of(&patch, &others[i], NULL) = UNSET;
    return patch;
}

struct policy_patch policy_blank(const struct policy_patch *like, struct arena *arena)
{
    struct policy_patch patch = policy_nothing();
    patch.quotas.count = like->quotas.count;
    patch.quotas.items = arena_new(arena, like->quotas.count, sizeof(*patch.quotas.items));
    for (size_t i = 0; i < like->quotas.count; i++)
        patch.quotas.items[i] =
            (struct quota){ like->quotas.items[i].class_number, UNSET, UNSET, UNSET, UNSET };
    return patch;
}

struct policy_patch policy_copy(const struct policy_patch *patch, struct arena *arena)
{
    struct policy_patch copy = *patch;
    copy.quotas.items = arena_new(arena, patch->quotas.count, sizeof(*copy.quotas.items));
    if (patch->quotas.count > 0)
        memcpy(copy.quotas.items, patch->quotas.items,
               patch->quotas.count * sizeof(*copy.quotas.items));
    return copy;
}
