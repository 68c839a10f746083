#include "wire/event_copy.h"

#include <assert.h>
#include <string.h>

#include "wire/event_json.h"

static void struct_own(struct arena *arena, const struct schema *schema, void *object);

static void str_own(struct arena *arena, struct str *s)
{
    *s = s->size > 0 ? str_copy(arena, *s) : (struct str){ 0 };
}

/* Duplicates `count` items of `size` bytes; NULL stays NULL. */
static void *items_own(struct arena *arena, const void *items, size_t count, size_t size)
{
    return count > 0 ? (void *)arena_dup(arena, items, count * size) : NULL;
}

/* The layout of every FIELD_STRUCT_LIST member. */
struct any_list {
    void *items;
    size_t count;
};

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which name no table twice */
static void member_own(struct arena *arena, const struct field *field, void *member)
{
    struct str_list *strings = member;
    struct pair_list *pairs = member;
    struct any_list *list = member;

    switch (field->kind) {
    case FIELD_STR:
    case FIELD_RAW:
        str_own(arena, member);
        break;
    case FIELD_STR_LIST:
        strings->items = items_own(arena, strings->items, strings->count, sizeof(struct str));
        for (size_t i = 0; i < strings->count; i++)
            str_own(arena, &strings->items[i]);
        break;
    case FIELD_ID_LIST:
        list->items = items_own(arena, list->items, list->count, sizeof(struct id));
        break;
    case FIELD_PAIRS:
        pairs->items = items_own(arena, pairs->items, pairs->count, sizeof(struct pair));
        for (size_t i = 0; i < pairs->count; i++) {
            str_own(arena, &pairs->items[i].name);
            str_own(arena, &pairs->items[i].value);
        }
        break;
    case FIELD_STRUCT:
        struct_own(arena, field->schema, member);
        break;
    case FIELD_STRUCT_LIST:
        list->items = items_own(arena, list->items, list->count, field->schema->size);
        for (size_t i = 0; i < list->count; i++)
            struct_own(arena, field->schema, (char *)list->items + i * field->schema->size);
        break;
    case FIELD_ID:
    case FIELD_PROJECT:
    case FIELD_I64:
    case FIELD_U64:
    case FIELD_BOOL:
    case FIELD_ENUM:
    case FIELD_DIGEST:
    case FIELD_BYTES:
    case FIELD_WALL:
    case FIELD_MONO:
    case FIELD_CLASS:
    case FIELD_CLASS_ARRAY:
    case FIELD_KIND_COUNT:
        break; /* held by value */
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static void struct_own(struct arena *arena, const struct schema *schema, void *object)
{
    for (size_t i = 0; i < schema->count; i++)
        member_own(arena, &schema->fields[i], (char *)object + schema->fields[i].offset);
}

void event_copy(struct arena *arena, const struct event *event, struct event *out)
{
    *out = *event;
    str_own(arena, &out->actor.name);
    const struct schema *schema = event_schema(event->type, event->version);
    assert(schema != NULL);
    struct_own(arena, schema, &out->controller_started); /* every payload starts where this does */
}
