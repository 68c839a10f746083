/*
 * import_kai.c - queues of KAI (and of Run:ai's scheduler): a queue without a parent is a tenant.
 *
 * Their unset limit means "no more than the quota", ours "no limit"; an unlimited quota has no
 * counterpart. GPUs are of one kind there: which class they are is said with --class gpu=NAME.
 */
#include <string.h>

#include "cli/import_kube.h"

enum { PRIORITY_MAX = 1000 };

/* -1 has a meaning of its own; of cores the unit is a thousandth already. */
static enum err amount_of(struct kube *kube, const json_t *object, const char *field, bool is_cores,
                          int64_t *out, struct error *e)
{
    const json_t *value = json_object_get(object, field);
    *out = UNSET;
    if (value == NULL || json_is_null(value))
        return ERR_OK;
    if (json_is_integer(value) && json_integer_value(value) == -1) {
        *out = UNBOUNDED;
        return ERR_OK;
    }
    enum err rc = kube_milli(kube, value, kube_line(kube, object, 0), field, out, e);
    if (rc == ERR_OK && is_cores)
        *out /= 1000;
    return rc;
}

/* What `no more than the quota` is in numbers is known when the quotas below are: see settle(). */
static void set_limit(struct import_row *row, int64_t limit)
{
    row->borrow_milli = limit == UNSET || limit == 0 ? 0 : UNBOUNDED;
    if (limit > 0)
        row->limit_milli = row->limit_read = limit;
}

static enum err add_resource(struct kube *kube, const struct kube_object *object,
                             struct import_node *node, const char *name, struct error *e)
{
    static const char *const known[] = { "quota", "limit", "overQuotaWeight", NULL };
    const json_t *resource = json_object_get(json_object_get(object->spec, "resources"), name);
    bool is_cores = strcmp(name, "cpu") == 0;
    int64_t quota = UNSET;
    int64_t limit = UNSET;
    if (resource == NULL || json_is_null(resource))
        return ERR_OK;
    size_t line = kube_line(kube, resource, object->line);
    kube_note_others(kube, object, resource, known);
    enum err rc = amount_of(kube, resource, "quota", is_cores, &quota, e);
    if (rc == ERR_OK)
        rc = amount_of(kube, resource, "limit", is_cores, &limit, e);
    if (rc != ERR_OK)
        return rc;
    bool is_any = quota > 0 || limit > 0 || strcmp(name, "gpu") == 0;
    struct import_row *row = is_any ? import_row(kube->import, node, str_of(name), true) : NULL;
    if (row == NULL) {
        if (is_any)
            import_note(kube->import, line,
                        "Queue %s: %s: no class is known for it (--class %s=NAME)", object->name,
                        name, name);
        return ERR_OK;
    }
    if (quota == UNBOUNDED)
        import_note(kube->import, line, "Queue %s: %s: a quota without an end", object->name, name);
    if (quota >= 0)
        row->quota_milli = row->quota_read = quota;
    set_limit(row, limit);
    return kube_weight(kube, json_object_get(resource, "overQuotaWeight"), line, &row->weight, e);
}

static enum err add_priority(struct kube *kube, const struct kube_object *object,
                             struct import_node *node, struct error *e)
{
    const json_t *value = json_object_get(object->spec, "priority");
    if (value == NULL || json_is_null(value))
        return ERR_OK;
    if (!json_is_integer(value))
        return err_set(e, ERR_INVALID, "line %zu: priority of Queue %s is not a number",
                       kube_line(kube, value, object->line), object->name);
    int64_t priority = json_integer_value(value);
    node->priority = MIN_OF(MAX_OF(priority, INT64_C(0)), (int64_t)PRIORITY_MAX);
    if (node->priority != priority)
        import_note(kube->import, kube_line(kube, value, object->line),
                    "Queue %s: priority %lld: %lld instead", object->name, (long long)priority,
                    (long long)node->priority);
    return ERR_OK;
}

static enum err on_object(struct kube *kube, const struct kube_object *object, struct error *e)
{
    static const char *const known[] = { "parentQueue", "resources", "priority", NULL };
    static const char *const resources[] = { "gpu", "cpu" };
    static const char *const known_resources[] = { "gpu", "cpu", NULL };
    const char *parent = json_string_value(json_object_get(object->spec, "parentQueue"));
    struct import_node *node = NULL;
    if (strcmp(object->kind, "Queue") != 0) {
        import_note(kube->import, object->line, "%s %s: not looked at", object->kind, object->name);
        return ERR_OK;
    }
    enum err rc = import_add(kube->import, str_of(object->name), object->line, &node, e);
    if (rc != ERR_OK)
        return rc;
    if (parent != NULL)
        node->parent_key = str_copy(&kube->import->arena, str_of(parent));
    kube_note_others(kube, object, object->spec, known);
    kube_note_others(kube, object, json_object_get(object->spec, "resources"), known_resources);
    for (size_t i = 0; rc == ERR_OK && i < COUNT_OF(resources); i++)
        rc = add_resource(kube, object, node, resources[i], e);
    return rc == ERR_OK ? add_priority(kube, object, node, e) : rc;
}

/* ---- limits that are quotas ---------------------------------------------------------------- */

static const struct import_row *find_row(const struct import_node *node, size_t class)
{
    for (size_t i = 0; i < node->rows.count; i++) {
        if (node->rows.items[i].class_index == class)
            return &node->rows.items[i];
    }
    return NULL;
}

/* Children come before: what they have is in node->below. */
static void settle_node(struct import_node *node, size_t class)
{
    struct import_row *row = find_row(node, class) != NULL ? import_row_of(node, class) : NULL;
    int64_t quota = row != NULL && row->quota_milli > 0 ? row->quota_milli : node->below;
    if (row != NULL && row->borrow_milli == 0)
        row->limit_milli = row->limit_read = quota;
    if (row != NULL && row->quota_milli == 0 && node->first_child != NULL)
        row->quota_milli = UNSET; /* the sum of what is below it */
    if (node->parent != NULL)
        node->parent->below += quota;
    node->below = 0;
}

static void settle(struct import *import)
{
    size_t count = 0;
    struct import_node **order =
        arena_new(&import->arena, import->nodes.count, sizeof(struct import_node *));
    for (const struct import_node *node = import->first_child; node != NULL;
         node = import_next(node))
        order[count++] = import_find(import, node->key);
    for (size_t class = 0; class < import->classes.count; class ++) {
        for (size_t left = count; left > 0; left--)
            settle_node(order[left - 1], class);
    }
}

enum err import_kai(struct import *import, struct str text, struct error *e)
{
    struct kube kube = { .import = import, .group = STR("scheduling.run.ai/") };
    import->settle = settle;
    return kube_each(&kube, text, on_object, e);
}
