/*
 * import_kueue.c - cohorts, cluster queues and local queues of Kueue.
 *
 * A cohort is where quota is lent: a root cohort becomes a tenant, which lends and borrows nothing
 * outside, and what is in it becomes projects. In Kueue the quota of a cohort comes on top of those
 * of its queues; here it includes them, so it becomes their sum. A flavor is a class.
 */
#include <string.h>

#include "cli/import_kube.h"

static struct str key_of(struct kube *kube, const char *kind, const char *name)
{
    return str_of(arena_format(&kube->import->arena, "%s %s", kind, name));
}

static const char *text_of(const json_t *object, const char *field, const char *older)
{
    const char *text = json_string_value(json_object_get(object, field));
    if (text == NULL)
        text = json_string_value(json_object_get(object, older));
    return text != NULL ? text : "";
}

/* ---- quotas -------------------------------------------------------------------------------- */

/* Amounts of several flavors or resources that are one class add up. */
static void grow(int64_t *amount, int64_t by)
{
    if (*amount != UNBOUNDED)
        *amount = by == UNBOUNDED ? UNBOUNDED : (*amount == UNSET ? 0 : *amount) + by;
}

static enum err bound_of(struct kube *kube, const json_t *resource, const char *field, size_t line,
                         int64_t *out, struct error *e)
{
    const json_t *value = json_object_get(resource, field);
    *out = UNBOUNDED;
    if (value == NULL || json_is_null(value))
        return ERR_OK;
    return kube_milli(kube, value, line, field, out, e);
}

static enum err add_resource(struct kube *kube, const struct kube_object *object,
                             struct import_node *node, const char *flavor, const json_t *resource,
                             struct error *e)
{
    const char *name = text_of(resource, "name", "name");
    size_t line = kube_line(kube, resource, object->line);
    bool is_device = strchr(name, '/') != NULL;
    bool is_cpu = strcmp(name, "cpu") == 0;
    struct import_row *row = NULL;
    if (is_device || is_cpu)
        row = import_row(kube->import, node, str_of(is_cpu ? "cpu" : flavor), is_cpu);
    if (row == NULL) {
        import_note(kube->import, line, "%s %s: %s of flavor %s: no class is known for it%s",
                    object->kind, object->name, name, flavor, is_cpu ? " (--class cpu=NAME)" : "");
        return ERR_OK;
    }
    int64_t quota = 0;
    int64_t borrow = UNBOUNDED;
    int64_t lend = UNBOUNDED;
    bool is_first = row->quota_milli == UNSET;
    enum err rc = kube_milli(kube, json_object_get(resource, "nominalQuota"), line, "nominalQuota",
                             &quota, e);
    if (rc == ERR_OK)
        rc = bound_of(kube, resource, "borrowingLimit", line, &borrow, e);
    if (rc == ERR_OK)
        rc = bound_of(kube, resource, "lendingLimit", line, &lend, e);
    if (rc != ERR_OK)
        return rc;
    row->quota_read += quota;
    grow(&row->quota_milli, quota);
    if (is_first)
        row->borrow_milli = UNSET;
    grow(&row->borrow_milli, borrow);
    grow(&row->lend_limit_milli, lend);
    return ERR_OK;
}

static enum err add_flavor(struct kube *kube, const struct kube_object *object,
                           struct import_node *node, const json_t *flavor, struct error *e)
{
    const json_t *resources = json_object_get(flavor, "resources");
    const char *name = text_of(flavor, "name", "name");
    enum err rc = ERR_OK;
    if (name[0] == '\0')
        return err_set(e, ERR_INVALID, "line %zu: %s %s: a flavor has no name",
                       kube_line(kube, flavor, object->line), object->kind, object->name);
    for (size_t i = 0; rc == ERR_OK && i < json_array_size(resources); i++)
        rc = add_resource(kube, object, node, name, json_array_get(resources, i), e);
    return rc;
}

static enum err add_quotas(struct kube *kube, const struct kube_object *object,
                           struct import_node *node, struct error *e)
{
    const json_t *groups = json_object_get(object->spec, "resourceGroups");
    const json_t *weight = json_object_get(json_object_get(object->spec, "fairSharing"), "weight");
    enum err rc = kube_weight(kube, weight, object->line, &node->weight, e);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *flavors = json_object_get(json_array_get(groups, i), "flavors");
        for (size_t k = 0; rc == ERR_OK && k < json_array_size(flavors); k++)
            rc = add_flavor(kube, object, node, json_array_get(flavors, k), e);
    }
    return rc;
}

/* ---- objects ------------------------------------------------------------------------------- */

static enum err add_node(struct kube *kube, const struct kube_object *object, struct str key,
                         const char *cohort, struct error *e)
{
    struct import_node *node = NULL;
    enum err rc = import_add(kube->import, key, object->line, &node, e);
    if (rc != ERR_OK)
        return rc;
    node->theirs = str_copy(&kube->import->arena, str_of(object->name));
    if (cohort[0] != '\0')
        node->parent_key = key_of(kube, "cohort", cohort);
    return add_quotas(kube, object, node, e);
}

