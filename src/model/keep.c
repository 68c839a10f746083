#include "model/keep.h"

#include <stddef.h>
#include <string.h>

/* The pool owns these bytes; records call them const because everybody else borrows them. */
static void *owned(const void *bytes)
{
    return (void *)(uintptr_t)bytes;
}

/* Nothing at all is kept for nothing: empty lists and strings have no address. */
static void *items_keep(struct pool *pool, const void *items, size_t bytes)
{
    return bytes > 0 ? pool_dup(pool, items, bytes) : NULL;
}

#define KEEP_ITEMS(pool, list)                                                                     \
    ((list)->items = items_keep(pool, (list)->items, (list)->count * sizeof(*(list)->items)))
#define DROP_ITEMS(pool, list)                                                                     \
    do {                                                                                           \
        pool_free(pool, (list)->items, (list)->count * sizeof(*(list)->items));                    \
        (list)->items = NULL;                                                                      \
        (list)->count = 0;                                                                         \
    } while (0)

void str_keep(struct pool *pool, struct str *s)
{
    s->data = items_keep(pool, s->data, s->size);
}

void str_drop(struct pool *pool, struct str *s)
{
    if (s->size > 0)
        pool_free(pool, owned(s->data), s->size);
    *s = (struct str){ 0 };
}

static void strs_keep(struct pool *pool, struct str_list *list)
{
    KEEP_ITEMS(pool, list);
    for (size_t i = 0; i < list->count; i++)
        str_keep(pool, &list->items[i]);
}

static void strs_drop(struct pool *pool, struct str_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        str_drop(pool, &list->items[i]);
    DROP_ITEMS(pool, list);
}

void class_keep(struct pool *pool, struct class_record *r)
{
    str_keep(pool, &r->name);
    str_keep(pool, &r->vendor);
}

void class_drop(struct pool *pool, struct class_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->vendor);
}

void profile_keep(struct pool *pool, struct profile_record *r)
{
    str_keep(pool, &r->name);
    str_keep(pool, &r->description);
    strs_keep(pool, &r->pools);
    strs_keep(pool, &r->projects);
}

void profile_drop(struct pool *pool, struct profile_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->description);
    strs_drop(pool, &r->pools);
    strs_drop(pool, &r->projects);
}

void quotas_keep(struct pool *pool, struct quota_list *list)
{
    KEEP_ITEMS(pool, list);
}

void quotas_drop(struct pool *pool, struct quota_list *list)
{
    DROP_ITEMS(pool, list);
}

void usage_keep(struct pool *pool, struct usage_list *list)
{
    KEEP_ITEMS(pool, list);
}

void past_keep(struct pool *pool, struct past_list *list)
{
    KEEP_ITEMS(pool, list);
}

void past_drop(struct pool *pool, struct past_list *list)
{
    DROP_ITEMS(pool, list);
}

void users_keep(struct pool *pool, struct user_past_list *list)
{
    KEEP_ITEMS(pool, list);
    for (size_t i = 0; i < list->count; i++)
        str_keep(pool, &list->items[i].user);
}

void users_drop(struct pool *pool, struct user_past_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        str_drop(pool, &list->items[i].user);
    DROP_ITEMS(pool, list);
}

void usage_drop(struct pool *pool, struct usage_list *list)
{
    DROP_ITEMS(pool, list);
}

void token_keep(struct pool *pool, struct token_record *r)
{
    str_keep(pool, &r->name);
    str_keep(pool, &r->user);
    str_keep(pool, &r->pool);
}

void token_drop(struct pool *pool, struct token_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->user);
    str_drop(pool, &r->pool);
}

void image_keep(struct pool *pool, struct image_record *r)
{
    str_keep(pool, &r->name);
    str_keep(pool, &r->source);
}

void image_drop(struct pool *pool, struct image_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->source);
}

void hook_keep(struct pool *pool, struct hook_record *r)
{
    str_keep(pool, &r->name);
    str_keep(pool, &r->url);
    str_keep(pool, &r->sealed);
    str_keep(pool, &r->fault);
}

void hook_drop(struct pool *pool, struct hook_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->url);
    str_drop(pool, &r->sealed);
    str_drop(pool, &r->fault);
}

void credential_keep(struct pool *pool, struct credential_record *r)
{
    str_keep(pool, &r->registry);
    str_keep(pool, &r->username);
    str_keep(pool, &r->sealed);
}

void credential_drop(struct pool *pool, struct credential_record *r)
{
    str_drop(pool, &r->registry);
    str_drop(pool, &r->username);
    str_drop(pool, &r->sealed);
}

void devices_keep(struct pool *pool, struct device_list *list)
{
    KEEP_ITEMS(pool, list);
    for (size_t i = 0; i < list->count; i++) {
        str_keep(pool, &list->items[i].uuid);
        str_keep(pool, &list->items[i].model);
        str_keep(pool, &list->items[i].hold_reason);
        str_keep(pool, &list->items[i].health_reason);
    }
}

void devices_drop(struct pool *pool, struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        str_drop(pool, &list->items[i].uuid);
        str_drop(pool, &list->items[i].model);
        str_drop(pool, &list->items[i].hold_reason);
        str_drop(pool, &list->items[i].health_reason);
    }
    DROP_ITEMS(pool, list);
}

