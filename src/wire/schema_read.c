/*
 * schema_read.c - from JSON to structs: one pass over the text, each member looked up in its table,
 * every bound checked before memory is taken, every refusal with the path of the field at fault.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/schema_private.h"

/* Bounds for rows that give none: what stored forms may hold at most. */
enum { STRING_MAX = 1 << 20, ITEMS_MAX = 1 << 16, RAW_MAX = 1 << 20 };

/* Where in the document we are: links on the stack, spelled out only for a refusal. */
struct path {
    const struct path *parent;
    struct str name; /* data NULL: an index */
    size_t index;
};

struct decoder {
    struct json_cursor *c;
    struct arena *arena;
    enum unknown_fields unknown;
    struct error *e;
};

static void path_text(const struct path *path, struct buf *out)
{
    const struct path *way[JSON_DEPTH_MAX * 2];
    size_t depth = 0;

    for (; path != NULL && depth < COUNT_OF(way); path = path->parent)
        way[depth++] = path;
    for (; depth > 0; depth--) {
        const struct str name = way[depth - 1]->name;
        if (name.data != NULL)
            buf_format(out, "%s%.*s", out->size > 0 ? "." : "", STR_ARG(name));
        else
            buf_format(out, "[%zu]", way[depth - 1]->index);
    }
}

static enum err refuse(const struct decoder *d, const struct path *path, const char *fmt, ...)
    PRINTF(3, 4);

static enum err refuse(const struct decoder *d, const struct path *path, const char *fmt, ...)
{
    AUTO(buf) struct buf where = { 0 };
    char what[200];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    path_text(path, &where);
    if (where.size == 0)
        return err_field(d->e, "", "%s", what);
    return err_field(d->e, where.data, "%s: %s", where.data, what);
}

/* What the cursor found wrong with the text itself. */
static enum err malformed(const struct decoder *d)
{
    return json_cursor_error(d->c, d->e);
}

static bool is_next(const struct decoder *d, enum json_kind kind)
{
    return json_cursor_peek(d->c) == kind;
}

/* ---- scalars ------------------------------------------------------------------------------- */

static enum err check_size(const struct decoder *d, const struct path *path,
                           const struct field *field, size_t size)
{
    int64_t max = field->max != 0 ? field->max : STRING_MAX;

    if ((int64_t)size > max)
        return refuse(d, path, "has %zu bytes, at most %" PRId64 " are allowed", size, max);
    if ((int64_t)size < field->min)
        return refuse(d, path, "must have at least %" PRId64 " bytes", field->min);
    return ERR_OK;
}

static enum err read_string(const struct decoder *d, const struct path *path,
                            const struct field *field, struct str *out)
{
    if (!is_next(d, JSON_KIND_STRING))
        return refuse(d, path, "must be a string");
    if (!json_cursor_string(d->c, d->arena, out))
        return malformed(d);
    return check_size(d, path, field, out->size);
}

static enum err read_integer(const struct decoder *d, const struct path *path,
                             const struct field *field, int64_t *out)
{
    bool is_bounded = field->min != 0 || field->max != 0;
    bool is_integer = false;
    int64_t value = 0;

    if (!is_next(d, JSON_KIND_NUMBER))
        return refuse(d, path, "must be an integer");
    if (!json_cursor_number(d->c, &is_integer, &value))
        return malformed(d);
    if (!is_integer)
        return refuse(d, path, "must be an integer of 64 bits");
    if (is_bounded && (value < field->min || value > field->max))
        return refuse(d, path, "%" PRId64 " is not in %" PRId64 "..%" PRId64, value, field->min,
                      field->max);
    *out = value;
    return ERR_OK;
}

static enum err read_unsigned(const struct decoder *d, const struct path *path, uint64_t *out)
{
    const struct field any = { .kind = FIELD_I64, .min = 0, .max = INT64_MAX };
    int64_t value = 0;
    enum err rc = read_integer(d, path, &any, &value);

