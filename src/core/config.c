/* config.c - what the operator configures: the start itself, settings, classes, pools, profiles. */
#include <string.h>

#include "core/policy.h"
#include "model/mig.h"

static const struct id no_tenant;

enum err decide_controller_start(struct decision *d, struct error *e)
{
    const struct controller_started *start = &d->command->controller_start;
    if (start->epoch <= d->state->epoch)
        return err_set(e, ERR_CONFLICT, "epoch %llu was already used; claim a higher one",
                       (unsigned long long)start->epoch);
    struct event *event = decide_add(d, EV_CONTROLLER_STARTED, no_tenant);
    event->controller_started = *start;
    /* The key of the first start stays: ids of plans derive from it for ever. */
    static const uint8_t none[sizeof(d->state->id_key)];
    if (memcmp(d->state->id_key, none, sizeof(none)) != 0)
        memcpy(event->controller_started.id_key, d->state->id_key, sizeof(none));
    return ERR_OK;
}

/* ---- settings ------------------------------------------------------------------------------ */

struct setting {
    const char *field;
    size_t offset;
    int64_t min;
    int64_t max;
};

#define SETTING(name, min, max)                                                                    \
    {                                                                                              \
#name, offsetof(struct settings_record, name), min, max                                    \
    }

enum { DAY_S = 24 * 3600, YEAR_S = 366 * DAY_S, PROFILE_PROJECTS_MAX = 64 };

/* clang-format off */
static const struct setting settings[] = {
    SETTING(grace_s, 0, 900),
    SETTING(kill_confirm_s, 1, 3600),
    SETTING(min_runtime_s, 0, DAY_S),
    SETTING(min_runtime_in_quota_s, 0, DAY_S),
    SETTING(start_timeout_s, 1, DAY_S),
    SETTING(lost_after_s, 5, DAY_S),
    SETTING(unknown_after_s, 1, DAY_S),
    SETTING(device_reserve_mib, 0, INT64_C(1) << 20),
    SETTING(backoff_base_s, 0, DAY_S),
    SETTING(backoff_max_s, 0, DAY_S),
    SETTING(lead_s, 0, DAY_S),
    SETTING(gang_repair_s, 0, DAY_S),
    SETTING(history_k_milli, 0, 10000),
    SETTING(history_half_life_s, 60, YEAR_S),
    SETTING(consolidate_max_moves, 1, 16),
    SETTING(ended_keep_s, 0, YEAR_S),
    SETTING(ended_keep_count, 0, 10000000),
    SETTING(default_time_limit_s, 0, YEAR_S),
    SETTING(starvation_after_s, 1, YEAR_S),
};
/* clang-format on */

static int64_t *setting_of(struct settings_record *record, const struct setting *setting)
{
    return (int64_t *)(void *)((char *)record + setting->offset);
}

static enum err settings_check(const struct settings_record *next, struct error *e)
{
    struct settings_record wanted = *next;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        int64_t value = *setting_of(&wanted, &settings[i]);
        const struct range range = { settings[i].field, value, settings[i].min, settings[i].max };
        enum err rc = check_ranges(&range, 1, e);
        if (rc != ERR_OK)
            return rc;
    }
    if (next->unknown_after_s >= next->lost_after_s)
        return err_field(e, "lost_after_s", "lost_after_s must be more than unknown_after_s (%lld)",
                         (long long)next->unknown_after_s);
    return ERR_OK;
}

bool settings_differ(const struct settings_record *a, const struct settings_record *b)
{
    struct settings_record left = *a;
    struct settings_record right = *b;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        if (*setting_of(&left, &settings[i]) != *setting_of(&right, &settings[i]))
            return true;
    }
    return left.reclaim_to != right.reclaim_to || left.placement != right.placement ||
           left.consolidate != right.consolidate || left.user_fairness != right.user_fairness;
}

enum err settings_patch(const struct decision *d, const struct policy_patch *patch,
                        struct settings_record *out, struct error *e)
{
    struct settings_record next = d->state->settings;
    struct policy_patch copy = *patch; /* only read */
    struct policy_cell cell;
    for (size_t at = 0; policy_next(&copy, &at, &cell);) {
        if (cell.field->kind != POLICY_SETTING)
            continue;
        if (cell.field->names != NULL &&
            (*cell.value < 0 || *cell.value >= (int64_t)cell.field->names->count))
            return err_field(e, cell.field->name, "%s: there is no such %s", cell.field->name,
                             cell.field->names->what);
        policy_set(&next, &cell);
    }
    enum err rc = settings_check(&next, e);
    if (rc == ERR_OK)
        *out = next;
    return rc;
}

