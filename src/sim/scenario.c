#include "sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "os/zone_file.h"
#include "sim/fields.h"

/* Rules of zones are looked up as of then, so that a scenario means the same in every year. */
static const struct wall zone_era = { INT64_C(1767225600) * NS_PER_S }; /* 2026-01-01 */

#define AT_MAX_S (INT64_C(100) * 366 * 86400)

/* ---- tables -------------------------------------------------------------------------------- */

static const struct field class_fields[] = {
    { .name = "name",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_class, name),
      .is_required = true },
    FIELD(sim_class, memory_mib, INT),
    { .name = "slicing",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_class, slicing),
      .names = &slicing_names },
    { .name = "mig",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_class, mig),
      .names = &mig_table_names },
};

static const struct field pool_fields[] = {
    { .name = "name",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_pool, name),
      .is_required = true },
    { .name = "class",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_pool, class_name),
      .is_required = true },
    { .name = "nodes",
      .kind = FIELD_INT,
      .offset = offsetof(struct sim_pool, nodes),
      .is_required = true },
    { .name = "gpus",
      .kind = FIELD_INT,
      .offset = offsetof(struct sim_pool, gpus),
      .is_required = true },
    FIELD_AS(sim_pool, "cpus", cpu_milli, MILLI),
    FIELD(sim_pool, memory_mib, INT),
    FIELD(sim_pool, nodes_per_rack, INT),
    FIELD(sim_pool, racks_per_block, INT),
    { .name = "slicing",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_pool, slicing),
      .names = &slicing_names },
    { .name = "mig",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_pool, mig),
      .names = &mig_table_names },
};

static const struct field tenant_fields[] = {
    { .name = "path",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_tenant, path),
      .is_required = true },
    FIELD(sim_tenant, quota, AMOUNTS),
    FIELD(sim_tenant, limit, AMOUNTS),
    FIELD(sim_tenant, lend_limit, AMOUNTS),
    FIELD_AS(sim_tenant, "over_quota_weight", weight, COUNTS),
    FIELD(sim_tenant, priority, INT),
    FIELD_AS(sim_tenant, "force", is_forced, BOOL),
    FIELD_AS(sim_tenant, "for", for_s, SPAN),
    { .name = "expect_error", .kind = FIELD_OTHER },
};

static const struct field job_fields[] = {
    { .name = "name",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_job, name),
      .is_required = true },
    { .name = "project",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_job, project),
      .is_required = true },
    FIELD(sim_job, count, INT),
    FIELD_AS(sim_job, "gpus", gpu_milli, MILLI),
    FIELD(sim_job, gpu_memory_mib, INT),
    FIELD(sim_job, devices, INT),
    FIELD_AS(sim_job, "share", share_milli, MILLI),
    { .name = "mig_profile",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_job, mig_profile),
      .names = &mig_names },
    FIELD_AS(sim_job, "class", classes, TEXTS),
    FIELD(sim_job, classes, TEXTS),
    FIELD_AS(sim_job, "cpus", cpu_milli, MILLI),
    FIELD(sim_job, memory_mib, INT),
    FIELD(sim_job, members, INT),
    FIELD(sim_job, members_min, INT),
    FIELD_AS(sim_job, "duration", duration_s, SPAN),
    FIELD_AS(sim_job, "time_limit", time_limit_s, SPAN),
    FIELD(sim_job, priority, INT),
    { .name = "preemptible",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_job, preemptible),
      .names = &preemptible_names },
    FIELD(sim_job, retries, INT),
    FIELD_AS(sim_job, "fails_after", fails_after_s, SPAN),
    FIELD(sim_job, stop_s, SPAN),
    FIELD_AS(sim_job, "checkpoint_every", checkpoint_s, SPAN),
    FIELD(sim_job, user, TEXT),
    { .name = "topology", .kind = FIELD_OTHER },
    FIELD(sim_job, reservation, TEXT),
    { .name = "expect_error", .kind = FIELD_OTHER },
};