    if (rc == ERR_OK)
        *out = (uint64_t)value;
    return rc;
}

static enum err read_bool(const struct decoder *d, const struct path *path, bool *out)
{
    bool is_true = is_next(d, JSON_KIND_TRUE);
    if (!is_true && !is_next(d, JSON_KIND_FALSE))
        return refuse(d, path, "must be true or false");
    if (!json_cursor_word(d->c))
        return malformed(d);
    *out = is_true;
    return ERR_OK;
}

/* A string that is turned into something else; empty when the value is no string. */
static enum err read_text(const struct decoder *d, struct str *out)
{
    *out = (struct str){ "", 0 };
    if (!is_next(d, JSON_KIND_STRING))
        return ERR_OK;
    return json_cursor_string(d->c, d->arena, out) ? ERR_OK : malformed(d);
}

static enum err refuse_name(const struct decoder *d, const struct path *path,
                            const struct field *field)
{
    AUTO(buf) struct buf list = { 0 };

    for (size_t i = 0; i < field_name_count(field); i++) {
        const char *name = field->names->names[i];
        if (name != NULL && name[0] != '\0')
            buf_format(&list, "%s%s", list.size > 0 ? ", " : "", name);
    }
    return refuse(d, path, "must be one of: %s", list.data != NULL ? list.data : "");
}

static enum err read_enum(const struct decoder *d, const struct path *path,
                          const struct field *field, void *out)
{
    unsigned value = 0;
    struct str text;
    enum err rc = read_text(d, &text);
    if (rc != ERR_OK)
        return rc;
    if (!enum_parse(field->names, text, &value) || value >= field_name_count(field))
        return refuse_name(d, path, field);
    if (field->size == sizeof(int64_t))
        *(int64_t *)out = (int64_t)value;
    else
        *(unsigned *)out = value;
    return ERR_OK;
}

static enum err read_id(const struct decoder *d, const struct path *path, const struct field *field,
                        struct id *out)
{
    bool is_project = field->kind == FIELD_PROJECT;
    enum id_kind kind = is_project ? ID_PROJECT : field->id_kind;
    struct str text;
    enum err rc = read_text(d, &text);

    if (rc != ERR_OK)
        return rc;
    if (id_parse(kind, text, out) || (is_project && id_parse(ID_TENANT, text, out)))
        return ERR_OK;
    return refuse(d, path, "must be an id that begins with \"%s\"", id_prefix(kind));
}

static enum err read_hex(const struct decoder *d, const struct path *path,
                         const struct field *field, uint8_t *out)
{
    struct str text;
    enum err rc = read_text(d, &text);

    if (rc != ERR_OK)
        return rc;
    if (field->kind == FIELD_DIGEST && str_starts(text, STR("sha256:")))
        (void)str_cut(&text, ':');
    if (!hex_decode(text, out, field->size))
        return refuse(d, path, "must be %u hexadecimal digits", field->size * 2);
    return ERR_OK;
}

static enum err read_wall(const struct decoder *d, const struct path *path, struct wall *out)
{
    const struct field any = { .kind = FIELD_I64 };
    struct str text;
    if (is_next(d, JSON_KIND_NUMBER))
        return read_integer(d, path, &any, &out->ns);

    enum err rc = read_text(d, &text);
    if (rc == ERR_OK && !wall_parse(text, &out->ns))
        rc = refuse(d, path, "must be a time as 2026-11-30T07:28:27.123Z");
    return rc;
}

static enum err read_raw(const struct decoder *d, const struct path *path,
                         const struct field *field, struct str *out)
{
    AUTO(buf) struct buf compact = { 0 };
    int64_t max = field->max != 0 ? field->max : RAW_MAX;
    struct str text;

    if (!json_cursor_skip(d->c, &text))
        return malformed(d);
    json_compact(&compact, text);
    if ((int64_t)compact.size > max)
        return refuse(d, path, "has %zu bytes, at most %" PRId64 " are allowed", compact.size, max);
    *out = str_copy(d->arena, buf_str(&compact));
    return ERR_OK;
}