enum err decide_settings_set(struct decision *d, struct error *e)
{
    struct settings_record given = d->command->settings;
    struct settings_record next = d->state->settings;
    enum err rc = decide_match(d, next.version, e);
    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        int64_t *value = setting_of(&next, &settings[i]);
        *value = given_or(*setting_of(&given, &settings[i]), *value);
    }
    next.reclaim_to = given.reclaim_to;
    next.placement = given.placement;
    next.consolidate = given.consolidate;
    next.user_fairness = given.user_fairness;
    rc = settings_check(&next, e);
    if (rc == ERR_OK && settings_differ(&next, &d->state->settings))
        decide_add(d, EV_SETTINGS_CHANGED, no_tenant)->settings = next;
    return rc;
}

/* ---- classes ------------------------------------------------------------------------------- */

static enum err class_check(const struct class_spec *spec, struct error *e)
{
    enum err rc = check_name(spec->name, "name", e);
    if (rc == ERR_OK)
        rc = check_text(spec->vendor, NAME_MAX_BYTES, "vendor", e);
    if (rc != ERR_OK)
        return rc;
    const struct range ranges[] = {
        { "kind", spec->kind, 0, CLASS_KIND_COUNT - 1 },
        { "memory_mib", spec->memory_mib, 0, INT64_C(1) << 32 },
        { "slicing", spec->slicing, 0, SLICING_COUNT - 1 },
        { "mig", spec->mig, 0, MIG_TABLE_COUNT - 1 },
        { "price_micros_per_hour", spec->price_micros_per_hour, 0, INT64_C(1000000000000) },
    };
    return check_ranges(ranges, COUNT_OF(ranges), e);
}

static struct class_record class_of_spec(const struct decision *d, const struct class_object *old)
{
    const struct class_spec *spec = &d->command->class_set;
    struct class_record next = { .id = d->command->new_id,
                                 .name = spec->name,
                                 .number = (int64_t)d->state->classes.count };
    if (old != NULL)
        next = old->r;
    if (spec->vendor.size > 0)
        next.vendor = spec->vendor;
    next.kind = (enum class_kind)given_or(spec->kind, next.kind);
    next.memory_mib = given_or(spec->memory_mib, next.memory_mib);
    next.slicing = (enum slicing)given_or(spec->slicing, next.slicing);
    next.mig = (enum mig_table_name)given_or(spec->mig, next.mig);
    next.price_micros_per_hour = given_or(spec->price_micros_per_hour, next.price_micros_per_hour);
    return next;
}

static bool class_differs(const struct class_record *a, const struct class_record *b)
{
    return a->kind != b->kind || a->memory_mib != b->memory_mib || a->slicing != b->slicing ||
           a->mig != b->mig || a->price_micros_per_hour != b->price_micros_per_hour ||
           !str_eq(a->vendor, b->vendor);
}

/* The partitions are those of its devices. */
static enum err class_check_mig(const struct class_record *r, struct error *e)
{
    const struct mig_table *table = mig_table_of(r);
    if (r->mig != MIG_TABLE_NONE && table == NULL)
        return err_field(e, "mig", "mig: parts of its devices are no partitions; give slicing mig");
    if (table == NULL)
        return ERR_OK;
    int64_t least = table->profiles[MIG_PROFILES_MAX - 1].memory_mib;
    if (r->memory_mib < least)
        return err_field(e, "memory_mib",
                         "memory_mib: a device with the partitions of %s has %lld at least",
                         enum_name(&mig_table_names, mig_table_name_of(r)), (long long)least);
    return ERR_OK;
}