static const struct field reservation_fields[] = {
    { .name = "name",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_reservation, name),
      .is_required = true },
    { .name = "project",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_reservation, project),
      .is_required = true },
    { .name = "class",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_reservation, class_name),
      .is_required = true },
    { .name = "gpus",
      .kind = FIELD_MILLI,
      .offset = offsetof(struct sim_reservation, gpu_milli),
      .is_required = true },
    { .name = "start",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_reservation, start),
      .is_required = true },
    { .name = "end",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_reservation, end),
      .is_required = true },
    FIELD(sim_reservation, zone, TEXT),
    { .name = "every",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_reservation, every),
      .names = &repeat_names },
    FIELD(sim_reservation, interval, INT),
    FIELD(sim_reservation, until, TEXT),
    { .name = "end_policy",
      .kind = FIELD_ENUM,
      .offset = offsetof(struct sim_reservation, end_policy),
      .names = &end_policy_names },
    FIELD_AS(sim_reservation, "lend", is_lent, BOOL),
    FIELD_AS(sim_reservation, "force", is_forced, BOOL),
    FIELD_AS(sim_reservation, "request", is_request, BOOL),
    { .name = "expect_error", .kind = FIELD_OTHER },
};

static const struct field device_fields[] = {
    { .name = "node",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_event, name),
      .is_required = true },
    { .name = "index",
      .kind = FIELD_INT,
      .offset = offsetof(struct sim_event, index),
      .is_required = true },
};

static const struct field drain_fields[] = {
    { .name = "node",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct sim_event, name),
      .is_required = true },
    FIELD_AS(sim_event, "deadline", deadline_s, SPAN),
};

static const struct field setting_fields[] = {
    FIELD(settings_record, grace_s, INT),
    FIELD(settings_record, kill_confirm_s, INT),
    FIELD(settings_record, min_runtime_s, INT),
    FIELD(settings_record, min_runtime_in_quota_s, INT),
    FIELD(settings_record, start_timeout_s, INT),
    FIELD(settings_record, lost_after_s, INT),
    FIELD(settings_record, unknown_after_s, INT),
    FIELD(settings_record, gang_repair_s, INT),
    FIELD(settings_record, device_reserve_mib, INT),
    FIELD(settings_record, backoff_base_s, INT),
    FIELD(settings_record, backoff_max_s, INT),
    FIELD(settings_record, default_time_limit_s, INT),
    FIELD(settings_record, starvation_after_s, INT),
    FIELD(settings_record, lead_s, INT),
    { .name = "reclaim_to", .kind = FIELD_OTHER },
    { .name = "placement", .kind = FIELD_OTHER },
    FIELD(settings_record, history_k_milli, INT),
    FIELD(settings_record, history_half_life_s, INT),
    FIELD(settings_record, consolidate_max_moves, INT),
    { .name = "consolidate", .kind = FIELD_OTHER },
    { .name = "user_fairness", .kind = FIELD_OTHER },
};

static const struct field expect_fields[] = {
    { .name = "at", .kind = FIELD_OTHER },
    { .name = "from", .kind = FIELD_OTHER },
    { .name = "to", .kind = FIELD_OTHER },
    { .name = "always", .kind = FIELD_OTHER },
    { .name = "end", .kind = FIELD_OTHER },
    FIELD(sim_expect, job, TEXT),
    FIELD(sim_expect, reservation, TEXT),
    FIELD(sim_expect, path, TEXT),
    FIELD(sim_expect, state, TEXT),
    FIELD(sim_expect, cause, TEXT),
    FIELD(sim_expect, node, TEXT),
    FIELD(sim_expect, pool, TEXT),
    FIELD(sim_expect, same_node_as, TEXT),
    FIELD(sim_expect, different_device_from, TEXT),
    FIELD(sim_expect, count_in_state, INT),
    FIELD(sim_expect, evictions, INT),
    FIELD(sim_expect, evictions_max, INT),
    FIELD(sim_expect, attempts, INT),
    FIELD(sim_expect, error_count, INT),
    FIELD_AS(sim_expect, "started_before", started_before_s, SPAN),
    FIELD_AS(sim_expect, "started_after", started_after_s, SPAN),
    FIELD_AS(sim_expect, "promised_before", promised_before_s, SPAN),
    FIELD_AS(sim_expect, "quiet_after", quiet_after_s, SPAN),
    FIELD(sim_expect, running, PATHS),
    FIELD(sim_expect, running_max, PATHS),
    FIELD(sim_expect, running_min, PATHS),
    FIELD(sim_expect, pending, COUNTS),
    FIELD(sim_expect, free, AMOUNTS),
};

/* ---- events -------------------------------------------------------------------------------- */

