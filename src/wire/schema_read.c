/*
 * schema_read.c - from JSON to structs: one loop over a table, every bound checked before memory is
 * taken, every refusal with the path of the field at fault.
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
    const char *name; /* NULL: an index */
    size_t index;
};

struct decoder {
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
    while (depth-- > 0) {
        if (way[depth]->name != NULL)
            buf_format(out, "%s%s", out->size > 0 ? "." : "", way[depth]->name);
        else
            buf_format(out, "[%zu]", way[depth]->index);
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

static struct str string_of(const json_t *json)
{
    return (struct str){ json_string_value(json), json_string_length(json) };
}

/* ---- scalars ------------------------------------------------------------------------------- */

static enum err read_string(const struct decoder *d, const struct path *path, const json_t *json,
                            const struct field *field, struct str *out)
{
    if (!json_is_string(json))
        return refuse(d, path, "must be a string");
    struct str value = string_of(json);
    int64_t max = field->max != 0 ? field->max : STRING_MAX;
    if ((int64_t)value.size > max)
        return refuse(d, path, "has %zu bytes, at most %" PRId64 " are allowed", value.size, max);
    if ((int64_t)value.size < field->min)
        return refuse(d, path, "must have at least %" PRId64 " bytes", field->min);
    *out = str_copy(d->arena, value);
    return ERR_OK;
}

static enum err read_integer(const struct decoder *d, const struct path *path, const json_t *json,
                             const struct field *field, int64_t *out)
{
    bool is_bounded = field->min != 0 || field->max != 0;
    if (!json_is_integer(json))
        return refuse(d, path, "must be an integer");
    int64_t value = json_integer_value(json);
    if (is_bounded && (value < field->min || value > field->max))
        return refuse(d, path, "%" PRId64 " is not in %" PRId64 "..%" PRId64, value, field->min,
                      field->max);
    *out = value;
    return ERR_OK;
}

static enum err read_unsigned(const struct decoder *d, const struct path *path, const json_t *json,
                              uint64_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        return refuse(d, path, "must be an integer, not below 0");
    *out = (uint64_t)json_integer_value(json);
    return ERR_OK;
}

static enum err read_bool(const struct decoder *d, const struct path *path, const json_t *json,
                          bool *out)
{
    if (!json_is_boolean(json))
        return refuse(d, path, "must be true or false");
    *out = json_is_true(json);
    return ERR_OK;
}

static enum err refuse_name(const struct decoder *d, const struct path *path,
                            const struct field *field)
{
    AUTO(buf) struct buf list = { 0 };

    for (size_t i = 0; i < field->names->count; i++) {
        const char *name = field->names->names[i];
        if (name != NULL && name[0] != '\0')
            buf_format(&list, "%s%s", list.size > 0 ? ", " : "", name);
    }
    return refuse(d, path, "must be one of: %s", list.data != NULL ? list.data : "");
}

static enum err read_enum(const struct decoder *d, const struct path *path, const json_t *json,
                          const struct field *field, void *out)
{
    unsigned value = 0;
    if (!json_is_string(json) || !enum_parse(field->names, string_of(json), &value))
        return refuse_name(d, path, field);
    if (field->size == sizeof(int64_t))
        *(int64_t *)out = (int64_t)value;
    else
        *(unsigned *)out = value;
    return ERR_OK;
}

static enum err read_id(const struct decoder *d, const struct path *path, const json_t *json,
                        const struct field *field, struct id *out)
{
    struct str text = json_is_string(json) ? string_of(json) : (struct str){ 0 };
    bool is_project = field->kind == FIELD_PROJECT;
    enum id_kind kind = is_project ? ID_PROJECT : field->id_kind;

    if (id_parse(kind, text, out) || (is_project && id_parse(ID_TENANT, text, out)))
        return ERR_OK;
    return refuse(d, path, "must be an id that begins with \"%s\"", id_prefix(kind));
}

static enum err read_hex(const struct decoder *d, const struct path *path, const json_t *json,
                         const struct field *field, uint8_t *out)
{
    struct str text = json_is_string(json) ? string_of(json) : (struct str){ 0 };

    if (field->kind == FIELD_DIGEST && str_starts(text, STR("sha256:")))
        (void)str_cut(&text, ':');
    if (!hex_decode(text, out, field->size))
        return refuse(d, path, "must be %u hexadecimal digits", field->size * 2);
    return ERR_OK;
}

static enum err read_wall(const struct decoder *d, const struct path *path, const json_t *json,
                          struct wall *out)
{
    if (json_is_integer(json)) {
        out->ns = json_integer_value(json);
        return ERR_OK;
    }
    if (json_is_string(json) && wall_parse(string_of(json), &out->ns))
        return ERR_OK;
    return refuse(d, path, "must be a time as 2026-11-30T07:28:27.123Z");
}

static enum err read_raw(const struct decoder *d, const struct path *path, const json_t *json,
                         const struct field *field, struct str *out)
{
    AUTO(buf) struct buf text = { 0 };
    struct json_writer w = json_writer_of(&text);
    int64_t max = field->max != 0 ? field->max : RAW_MAX;

    json_write_tree(&w, json);
    if ((int64_t)text.size > max)
        return refuse(d, path, "has %zu bytes, at most %" PRId64 " are allowed", text.size, max);
    *out = str_copy(d->arena, buf_str(&text));
    return ERR_OK;
}

/* ---- lists --------------------------------------------------------------------------------- */

static enum err check_count(const struct decoder *d, const struct path *path,
                            const struct field *field, size_t count)
{
    int64_t max = field->max != 0 ? field->max : ITEMS_MAX;

    if ((int64_t)count > max)
        return refuse(d, path, "has %zu entries, at most %" PRId64 " are allowed", count, max);
    if ((int64_t)count < field->min)
        return refuse(d, path, "must have at least %" PRId64 " entries", field->min);
    return ERR_OK;
}

static enum err check_array(const struct decoder *d, const struct path *path, const json_t *json,
                            const struct field *field)
{
    if (!json_is_array(json))
        return refuse(d, path, "must be a list");
    return check_count(d, path, field, json_array_size(json));
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

static enum err read_classes(const struct decoder *d, const struct path *path, const json_t *json,
                             const struct field *field, void *object)
{
    const struct field item = { .kind = FIELD_CLASS, .min = 0, .max = CLASSES_MAX - 1 };
    int64_t *items = field_of(field, object);
    void *counter = (char *)object + field->count_offset;
    enum err rc = check_array(d, path, json, field);

    for (size_t i = 0; rc == ERR_OK && i < json_array_size(json); i++) {
        struct path here = { path, NULL, i };
        rc = read_integer(d, &here, json_array_get(json, i), &item, &items[i]);
    }
    if (rc == ERR_OK)
        *(size_t *)counter = json_array_size(json);
    return rc;
}

static enum err read_ids(const struct decoder *d, const struct path *path, const json_t *json,
                         const struct field *field, struct id_list *out)
{
    struct field item = item_field(field, FIELD_ID);
    enum err rc = check_array(d, path, json, field);
    if (rc != ERR_OK)
        return rc;

    size_t count = json_array_size(json);
    struct id *items = arena_new(d->arena, count, sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        struct path here = { path, NULL, i };
        rc = read_id(d, &here, json_array_get(json, i), &item, &items[i]);
        if (rc != ERR_OK)
            return rc;
    }
    *out = (struct id_list){ items, count };
    return ERR_OK;
}

static enum err read_strings(const struct decoder *d, const struct path *path, const json_t *json,
                             const struct field *field, struct str_list *out)
{
    struct field item = item_field(field, FIELD_STR);
    enum err rc = check_array(d, path, json, field);
    if (rc != ERR_OK)
        return rc;

    size_t count = json_array_size(json);
    struct str *items = arena_new(d->arena, count, sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        struct path here = { path, NULL, i };
        rc = read_string(d, &here, json_array_get(json, i), &item, &items[i]);
        if (rc != ERR_OK)
            return rc;
    }
    *out = (struct str_list){ items, count };
    return ERR_OK;
}

static enum err read_pairs(const struct decoder *d, const struct path *path, json_t *json,
                           const struct field *field, struct pair_list *out)
{
    struct field item = item_field(field, FIELD_STR);
    if (!json_is_object(json))
        return refuse(d, path, "must be an object of strings");
    enum err rc = check_count(d, path, field, json_object_size(json));
    if (rc != ERR_OK)
        return rc;

    struct pair *items = arena_new(d->arena, json_object_size(json), sizeof(*items));
    size_t count = 0;
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        struct str name = str_of(json_object_iter_key(at));
        struct path here = { path, json_object_iter_key(at), 0 };
        if (name.size == 0 || name.size > STRING_MAX)
            return refuse(d, path, "a name in it is empty or too long");
        rc = read_string(d, &here, json_object_iter_value(at), &item, &items[count].value);
        if (rc != ERR_OK)
            return rc;
        items[count++].name = str_copy(d->arena, name);
    }
    *out = (struct pair_list){ items, count };
    return ERR_OK;
}

/* ---- structs ------------------------------------------------------------------------------- */

static enum err read_object(const struct decoder *d, const struct path *path,
                            const struct schema *schema, json_t *json, void *object);

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest
static enum err read_structs(const struct decoder *d, const struct path *path, const json_t *json,
                             const struct field *field, struct any_list *out)
{
    enum err rc = check_array(d, path, json, field);
    if (rc != ERR_OK)
        return rc;

    size_t count = json_array_size(json);
    char *items = arena_new(d->arena, count, field->schema->size);
    for (size_t i = 0; i < count; i++) {
        struct path here = { path, NULL, i };
        rc = read_object(d, &here, field->schema, json_array_get(json, i),
                         items + i * field->schema->size);
        if (rc != ERR_OK)
            return rc;
    }
    *out = (struct any_list){ items, count };
    return ERR_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest
static enum err read_value(const struct decoder *d, const struct path *path, json_t *json,
                           const struct field *field, void *object)
{
    void *at = field_of(field, object);

    switch (field->kind) {
    case FIELD_STR:
        return read_string(d, path, json, field, at);
    case FIELD_RAW:
        return read_raw(d, path, json, field, at);
    case FIELD_ID:
    case FIELD_PROJECT:
        return read_id(d, path, json, field, at);
    case FIELD_I64:
    case FIELD_MONO:
    case FIELD_CLASS:
        return read_integer(d, path, json, field, at);
    case FIELD_U64:
        return read_unsigned(d, path, json, at);
    case FIELD_BOOL:
        return read_bool(d, path, json, at);
    case FIELD_ENUM:
        return read_enum(d, path, json, field, at);
    case FIELD_DIGEST:
    case FIELD_BYTES:
        return read_hex(d, path, json, field, at);
    case FIELD_WALL:
        return read_wall(d, path, json, at);
    case FIELD_CLASS_ARRAY:
        return read_classes(d, path, json, field, object);
    case FIELD_ID_LIST:
        return read_ids(d, path, json, field, at);
    case FIELD_STR_LIST:
        return read_strings(d, path, json, field, at);
    case FIELD_PAIRS:
        return read_pairs(d, path, json, field, at);
    case FIELD_STRUCT:
        return read_object(d, path, field->schema, json, at);
    case FIELD_STRUCT_LIST:
        return read_structs(d, path, json, field, at);
    case FIELD_KIND_COUNT:
        break;
    }
    assert(!"a kind of field that does not exist");
    return ERR_INVALID;
}

static bool schema_has(const struct schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return true;
    return false;
}

static enum err refuse_unknown(const struct decoder *d, const struct path *path,
                               const struct schema *schema, json_t *json)
{
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        struct path here = { path, json_object_iter_key(at), 0 };
        if (!schema_has(schema, json_object_iter_key(at)))
            return refuse(d, &here, "there is no such field");
    }
    return ERR_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest
static enum err read_object(const struct decoder *d, const struct path *path,
                            const struct schema *schema, json_t *json, void *object)
{
    size_t known = 0;
    if (!json_is_object(json))
        return refuse(d, path, "must be an object");

    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        struct path here = { path, field->name, 0 };
        json_t *value = json_object_get(json, field->name);
        if (value != NULL) {
            enum err rc = read_value(d, &here, value, field, object);
            if (rc != ERR_OK)
                return rc;
            known++;
        } else if ((field->flags & FIELD_REQUIRED) != 0) {
            return refuse(d, &here, "is required");
        } else if ((field->flags & FIELD_UNSET) != 0) {
            *(int64_t *)field_of(field, object) = UNSET;
        }
    }
    if (d->unknown == UNKNOWN_REFUSED && known != json_object_size(json))
        return refuse_unknown(d, path, schema, json);
    return ERR_OK;
}

enum err schema_decode(const struct schema *schema, const json_t *json, enum unknown_fields unknown,
                       struct arena *arena, void *object, struct error *e)
{
    const struct decoder d = { arena, unknown, e };
    /* jansson's iterators take no const, but do not change the tree either. */
    json_t *tree = (json_t *)(uintptr_t)json;

    return read_object(&d, NULL, schema, tree, object);
}

enum err schema_decode_text(const struct schema *schema, struct str text,
                            enum unknown_fields unknown, struct arena *arena, void *object,
                            struct error *e)
{
    AUTO(json) json_t *json = NULL;
    enum err rc = json_read(text, 0, &json, e);
    if (rc != ERR_OK)
        return rc;
    return schema_decode(schema, json, unknown, arena, object, e);
}