/* Where a class is still in use, as a word; NULL: nowhere. */
static const char *class_user(const struct state *state, int64_t number)
{
    for (size_t i = 0; i < state->pools.count; i++) {
        if (state->pools.items[i]->r.class_number == number)
            return "a pool is of it";
    }
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        if (node->r.cpu_milli > 0 && node->r.cpu_class_number == number)
            return "a node's cores are of it";
        for (size_t i = 0; i < node->r.devices.count; i++) {
            if (node->r.devices.items[i].class_number == number)
                return "a node has devices of it";
        }
        for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
            if (a->r.class_number == number)
                return "work runs on it";
        }
    }
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        for (size_t i = 0; !workload_state_is_final(w->r.state) && i < w->r.request.class_count;
             i++)
            if (w->r.request.class_numbers[i] == number)
                return "work asks for it";
    }
    for (const struct reservation *r = state->first_reservation; r != NULL; r = r->next) {
        if (r->r.class_number == number && !reservation_state_is_final(r->r.state))
            return "devices of it are reserved";
    }
    return NULL;
}

static bool names_class(const struct quota_list *quotas, int64_t number)
{
    for (size_t i = 0; i < quotas->count; i++) {
        if (quotas->items[i].class_number == number)
            return true;
    }
    return false;
}

static bool is_of_class(const struct quota_list *quotas, int64_t number)
{
    for (size_t i = 0; i < quotas->count; i++) {
        const struct quota *q = &quotas->items[i];
        if (q->class_number == number && (q->quota_milli != 0 || q->limit_milli != UNBOUNDED ||
                                          q->lend_limit_milli != UNBOUNDED))
            return true;
    }
    return false;
}

/* Who says something of the class that nobody could see or take back without it; NULL: nobody.
 * Changes that are for good are no obstacle: what they set is. */
static const char *class_namer(const struct decision *d, int64_t number)
{
    for (const struct project *p = d->state->first_tenant; p != NULL; p = project_next(p)) {
        if (is_of_class(&p->r.quotas, number))
            return arena_format(d->arena, "project %.*s has a quota or a limit of it",
                                STR_ARG(p->r.path));
    }
    for (const struct change *c = d->state->first_change; c != NULL; c = c->next) {
        bool has_time =
            c->r.state == CHG_SCHEDULED || (c->r.state == CHG_ACTIVE && c->r.end_s != 0);
        char text[ID_TEXT_MAX];
        if (has_time && names_class(&c->r.to.quotas, number))
            return arena_format(d->arena, "the change %s is of it",
                                id_text(ID_CHANGE, c->r.id, text));
    }
    for (size_t i = 0; i < d->state->profiles.count; i++) {
        const struct profile_record *r = &d->state->profiles.items[i]->r;
        for (size_t k = 0; k < r->request.class_count; k++) {
            if (r->request.class_numbers[k] == number)
                return arena_format(d->arena, "the profile %.*s names it", STR_ARG(r->name));
        }
    }
    return NULL;
}

/* Somebody has a part of one of its devices. */
static bool has_parts(const struct state *state, int64_t number)
{
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
            for (size_t i = 0; a->r.class_number == number && i < a->r.shares.count; i++)
                if (a->r.shares.items[i].milli < 1000)
                    return true;
    }
    return false;
}

/* What is held was made as parts were then. */
static enum err class_check_parts(const struct decision *d, const struct class_record *was,
                                  const struct class_record *is, struct error *e)
{
    bool is_other = was->slicing != is->slicing || mig_table_of(was) != mig_table_of(is);
    if (!is_other || !has_parts(d->state, was->number))
        return ERR_OK;
    return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                     "slicing cannot change while parts of its devices are in use; drain its nodes"
                     " first");
}

enum err decide_class_set(struct decision *d, struct error *e)
{
    const struct class_spec *spec = &d->command->class_set;
    enum err rc = class_check(spec, e);
    if (rc != ERR_OK)
        return rc;
    struct class_object *old = state_class_by_name(d->state, spec->name);
    if (old != NULL) {
        rc = decide_match(d, old->r.version, e);
        if (rc != ERR_OK)
            return rc;
    } else if (d->state->classes.count >= CLASSES_MAX) {
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT, "there are already %d classes",
                         CLASSES_MAX);
    }
    struct class_record next = class_of_spec(d, old);
    if (old != NULL && old->r.kind != next.kind && class_user(d->state, old->r.number) != NULL)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                         "kind cannot change while the class is used: %s",
                         class_user(d->state, old->r.number));
    rc = class_check_mig(&next, e);
    if (rc == ERR_OK && old != NULL)
        rc = class_check_parts(d, &old->r, &next, e);
    if (rc != ERR_OK)
        return rc;
    if (old == NULL || class_differs(&old->r, &next))
        decide_add(d, EV_CLASS_SET, no_tenant)->class_set = next;
    return ERR_OK;
}