void holds_keep(struct pool *pool, struct hold_list *list)
{
    KEEP_ITEMS(pool, list);
    for (size_t i = 0; i < list->count; i++) {
        str_keep(pool, &list->items[i].by);
        str_keep(pool, &list->items[i].reason);
    }
}

void holds_drop(struct pool *pool, struct hold_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        str_drop(pool, &list->items[i].by);
        str_drop(pool, &list->items[i].reason);
    }
    DROP_ITEMS(pool, list);
}

/*
 * The spec is most of what a waiting workload costs, and the elements of an array, or a loop around
 * `berth submit`, have the same one. So it is counted, and kept once for neighbours that are equal.
 */
struct shared_text {
    uint32_t references;
    char bytes[];
};

static struct shared_text *text_of(struct str spec)
{
    return owned(spec.data - offsetof(struct shared_text, bytes));
}

static void spec_keep(struct pool *pool, struct str *spec, struct str before)
{
    if (spec->size == 0) {
        *spec = (struct str){ 0 };
        return;
    }
    if (str_eq(*spec, before)) {
        *spec = before;
        text_of(before)->references++;
        return;
    }
    struct shared_text *text = pool_new(pool, sizeof(*text) + spec->size);
    text->references = 1;
    memcpy(text->bytes, spec->data, spec->size);
    spec->data = text->bytes;
}

static void spec_drop(struct pool *pool, struct str *spec)
{
    if (spec->size > 0 && --text_of(*spec)->references == 0)
        pool_free(pool, text_of(*spec), sizeof(struct shared_text) + spec->size);
    *spec = (struct str){ 0 };
}

/* Name and user share one block, in this order: they never change, and one rounding is
 * less than two. */
static char *text_move(char *to, struct str *s)
{
    if (s->size > 0)
        memcpy(to, s->data, s->size);
    s->data = to;
    return to + s->size;
}

static void names_keep(struct pool *pool, struct str *name, struct str *user)
{
    if (name->size + user->size > 0)
        (void)text_move(text_move(pool_new(pool, name->size + user->size), name), user);
}

static void names_drop(struct pool *pool, struct str *name, struct str *user)
{
    if (name->size + user->size > 0)
        pool_free(pool, owned(name->data), name->size + user->size);
    *name = (struct str){ 0 };
    *user = (struct str){ 0 };
}

void nodes_drop(struct pool *pool, struct id_list *nodes)
{
    DROP_ITEMS(pool, nodes);
}

void workload_keep(struct pool *pool, struct workload_record *r,
                   const struct workload_record *before)
{
    names_keep(pool, &r->name, &r->user);
    spec_keep(pool, &r->spec_json, before != NULL ? before->spec_json : (struct str){ 0 });
    str_keep(pool, &r->detail);
    KEEP_ITEMS(pool, &r->depends_on);
    KEEP_ITEMS(pool, &r->volumes);
    KEEP_ITEMS(pool, &r->nodes);
}

void workload_drop(struct pool *pool, struct workload_record *r)
{
    names_drop(pool, &r->name, &r->user);
    spec_drop(pool, &r->spec_json);
    str_drop(pool, &r->detail);
    DROP_ITEMS(pool, &r->depends_on);
    DROP_ITEMS(pool, &r->volumes);
    nodes_drop(pool, &r->nodes);
}

void gaps_keep(struct pool *pool, struct gap_list *list)
{
    KEEP_ITEMS(pool, list);
}

void gaps_drop(struct pool *pool, struct gap_list *list)
{
    DROP_ITEMS(pool, list);
}

void reservation_keep(struct pool *pool, struct reservation_record *r)
{
    str_keep(pool, &r->name);
    str_keep(pool, &r->user);
    str_keep(pool, &r->zone);
    str_keep(pool, &r->zone_rule);
    str_keep(pool, &r->detail);
}

void reservation_drop(struct pool *pool, struct reservation_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->user);
    str_drop(pool, &r->zone);
    str_drop(pool, &r->zone_rule);
    str_drop(pool, &r->detail);
}

void change_keep(struct pool *pool, struct change_record *r)
{
    str_keep(pool, &r->name);
    str_keep(pool, &r->user);
    str_keep(pool, &r->reason);
    str_keep(pool, &r->zone);
    str_keep(pool, &r->zone_rule);
    str_keep(pool, &r->detail);
    quotas_keep(pool, &r->to.quotas);
    quotas_keep(pool, &r->former.quotas);
}

void change_drop(struct pool *pool, struct change_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->user);
    str_drop(pool, &r->reason);
    str_drop(pool, &r->zone);
    str_drop(pool, &r->zone_rule);
    str_drop(pool, &r->detail);
    quotas_drop(pool, &r->to.quotas);
    quotas_drop(pool, &r->former.quotas);
}

void allocation_keep(struct pool *pool, struct allocation_record *r)
{
    KEEP_ITEMS(pool, &r->shares);
}

void allocation_drop(struct pool *pool, struct allocation_record *r)
{
    DROP_ITEMS(pool, &r->shares);
}