/* ---- lists --------------------------------------------------------------------------------- */

/* A list that grows in the arena while it is read. */
struct growing {
    char *items;
    size_t count, capacity;
    size_t item_size;
};

static void *grow(struct arena *arena, struct growing *list)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity * 2 : 4;
        char *items = arena_new(arena, capacity, list->item_size);
        if (list->count > 0)
            memcpy(items, list->items, list->count * list->item_size);
        list->items = items;
        list->capacity = capacity;
    }
    return list->items + list->count++ * list->item_size;
}

static enum err check_more(const struct decoder *d, const struct path *path,
                           const struct field *field, size_t count)
{
    int64_t max = field->max != 0 ? field->max : ITEMS_MAX;

    if ((int64_t)count >= max)
        return refuse(d, path, "has more entries than the %" PRId64 " allowed", max);
    return ERR_OK;
}

static enum err check_fewest(const struct decoder *d, const struct path *path,
                             const struct field *field, size_t count)
{
    if ((int64_t)count < field->min)
        return refuse(d, path, "must have at least %" PRId64 " entries", field->min);
    return ERR_OK;
}

/* The row of one item: as the list's, with the bound of an item. */
static struct field item_field(const struct field *list, enum field_kind kind)
{
    struct field item = *list;

    item.kind = kind;
    item.min = 0;
    item.max = list->item_max;
    return item;
}

static enum err read_object(const struct decoder *d, const struct path *path,
                            const struct schema *schema, void *object);

/* One item of a list, of the kind that the list holds. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static enum err read_item(const struct decoder *d, const struct path *path,
                          const struct field *list, void *out)
{
    struct field item = item_field(list, list->kind);

    if (list->kind == FIELD_STR_LIST)
        return read_string(d, path, &item, out);
    if (list->kind == FIELD_ID_LIST)
        return read_id(d, path, &item, out);
    if (list->kind == FIELD_CLASS_ARRAY) {
        item.max = CLASSES_MAX - 1;
        return read_integer(d, path, &item, out);
    }
    return read_object(d, path, list->schema, out);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static enum err read_list(const struct decoder *d, const struct path *path,
                          const struct field *field, struct growing *list)
{
    bool is_first = true;

    if (!is_next(d, JSON_KIND_ARRAY))
        return refuse(d, path, "must be a list");
    if (!json_cursor_enter(d->c))
        return malformed(d);
    while (json_cursor_next_item(d->c, &is_first)) {
        struct path here = { .parent = path, .index = list->count };
        enum err rc = check_more(d, path, field, list->count);
        if (rc == ERR_OK)
            rc = read_item(d, &here, field, grow(d->arena, list));
        if (rc != ERR_OK)
            return rc;
    }
    if (d->c->problem != NULL)
        return malformed(d);
    return check_fewest(d, path, field, list->count);
}

static size_t item_size(const struct field *field)
{
    if (field->kind == FIELD_STR_LIST)
        return sizeof(struct str);
    if (field->kind == FIELD_ID_LIST)
        return sizeof(struct id);
    return field->schema->size;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static enum err read_any_list(const struct decoder *d, const struct path *path,
                              const struct field *field, struct any_list *out)
{
    struct growing list = { .item_size = item_size(field) };
    enum err rc = read_list(d, path, field, &list);

    if (rc == ERR_OK)
        *out = (struct any_list){ list.items, list.count };
    return rc;
}

/* NOLINTNEXTLINE(misc-no-recursion): the items are numbers */
static enum err read_classes(const struct decoder *d, const struct path *path,
                             const struct field *field, void *object)
{
    int64_t *items = field_of(field, object);
    void *counter = (char *)object + field->count_offset;
    struct growing list = { .item_size = sizeof(*items) };
    enum err rc = read_list(d, path, field, &list);
    if (rc != ERR_OK)
        return rc;

    if (list.count > 0)
        memcpy(items, list.items, list.count * sizeof(*items));
    *(size_t *)counter = list.count;
    return ERR_OK;
}