enum err decide_class_remove(struct decision *d, struct error *e)
{
    struct class_object *class = NULL;
    enum err rc = find_class(d, d->command->target.name, "name", &class, e);
    if (rc == ERR_OK)
        rc = decide_match(d, class->r.version, e);
    if (rc != ERR_OK)
        return rc;
    const char *user = class_user(d->state, class->r.number);
    if (user == NULL)
        user = class_namer(d, class->r.number);
    if (user != NULL)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "class %.*s cannot be removed: %s",
                         STR_ARG(class->r.name), user);
    decide_add(d, EV_CLASS_REMOVED, no_tenant)->removed.id = class->r.id;
    return ERR_OK;
}

/* ---- pools --------------------------------------------------------------------------------- */

enum err decide_pool_set(struct decision *d, struct error *e)
{
    const struct pool_spec *spec = &d->command->pool_set;
    enum err rc = check_name(spec->name, "name", e);
    const struct range site = { "site", spec->site, 0, SITE_KIND_COUNT - 1 };
    if (rc == ERR_OK)
        rc = check_ranges(&site, 1, e);
    if (rc == ERR_OK && spec->site != UNSET && spec->site != SITE_NATIVE)
        rc =
            err_field(e, "site", "site: only \"native\", nodes that run berth-agent, is supported");
    if (rc != ERR_OK)
        return rc;
    struct pool_object *old = state_pool_by_name(d->state, spec->name);
    struct pool_record next = { .id = d->command->new_id, .name = spec->name };
    if (old != NULL) {
        next = old->r;
        rc = decide_match(d, old->r.version, e);
    } else if (spec->class_name.size == 0) {
        rc = err_field(e, "class", "class is missing; name the class of the pool's nodes");
    }
    struct class_object *class = NULL;
    if (rc == ERR_OK && spec->class_name.size > 0)
        rc = find_class(d, spec->class_name, "class", &class, e);
    if (rc != ERR_OK)
        return rc;
    next.class_number = class != NULL ? class->r.number : next.class_number;
    next.site = (enum site_kind)given_or(spec->site, next.site);
    if (old != NULL && old->node_count > 0 && next.class_number != old->r.class_number)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                         "pool %.*s has %zu nodes; its class cannot change", STR_ARG(next.name),
                         old->node_count);
    if (old == NULL || next.class_number != old->r.class_number || next.site != old->r.site)
        decide_add(d, EV_POOL_SET, no_tenant)->pool_set = next;
    return ERR_OK;
}

enum err decide_pool_remove(struct decision *d, struct error *e)
{
    struct str name = d->command->target.name;
    struct pool_object *pool = state_pool_by_name(d->state, name);
    if (pool == NULL)
        return not_found(e, "pool", name);
    enum err rc = decide_match(d, pool->r.version, e);
    if (rc != ERR_OK)
        return rc;
    if (pool->node_count > 0)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                         "pool %.*s has %zu nodes; remove them first", STR_ARG(name),
                         pool->node_count);
    for (size_t i = 0; i < d->state->profiles.count; i++) {
        const struct profile_record *profile = &d->state->profiles.items[i]->r;
        for (size_t k = 0; k < profile->pools.count; k++) {
            if (str_eq(profile->pools.items[k], name))
                return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                                 "profile %.*s names pool %.*s; change it first",
                                 STR_ARG(profile->name), STR_ARG(name));
        }
    }
    decide_add(d, EV_POOL_REMOVED, no_tenant)->removed.id = pool->r.id;
    return ERR_OK;
}

/* ---- profiles ------------------------------------------------------------------------------ */