static enum err read_settings(const struct doc *map, struct arena *arena,
                              struct settings_record *out, struct error *e)
{
    enum err rc = fields_read(map, setting_fields, COUNT_OF(setting_fields), arena, out, e);
    out->ended_keep_s = out->ended_keep_count = UNSET;
    const struct doc *reclaim_to = rc == ERR_OK ? doc_get(map, "reclaim_to") : NULL;
    const struct doc *placement = rc == ERR_OK ? doc_get(map, "placement") : NULL;
    unsigned value = 0;
    if (reclaim_to != NULL && !enum_parse(&reclaim_to_names, reclaim_to->text, &value))
        return doc_error(reclaim_to, e, "reclaim_to: expected quota or fair_share");
    out->reclaim_to = reclaim_to != NULL ? (enum reclaim_to)value : RECLAIM_TO_COUNT;
    const struct doc *consolidate = rc == ERR_OK ? doc_get(map, "consolidate") : NULL;
    bool is_on = consolidate != NULL && str_is(consolidate->text, "true");
    if (consolidate != NULL && !is_on && !str_is(consolidate->text, "false"))
        return doc_error(consolidate, e, "consolidate: expected true or false");
    out->consolidate = consolidate == NULL ? CONSOLIDATE_COUNT
                       : is_on             ? CONSOLIDATE_ON
                                           : CONSOLIDATE_OFF;
    const struct doc *fairness = rc == ERR_OK ? doc_get(map, "user_fairness") : NULL;
    unsigned among_users = USER_FAIRNESS_COUNT;
    if (fairness != NULL && !enum_parse(&user_fairness_names, fairness->text, &among_users))
        return doc_error(fairness, e, "user_fairness: expected off or usage");
    out->user_fairness = (enum user_fairness)among_users;
    unsigned policy = PLACEMENT_COUNT;
    if (placement != NULL && !enum_parse(&placement_names, placement->text, &policy))
        return doc_error(placement, e,
                         "placement: expected adaptive, first_fit, best_fit, pack, spread or fgd");
    out->placement = (enum placement)policy;
    return rc;
}

static enum err read_expected_error(const struct doc *map, struct sim_event *out, struct error *e)
{
    const struct doc *value = doc_get(map, "expect_error");
    enum cause cause = CAUSE_NONE;
    if (value == NULL)
        return ERR_OK;
    out->expect_error = value->text;
    return cause_parse(value->text, &cause)
               ? ERR_OK
               : doc_error(value, e, "expect_error: there is no cause \"%.*s\"",
                           STR_ARG(value->text));
}

static enum err read_topology(const struct doc *job, struct arena *arena, struct topology_spec *out,
                              struct error *e)
{
    struct {
        int64_t required, preferred;
    } given = { UNSET, UNSET };
    const struct field topology_fields[] = {
        { .name = "required", .kind = FIELD_ENUM, .offset = 0, .names = &topology_names },
        { .name = "preferred",
          .kind = FIELD_ENUM,
          .offset = sizeof(int64_t),
          .names = &topology_names },
    };
    const struct doc *map = doc_get(job, "topology");
    if (map == NULL)
        return ERR_OK;
    enum err rc = fields_read(map, topology_fields, COUNT_OF(topology_fields), arena, &given, e);
    if (rc != ERR_OK)
        return rc;
    out->required = given.required != UNSET ? (enum topology)given.required : TOPOLOGY_NONE;
    out->preferred = given.preferred != UNSET ? (enum topology)given.preferred : TOPOLOGY_NONE;
    return ERR_OK;
}

/* A scenario time, 90m, is told apart from a local time by its length. */
static enum err reservation_time(const struct doc *map, const char *key, struct str *time,
                                 struct error *e)
{
    struct local local;
    int64_t span_s = 0;
    if (time->size == 0 || local_parse(*time, &local) || str_to_seconds(*time, AT_MAX_S, &span_s))
        return ERR_OK;
    return doc_error(doc_get(map, key), e,
                     "%s: expected a time like 90m, or a local time like 2026-03-27T18:00:00", key);
}

