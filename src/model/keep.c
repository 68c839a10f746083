#include "model/keep.h"

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
}

void profile_drop(struct pool *pool, struct profile_record *r)
{
    str_drop(pool, &r->name);
    str_drop(pool, &r->description);
    strs_drop(pool, &r->pools);
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
    }
}

void devices_drop(struct pool *pool, struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        str_drop(pool, &list->items[i].uuid);
        str_drop(pool, &list->items[i].model);
        str_drop(pool, &list->items[i].hold_reason);
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

/* Name, user and spec share one block, in this order: they never change, there may be a million
 * workloads, and three roundings cost more than one. */
static size_t workload_text_bytes(const struct workload_record *r)
{
    return r->name.size + r->user.size + r->spec_json.size;
}

static char *text_move(char *to, struct str *s)
{
    if (s->size > 0)
        memcpy(to, s->data, s->size);
    s->data = to;
    return to + s->size;
}

void workload_keep(struct pool *pool, struct workload_record *r)
{
    if (workload_text_bytes(r) > 0) {
        char *at = pool_new(pool, workload_text_bytes(r));
        at = text_move(at, &r->name);
        at = text_move(at, &r->user);
        (void)text_move(at, &r->spec_json);
    }
    str_keep(pool, &r->detail);
    KEEP_ITEMS(pool, &r->depends_on);
    KEEP_ITEMS(pool, &r->volumes);
}

void workload_drop(struct pool *pool, struct workload_record *r)
{
    if (workload_text_bytes(r) > 0)
        pool_free(pool, owned(r->name.data), workload_text_bytes(r));
    r->name = (struct str){ 0 };
    r->user = (struct str){ 0 };
    r->spec_json = (struct str){ 0 };
    str_drop(pool, &r->detail);
    DROP_ITEMS(pool, &r->depends_on);
    DROP_ITEMS(pool, &r->volumes);
}

void allocation_keep(struct pool *pool, struct allocation_record *r)
{
    KEEP_ITEMS(pool, &r->shares);
}

void allocation_drop(struct pool *pool, struct allocation_record *r)
{
    DROP_ITEMS(pool, &r->shares);
}
