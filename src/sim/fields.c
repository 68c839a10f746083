#include "sim/fields.h"

#include "sim/scenario.h"

enum {
    INT_MAX_VALUE = 1000000000,
};
#define SPAN_MAX_S (INT64_C(100) * 366 * 86400)

static enum err read_text(const struct doc *value, struct str *out, struct error *e)
{
    if (value->kind != DOC_SCALAR)
        return doc_error(value, e, "%.*s: expected text", STR_ARG(value->key));
    *out = value->text;
    return ERR_OK;
}

static enum err read_number(const struct doc *value, enum field_kind kind, int64_t *out,
                            struct error *e)
{
    bool is_good = value->kind == DOC_SCALAR && !value->is_quoted;
    const char *what = "a whole number";
    if (kind == FIELD_MILLI) {
        what = "a number with at most three decimals";
        is_good = is_good && str_to_milli(value->text, INT64_C(1000) * INT_MAX_VALUE, out);
    } else if (kind == FIELD_INT) {
        is_good = is_good && str_to_i64(value->text, -INT_MAX_VALUE, INT64_C(1) << 40, out);
    } else {
        what = "a span of time like 90s, 5m or 1h30m, or never";
        if (is_good && str_is(value->text, "never"))
            *out = SIM_NEVER;
        else
            is_good = is_good && str_to_seconds(value->text, SPAN_MAX_S, out);
    }
    return is_good ? ERR_OK : doc_error(value, e, "%.*s: expected %s", STR_ARG(value->key), what);
}

static enum err read_bool(const struct doc *value, bool *out, struct error *e)
{
    *out = str_is(value->text, "true");
    bool is_good = value->kind == DOC_SCALAR && (*out || str_is(value->text, "false"));
    return is_good ? ERR_OK
                   : doc_error(value, e, "%.*s: expected true or false", STR_ARG(value->key));
}

static enum err read_enum(const struct doc *value, const struct enum_names *names, int64_t *out,
                          struct error *e)
{
    unsigned found = 0;
    if (value->kind != DOC_SCALAR || !enum_parse(names, value->text, &found))
        return doc_error(value, e, "%.*s: \"%.*s\" is no %s", STR_ARG(value->key),
                         STR_ARG(value->text), names->what);
    *out = found;
    return ERR_OK;
}

static enum err read_texts(const struct doc *value, struct arena *arena, struct str_list *out,
                           struct error *e)
{
    if (value->kind == DOC_MAP)
        return doc_error(value, e, "%.*s: expected a list of texts", STR_ARG(value->key));
    const struct doc *items = value->kind == DOC_LIST ? value->items : value;
    out->count = value->kind == DOC_LIST ? value->count : 1;
    out->items = arena_new(arena, out->count, sizeof(*out->items));
    enum err rc = ERR_OK;
    for (size_t i = 0; i < out->count && rc == ERR_OK; i++)
        rc = read_text(&items[i], &out->items[i], e);
    return rc;
}

static enum err read_amounts(const struct doc *value, enum field_kind kind, struct arena *arena,
                             struct amount_list *out, struct error *e)
{
    bool is_one = value->kind == DOC_SCALAR && kind == FIELD_INT;
    if (value->kind != DOC_MAP && !is_one)
        return doc_error(value, e, "%.*s: expected {NAME: number}", STR_ARG(value->key));
    const struct doc *items = is_one ? value : value->items;
    out->count = is_one ? 1 : value->count;
    out->items = arena_new(arena, out->count, sizeof(*out->items));
    enum err rc = ERR_OK;
    for (size_t i = 0; i < out->count && rc == ERR_OK; i++) {
        if (!is_one)
            out->items[i].class_name = items[i].key;
        rc = read_number(&items[i], kind, &out->items[i].value, e);
    }
    return rc;
}

static enum err read_paths(const struct doc *value, struct arena *arena,
                           struct path_amounts_list *out, struct error *e)
{
    if (value->kind != DOC_MAP)
        return doc_error(value, e, "%.*s: expected {PATH: {CLASS: number}}", STR_ARG(value->key));
    out->count = value->count;
    out->items = arena_new(arena, out->count, sizeof(*out->items));
    enum err rc = ERR_OK;
    for (size_t i = 0; i < out->count && rc == ERR_OK; i++) {
        out->items[i].path = value->items[i].key;
        rc = read_amounts(&value->items[i], FIELD_MILLI, arena, &out->items[i].amounts, e);
    }
    return rc;
}

enum err field_read(const struct doc *value, const struct field *field, struct arena *arena,
                    void *out, struct error *e)
{
    void *to = (char *)out + field->offset;
    switch (field->kind) {
    case FIELD_TEXT:
        return read_text(value, to, e);
    case FIELD_INT:
    case FIELD_MILLI:
    case FIELD_SPAN:
        return read_number(value, field->kind, to, e);
    case FIELD_BOOL:
        return read_bool(value, to, e);
    case FIELD_ENUM:
        return read_enum(value, field->names, to, e);
    case FIELD_TEXTS:
        return read_texts(value, arena, to, e);
    case FIELD_AMOUNTS:
        return read_amounts(value, FIELD_MILLI, arena, to, e);
    case FIELD_COUNTS:
        return read_amounts(value, FIELD_INT, arena, to, e);
    case FIELD_PATHS:
        return read_paths(value, arena, to, e);
    case FIELD_OTHER:
        break;
    }
    return ERR_OK;
}

static const struct field *field_named(const struct field *fields, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_is(name, fields[i].name))
            return &fields[i];
    }
    return NULL;
}

static void unset_all(const struct field *fields, size_t count, void *out)
{
    for (size_t i = 0; i < count; i++) {
        bool is_number = fields[i].kind == FIELD_INT || fields[i].kind == FIELD_MILLI ||
                         fields[i].kind == FIELD_SPAN || fields[i].kind == FIELD_ENUM;
        if (is_number)
            *(int64_t *)(void *)((char *)out + fields[i].offset) = UNSET;
    }
}

enum err fields_read(const struct doc *map, const struct field *fields, size_t count,
                     struct arena *arena, void *out, struct error *e)
{
    if (map->kind != DOC_MAP)
        return doc_error(map, e, "%.*s: expected {NAME: VALUE, ...}", STR_ARG(map->key));
    unset_all(fields, count, out);
    enum err rc = ERR_OK;
    for (size_t i = 0; i < map->count && rc == ERR_OK; i++) {
        const struct field *field = field_named(fields, count, map->items[i].key);
        if (field == NULL)
            return doc_key_error(&map->items[i], e, "is not known here");
        rc = field_read(&map->items[i], field, arena, out, e);
    }
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        if (fields[i].is_required && doc_get(map, fields[i].name) == NULL)
            rc = doc_error(map, e, "%s is missing", fields[i].name);
    }
    return rc;
}