static enum err reservation_times(const struct doc *map, struct arena *arena,
                                  struct sim_reservation *out, struct error *e)
{
    struct zone zone;
    AUTO(buf) struct buf rule = { 0 };
    enum err rc = reservation_time(map, "start", &out->start, e);
    if (rc == ERR_OK)
        rc = reservation_time(map, "end", &out->end, e);
    if (rc == ERR_OK)
        rc = reservation_time(map, "until", &out->until, e);
    if (rc != ERR_OK)
        return rc;
    if (out->zone.size == 0)
        out->zone = STR("UTC");
    struct error why = { 0 };
    if (zone_file_rule(out->zone, zone_era, &rule, &why) != ERR_OK ||
        zone_parse(buf_str(&rule), &zone, &why) != ERR_OK)
        return doc_error(map, e, "zone: %.200s", why.text);
    out->zone_rule = str_copy(arena, buf_str(&rule));
    return ERR_OK;
}

static enum err read_event_value(const struct doc *value, struct arena *arena,
                                 struct sim_event *out, struct error *e)
{
    enum err rc = ERR_OK;
    switch (out->type) {
    case SIM_SUBMIT:
        rc = fields_read(value, job_fields, COUNT_OF(job_fields), arena, &out->job, e);
        if (rc == ERR_OK)
            rc = read_topology(value, arena, &out->job.topology, e);
        return rc != ERR_OK ? rc : read_expected_error(value, out, e);
    case SIM_SET_QUOTA:
        out->quota.at = value;
        rc = fields_read(value, tenant_fields, COUNT_OF(tenant_fields), arena, &out->quota, e);
        return rc != ERR_OK ? rc : read_expected_error(value, out, e);
    case SIM_RESERVE:
        rc = fields_read(value, reservation_fields, COUNT_OF(reservation_fields), arena,
                         &out->reservation, e);
        if (rc == ERR_OK)
            rc = reservation_times(value, arena, &out->reservation, e);
        return rc != ERR_OK ? rc : read_expected_error(value, out, e);
    case SIM_SET:
        return read_settings(value, arena, &out->settings, e);
    case SIM_FAIL_DEVICE:
    case SIM_RETURN_DEVICE:
        return fields_read(value, device_fields, COUNT_OF(device_fields), arena, out, e);
    case SIM_DRAIN:
        return fields_read(value, drain_fields, COUNT_OF(drain_fields), arena, out, e);
    case SIM_RESTART_CONTROLLER:
        return fields_read(value, NULL, 0, arena, out, e);
    case SIM_CANCEL:
    case SIM_HOLD:
    case SIM_RELEASE:
    case SIM_FAIL_NODE:
    case SIM_RETURN_NODE:
    case SIM_UNDRAIN:
    case SIM_PARTITION:
    case SIM_HEAL:
    case SIM_RELEASE_RESERVATION:
    case SIM_CANCEL_RESERVATION:
    case SIM_CONFIRM_RESERVATION:
        break;
    }
    if (value->kind != DOC_SCALAR)
        return doc_error(value, e, "%.*s: expected a name", STR_ARG(value->key));
    out->name = value->text;
    return ERR_OK;
}

static const char *const event_names[] = {
    [SIM_SUBMIT] = "submit",
    [SIM_CANCEL] = "cancel",
    [SIM_HOLD] = "hold",
    [SIM_RELEASE] = "release",
    [SIM_SET_QUOTA] = "set_quota",
    [SIM_SET] = "set",
    [SIM_FAIL_NODE] = "fail_node",
    [SIM_RETURN_NODE] = "return_node",
    [SIM_FAIL_DEVICE] = "fail_device",
    [SIM_RETURN_DEVICE] = "return_device",
    [SIM_DRAIN] = "drain",
    [SIM_UNDRAIN] = "undrain",
    [SIM_PARTITION] = "partition",
    [SIM_HEAL] = "heal",
    [SIM_RESTART_CONTROLLER] = "restart_controller",
    [SIM_RESERVE] = "reserve",
    [SIM_RELEASE_RESERVATION] = "release_reservation",
    [SIM_CANCEL_RESERVATION] = "cancel_reservation",
    [SIM_CONFIRM_RESERVATION] = "confirm_reservation",
};

static enum err read_instant(const struct doc *value, int64_t *out, struct error *e)
{
    const struct field field = { .name = "at", .kind = FIELD_SPAN };
    enum err rc = field_read(value, &field, NULL, out, e);
    if (rc == ERR_OK && *out > AT_MAX_S)
        return doc_error(value, e, "%.*s: expected an instant like 90s or 2h", STR_ARG(value->key));
    return rc;
}