static bool has_pair(const struct growing *pairs, struct str name)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const void *pair = pairs->items + i * pairs->item_size;
        if (str_eq(((const struct pair *)pair)->name, name))
            return true;
    }
    return false;
}

static enum err read_pair(const struct decoder *d, const struct path *path,
                          const struct field *field, struct str name, struct growing *pairs)
{
    struct field item = item_field(field, FIELD_STR);
    struct path here = { .parent = path, .name = name };
    enum err rc = check_more(d, path, field, pairs->count);
    if (rc != ERR_OK)
        return rc;
    if (name.size == 0)
        return refuse(d, path, "a name in it is empty");
    if (has_pair(pairs, name))
        return refuse(d, &here, "is there twice");

    struct pair *pair = grow(d->arena, pairs);
    pair->name = str_copy(d->arena, name);
    return read_string(d, &here, &item, &pair->value);
}

static enum err read_pairs(const struct decoder *d, const struct path *path,
                           const struct field *field, struct pair_list *out)
{
    struct growing pairs = { .item_size = sizeof(struct pair) };
    bool is_first = true;
    struct str name;

    if (!is_next(d, JSON_KIND_OBJECT))
        return refuse(d, path, "must be an object of strings");
    if (!json_cursor_enter(d->c))
        return malformed(d);
    while (json_cursor_next_key(d->c, &is_first, d->arena, &name)) {
        enum err rc = read_pair(d, path, field, name, &pairs);
        if (rc != ERR_OK)
            return rc;
    }
    if (d->c->problem != NULL)
        return malformed(d);
    void *items = pairs.items;
    *out = (struct pair_list){ items, pairs.count };
    return check_fewest(d, path, field, pairs.count);
}

/* ---- structs ------------------------------------------------------------------------------- */

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static enum err read_value(const struct decoder *d, const struct path *path,
                           const struct field *field, void *object)
{
    void *at = field_of(field, object);

    switch (field->kind) {
    case FIELD_STR:
        return read_string(d, path, field, at);
    case FIELD_RAW:
        return read_raw(d, path, field, at);
    case FIELD_ID:
    case FIELD_PROJECT:
        return read_id(d, path, field, at);
    case FIELD_I64:
    case FIELD_MONO:
    case FIELD_CLASS:
        return read_integer(d, path, field, at);
    case FIELD_U64:
        return read_unsigned(d, path, at);
    case FIELD_BOOL:
        return read_bool(d, path, at);
    case FIELD_ENUM:
        return read_enum(d, path, field, at);
    case FIELD_DIGEST:
    case FIELD_BYTES:
        return read_hex(d, path, field, at);
    case FIELD_WALL:
        return read_wall(d, path, at);
    case FIELD_CLASS_ARRAY:
        return read_classes(d, path, field, object);
    case FIELD_PAIRS:
        return read_pairs(d, path, field, at);
    case FIELD_STRUCT:
        return read_object(d, path, field->schema, at);
    case FIELD_ID_LIST:
    case FIELD_STR_LIST:
    case FIELD_STRUCT_LIST:
        return read_any_list(d, path, field, at);
    case FIELD_KIND_COUNT:
        break;
    }
    assert(!"a kind of field that does not exist");
    return ERR_INVALID;
}

/* Index of the row of that name, or the count. Members mostly come in the order of the table, so
 * the search begins at `from`. */
static size_t find_row(const struct schema *schema, struct str name, size_t from)
{
    for (size_t i = 0; i < schema->count; i++) {
        size_t at = from + i < schema->count ? from + i : from + i - schema->count;
        if (str_is(name, schema->fields[at].name))
            return at;
    }
    return schema->count;
}