static enum err on_cohort(struct kube *kube, const struct kube_object *object, struct error *e)
{
    static const char *const known[] = { "parent", "parentName", "resourceGroups", "fairSharing",
                                         NULL };
    kube_note_others(kube, object, object->spec, known);
    return add_node(kube, object, key_of(kube, "cohort", object->name),
                    text_of(object->spec, "parentName", "parent"), e);
}

static enum err on_cluster_queue(struct kube *kube, const struct kube_object *object,
                                 struct error *e)
{
    static const char *const known[] = { "cohort", "cohortName", "resourceGroups", "fairSharing",
                                         NULL };
    kube_note_others(kube, object, object->spec, known);
    return add_node(kube, object, key_of(kube, "queue", object->name),
                    text_of(object->spec, "cohortName", "cohort"), e);
}

/* Where people of a namespace submit: a project without quotas of its own. */
static enum err on_local_queue(struct kube *kube, const struct kube_object *object, struct error *e)
{
    static const char *const known[] = { "clusterQueue", NULL };
    const char *queue = text_of(object->spec, "clusterQueue", "clusterQueue");
    struct import_node *node = NULL;
    const char *name =
        arena_format(&kube->import->arena, "%s-%s", object->name_space, object->name);
    kube_note_others(kube, object, object->spec, known);
    if (queue[0] == '\0')
        return err_set(e, ERR_INVALID, "line %zu: LocalQueue %s has no clusterQueue", object->line,
                       object->name);
    enum err rc = import_add(kube->import, key_of(kube, "local", name), object->line, &node, e);
    if (rc != ERR_OK)
        return rc;
    node->theirs = str_of(name);
    node->parent_key = key_of(kube, "queue", queue);
    return ERR_OK;
}

static enum err on_object(struct kube *kube, const struct kube_object *object, struct error *e)
{
    if (strcmp(object->kind, "Cohort") == 0)
        return on_cohort(kube, object, e);
    if (strcmp(object->kind, "ClusterQueue") == 0)
        return on_cluster_queue(kube, object, e);
    if (strcmp(object->kind, "LocalQueue") == 0)
        return on_local_queue(kube, object, e);
    if (strcmp(object->kind, "ResourceFlavor") != 0)
        import_note(kube->import, object->line, "%s %s: not looked at", object->kind, object->name);
    return ERR_OK;
}

/* A cohort need not have an object: naming it is enough. */
static enum err add_named_cohorts(struct import *import, struct error *e)
{
    static const struct str prefix = STR_INIT("cohort ");
    enum err rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < import->nodes.count; i++) {
        struct str key = import->nodes.items[i]->parent_key;
        struct import_node *cohort = NULL;
        if (!str_starts(key, prefix) || import_find(import, key) != NULL)
            continue;
        rc = import_add(import, key, import->nodes.items[i]->line, &cohort, e);
        if (rc == ERR_OK)
            cohort->theirs = (struct str){ key.data + prefix.size, key.size - prefix.size };
    }
    return rc;
}

/* ---- sums and bounds ----------------------------------------------------------------------- */

static void add_to_parent(struct import_node *node)
{
    for (size_t i = 0; node->parent != NULL && i < node->rows.count; i++) {
        const struct import_row *row = &node->rows.items[i];
        struct import_row *above = import_row_of(node->parent, row->class_index);
        if (row->quota_milli != UNSET)
            grow(&above->quota_milli, row->quota_milli);
    }
}

/* Outside of a root cohort, and of a queue in none, nothing is lent or borrowed. */
static void set_bounds(const struct import_node *node)
{
    for (size_t i = 0; i < node->rows.count; i++) {
        struct import_row *row = &node->rows.items[i];
        bool is_top = node->parent == NULL;
        if (row->quota_milli == UNSET)
            continue;
        if (is_top || row->borrow_milli >= 0)
            row->limit_milli = row->quota_milli + (is_top ? 0 : row->borrow_milli);
        if (is_top)
            row->lend_limit_milli = 0;
    }
}

/* Children before their parents, which is from the last to the first. */
static void settle(struct import *import)
{
    size_t count = 0;
    struct import_node **order =
        arena_new(&import->arena, import->nodes.count, sizeof(struct import_node *));
    for (const struct import_node *node = import->first_child; node != NULL;
         node = import_next(node))
        order[count++] = import_find(import, node->key);
    for (size_t left = count; left > 0; left--) {
        add_to_parent(order[left - 1]);
        set_bounds(order[left - 1]);
    }
}

enum err import_kueue(struct import *import, struct str text, struct error *e)
{
    struct kube kube = { .import = import, .group = STR("kueue.x-k8s.io/") };
    import->adds_up = true;
    import->settle = settle;
    enum err rc = kube_each(&kube, text, on_object, e);
    return rc == ERR_OK ? add_named_cohorts(import, e) : rc;
}