static enum err profile_check_pools(const struct decision *d, const struct str_list *pools,
                                    struct error *e)
{
    if (pools->count > REQUEST_CLASSES_MAX)
        return err_field(e, "pools", "pools: name at most %d", REQUEST_CLASSES_MAX);
    for (size_t i = 0; i < pools->count; i++) {
        if (state_pool_by_name(d->state, pools->items[i]) == NULL)
            return err_field(e, "pools", "pools: there is no pool \"%.*s\"",
                             STR_ARG(pools->items[i]));
    }
    return ERR_OK;
}

/* "*" alone takes the list away. */
static enum err profile_projects(const struct decision *d, const struct str_list *given,
                                 struct str_list *out, struct error *e)
{
    const struct str_list none = { 0 };
    if (given->count == 0)
        return ERR_OK;
    if (given->count == 1 && str_is(given->items[0], "*")) {
        *out = none;
        return ERR_OK;
    }
    if (given->count > PROFILE_PROJECTS_MAX)
        return err_field(e, "projects", "projects: name at most %d", PROFILE_PROJECTS_MAX);
    for (size_t i = 0; i < given->count; i++) {
        if (state_project_by_path(d->state, given->items[i]) == NULL)
            return err_field(e, "projects", "projects: there is no project \"%.*s\"",
                             (int)MIN_OF(given->items[i].size, (size_t)100), given->items[i].data);
    }
    *out = *given;
    return ERR_OK;
}

static enum err profile_topology(const struct topology_spec *spec, struct request *r,
                                 struct error *e)
{
    if (spec->required == TOPOLOGY_NONE && spec->preferred == TOPOLOGY_NONE)
        return ERR_OK;
    if (spec->required != TOPOLOGY_NONE && spec->preferred >= spec->required)
        return err_field(e, "topology.preferred",
                         "topology.preferred: what is preferred is closer than what is required;"
                         " leave it out, or prefer a smaller one");
    r->required = spec->required;
    r->preferred = spec->preferred;
    return ERR_OK;
}

enum err decide_profile_set(struct decision *d, struct error *e)
{
    const struct profile_spec *spec = &d->command->profile_set;
    struct profile_object *old = state_profile_by_name(d->state, spec->name);
    enum err rc = check_name(spec->name, "name", e);
    if (rc == ERR_OK)
        rc = check_text(spec->description, 1024, "description", e);
    if (rc == ERR_OK && old != NULL)
        rc = decide_match(d, old->r.version, e);
    if (rc != ERR_OK)
        return rc;
    struct profile_record next = { .id = d->command->new_id, .name = spec->name };
    if (old != NULL)
        next = old->r;
    if (spec->description.size > 0)
        next.description = spec->description;
    struct request *r = &next.request;
    r->gpu_milli = given_or(spec->gpu_milli, r->gpu_milli);
    r->gpu_memory_mib = given_or(spec->gpu_memory_mib, r->gpu_memory_mib);
    r->devices = given_or(spec->devices, r->devices);
    r->share_milli = given_or(spec->share_milli, r->share_milli);
    r->mig_profile = (enum mig_name)given_or(spec->mig_profile, r->mig_profile);
    r->cpu_milli = given_or(spec->cpu_milli, r->cpu_milli);
    r->memory_mib = given_or(spec->memory_mib, r->memory_mib);
    rc = check_request(r, e);
    if (rc == ERR_OK && spec->classes.count > 0)
        rc = resolve_classes(d, &spec->classes, r, e);
    if (rc == ERR_OK)
        rc = profile_check_pools(d, &spec->pools, e);
    if (rc == ERR_OK)
        rc = profile_projects(d, &spec->projects, &next.projects, e);
    if (rc == ERR_OK)
        rc = profile_topology(&spec->topology, r, e);
    if (rc != ERR_OK)
        return rc;
    if (spec->pools.count > 0)
        next.pools = spec->pools;
    decide_add(d, EV_PROFILE_SET, no_tenant)->profile_set = next;
    return ERR_OK;
}

enum err decide_profile_remove(struct decision *d, struct error *e)
{
    struct profile_object *profile = state_profile_by_name(d->state, d->command->target.name);
    if (profile == NULL)
        return not_found(e, "profile", d->command->target.name);
    enum err rc = decide_match(d, profile->r.version, e);
    if (rc != ERR_OK)
        return rc;
    decide_add(d, EV_PROFILE_REMOVED, no_tenant)->removed.id = profile->r.id;
    return ERR_OK;
}