static enum err read_event(const struct doc *map, struct arena *arena, struct sim_event *out,
                           struct error *e)
{
    *out = (struct sim_event){ .at = map, .deadline_s = UNSET };
    if (map->kind != DOC_MAP || map->count != 2 || doc_get(map, "at") == NULL)
        return doc_error(map, e, "expected {at: TIME, WHAT: ...}");
    enum err rc = read_instant(doc_get(map, "at"), &out->at_s, e);
    const struct doc *value = &map->items[str_is(map->items[0].key, "at") ? 1 : 0];
    for (size_t i = 0; i < COUNT_OF(event_names) && rc == ERR_OK; i++) {
        if (!str_is(value->key, event_names[i]))
            continue;
        out->type = (enum sim_event_type)i;
        return read_event_value(value, arena, out, e);
    }
    return rc != ERR_OK ? rc : doc_key_error(value, e, "is no event");
}

/* ---- expectations -------------------------------------------------------------------------- */

static enum err read_when(const struct doc *map, struct sim_expect *out, struct error *e)
{
    const struct doc *at = doc_get(map, "at");
    const struct doc *from = doc_get(map, "from");
    const struct doc *to = doc_get(map, "to");
    bool is_always = doc_get(map, "always") != NULL;
    bool is_end = doc_get(map, "end") != NULL;
    bool is_span = from != NULL && to != NULL;
    if ((at != NULL) + is_always + is_end + is_span != 1 || (from != NULL) != (to != NULL))
        return doc_error(map, e, "expected one of at, from and to, always: true, end: true");
    out->from_s = is_end ? UNSET : 0;
    out->to_s = is_end ? UNSET : AT_MAX_S;
    enum err rc = ERR_OK;
    if (at != NULL || is_span)
        rc = read_instant(at != NULL ? at : from, &out->from_s, e);
    if (rc == ERR_OK && (at != NULL || is_span))
        rc = read_instant(at != NULL ? at : to, &out->to_s, e);
    return rc;
}

static enum err read_expect(const struct doc *map, struct arena *arena, struct sim_expect *out,
                            struct error *e)
{
    *out = (struct sim_expect){ .at = map };
    enum err rc = fields_read(map, expect_fields, COUNT_OF(expect_fields), arena, out, e);
    return rc != ERR_OK ? rc : read_when(map, out, e);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static enum err list_of(const struct doc *doc, const char *key, bool is_required,
                        const struct doc **items, size_t *count, struct error *e)
{
    const struct doc *list = doc_get(doc, key);
    *items = NULL;
    *count = 0;
    if (list == NULL)
        return is_required ? doc_error(doc, e, "%s is missing", key) : ERR_OK;
    if (list->kind != DOC_LIST)
        return doc_error(list, e, "%s: expected a list", key);
    *items = list->items;
    *count = list->count;
    return ERR_OK;
}

static enum err read_cluster(const struct doc *doc, struct arena *arena, struct scenario *out,
                             struct error *e)
{
    const struct doc *items = NULL;
    enum err rc = list_of(doc, "classes", false, &items, &out->class_count, e);
    out->classes = arena_new(arena, out->class_count, sizeof(*out->classes));
    for (size_t i = 0; i < out->class_count && rc == ERR_OK; i++) {
        out->classes[i].at = &items[i];
        rc = fields_read(&items[i], class_fields, COUNT_OF(class_fields), arena, &out->classes[i],
                         e);
    }
    if (rc == ERR_OK)
        rc = list_of(doc, "pools", true, &items, &out->pool_count, e);
    out->pools = arena_new(arena, out->pool_count, sizeof(*out->pools));
    for (size_t i = 0; i < out->pool_count && rc == ERR_OK; i++) {
        out->pools[i].at = &items[i];
        rc = fields_read(&items[i], pool_fields, COUNT_OF(pool_fields), arena, &out->pools[i], e);
    }
    if (rc == ERR_OK)
        rc = list_of(doc, "tenants", true, &items, &out->tenant_count, e);
    out->tenants = arena_new(arena, out->tenant_count, sizeof(*out->tenants));
    for (size_t i = 0; i < out->tenant_count && rc == ERR_OK; i++) {
        out->tenants[i].at = &items[i];
        rc = fields_read(&items[i], tenant_fields, COUNT_OF(tenant_fields), arena, &out->tenants[i],
                         e);
    }
    return rc;
}

/* Stable: events of one instant stay in the order of the file. */
static void sort_events(struct sim_event *events, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct sim_event event = events[i];
        size_t at = i;
        for (; at > 0 && events[at - 1].at_s > event.at_s; at--)
            events[at] = events[at - 1];
        events[at] = event;
    }
}