static enum err pass_over(const struct decoder *d, const struct path *path)
{
    struct str value;

    if (d->unknown == UNKNOWN_REFUSED)
        return refuse(d, path, "there is no such field");
    return json_cursor_skip(d->c, &value) ? ERR_OK : malformed(d);
}

/* What an absent object means: UNSET where its fields may be. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static void unset_fields(const struct schema *schema, void *object)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        if ((field->flags & FIELD_UNSET) != 0)
            *(int64_t *)field_of(field, object) = UNSET;
        else if (field->kind == FIELD_STRUCT)
            unset_fields(field->schema, field_of(field, object));
    }
}

/* After the last member: what had to be there, and what is UNSET by not being there. */
static enum err close_object(const struct decoder *d, const struct path *path,
                             const struct schema *schema, uint64_t seen, void *object)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        struct path here = { .parent = path, .name = str_of(field->name) };
        if ((seen >> i & 1) != 0)
            continue;
        if ((field->flags & FIELD_REQUIRED) != 0)
            return refuse(d, &here, "is required");
        if ((field->flags & FIELD_UNSET) != 0)
            *(int64_t *)field_of(field, object) = UNSET;
        else if (field->kind == FIELD_STRUCT)
            unset_fields(field->schema, field_of(field, object));
    }
    return ERR_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static enum err read_object(const struct decoder *d, const struct path *path,
                            const struct schema *schema, void *object)
{
    uint64_t seen = 0; /* one bit a row: tables have at most 64 */
    size_t next = 0;
    bool is_first = true;
    struct str name;

    if (!is_next(d, JSON_KIND_OBJECT))
        return refuse(d, path, "must be an object");
    if (!json_cursor_enter(d->c))
        return malformed(d);
    while (json_cursor_next_key(d->c, &is_first, d->arena, &name)) {
        struct path here = { .parent = path, .name = name };
        size_t row = find_row(schema, name, next);
        enum err rc = ERR_OK;
        if (row == schema->count) {
            rc = pass_over(d, &here);
        } else if ((seen >> row & 1) != 0) {
            rc = refuse(d, &here, "is there twice");
        } else {
            rc = read_value(d, &here, &schema->fields[row], object);
            seen |= UINT64_C(1) << row;
            next = row + 1;
        }
        if (rc != ERR_OK)
            return rc;
    }
    if (d->c->problem != NULL)
        return malformed(d);
    return close_object(d, path, schema, seen, object);
}

enum err schema_decode_at(const struct schema *schema, struct json_cursor *c,
                          enum unknown_fields unknown, struct arena *arena, void *object,
                          struct error *e)
{
    const struct decoder d = { c, arena, unknown, e };

    assert(schema->count <= 64);
    return read_object(&d, NULL, schema, object);
}

enum err schema_decode_text(const struct schema *schema, struct str text,
                            enum unknown_fields unknown, struct arena *arena, void *object,
                            struct error *e)
{
    struct json_cursor c = json_cursor_of(text);

    if (text.size > JSON_BYTES_MAX)
        return err_set(e, ERR_LIMIT, "JSON of %zu bytes is larger than the %d allowed", text.size,
                       (int)JSON_BYTES_MAX);
    enum err rc = schema_decode_at(schema, &c, unknown, arena, object, e);
    if (rc == ERR_OK && !json_cursor_end(&c))
        rc = json_cursor_error(&c, e);
    return rc;
}

enum err schema_decode(const struct schema *schema, const json_t *json, enum unknown_fields unknown,
                       struct arena *arena, void *object, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    struct json_writer w = json_writer_of(&text);

    if (json == NULL)
        return err_field(e, "", "must be an object");
    json_write_tree(&w, json);
    return schema_decode_text(schema, buf_str(&text), unknown, arena, object, e);
}