static enum err read_course(const struct doc *doc, struct arena *arena, struct scenario *out,
                            struct error *e)
{
    const struct doc *items = NULL;
    enum err rc = list_of(doc, "events", false, &items, &out->event_count, e);
    out->events = arena_new(arena, out->event_count, sizeof(*out->events));
    for (size_t i = 0; i < out->event_count && rc == ERR_OK; i++)
        rc = read_event(&items[i], arena, &out->events[i], e);
    if (rc != ERR_OK)
        return rc;
    sort_events(out->events, out->event_count);
    rc = list_of(doc, "expect", true, &items, &out->expect_count, e);
    out->expects = arena_new(arena, out->expect_count, sizeof(*out->expects));
    for (size_t i = 0; i < out->expect_count && rc == ERR_OK; i++)
        rc = read_expect(&items[i], arena, &out->expects[i], e);
    return rc;
}

bool scenario_instant(struct str text, struct wall *out)
{
    int64_t part[6];
    static const struct {
        size_t at, size;
        int64_t min, max;
    } parts[] = {
        { 0, 4, 1970, 2200 }, { 5, 2, 1, 12 },  { 8, 2, 1, 31 },
        { 11, 2, 0, 23 },     { 14, 2, 0, 59 }, { 17, 2, 0, 59 },
    };
    if (text.size < 19 || text.data[4] != '-' || text.data[7] != '-' || text.data[13] != ':' ||
        text.data[16] != ':')
        return false;
    bool is_iso = text.size == 20 && text.data[10] == 'T' && text.data[19] == 'Z';
    if (!is_iso && (text.size != 19 || text.data[10] != ' '))
        return false;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const struct str digits = { text.data + parts[i].at, parts[i].size };
        if (!str_to_i64(digits, parts[i].min, parts[i].max, &part[i]))
            return false;
    }
    /* Days since 1970 of a civil date, months counted from March. */
    int64_t year = part[0] - (part[1] <= 2);
    int64_t month = (part[1] + 9) % 12;
    int64_t day = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 +
                  part[2] - 1 - 719468;
    out->ns = ((day * 24 + part[3]) * 60 + part[4]) * 60 * NS_PER_S + part[5] * NS_PER_S;
    return true;
}

static const struct field scenario_fields[] = {
    { .name = "name",
      .kind = FIELD_TEXT,
      .offset = offsetof(struct scenario, name),
      .is_required = true },
    FIELD(scenario, seed, INT),
    { .name = "start", .kind = FIELD_OTHER },
    { .name = "settings", .kind = FIELD_OTHER },
    { .name = "classes", .kind = FIELD_OTHER },
    { .name = "pools", .kind = FIELD_OTHER },
    { .name = "tenants", .kind = FIELD_OTHER },
    { .name = "events", .kind = FIELD_OTHER },
    { .name = "expect", .kind = FIELD_OTHER },
    FIELD_AS(scenario, "until", until_s, SPAN),
};

enum err scenario_read(const struct doc *doc, struct arena *arena, struct scenario *out,
                       struct error *e)
{
    static const struct doc no_settings = { .kind = DOC_MAP };
    const struct doc *settings = doc->kind == DOC_MAP ? doc_get(doc, "settings") : NULL;
    const struct doc *start = doc->kind == DOC_MAP ? doc_get(doc, "start") : NULL;
    *out = (struct scenario){ .start = { INT64_C(1767225600) * NS_PER_S } }; /* 2026-01-01 */
    enum err rc = fields_read(doc, scenario_fields, COUNT_OF(scenario_fields), arena, out, e);
    if (rc == ERR_OK && start != NULL && !scenario_instant(start->text, &out->start))
        return doc_error(start, e, "start: expected an instant like 2026-03-28T00:00:00Z");
    if (rc == ERR_OK)
        rc = read_settings(settings != NULL ? settings : &no_settings, arena, &out->settings, e);
    if (rc == ERR_OK)
        rc = read_cluster(doc, arena, out, e);
    return rc != ERR_OK ? rc : read_course(doc, arena, out, e);
}
