/* schema_describe.c - from a table to its JSON Schema: the OpenAPI document is made of these. */
#include <assert.h>
#include <stdio.h>

#include "wire/schema_private.h"

struct describer {
    struct json_writer *w;
    enum schema_use use;
    void (*nested)(void *arg, const struct schema *schema);
    void *arg;
};

static void put_reference(const struct describer *d, const struct schema *schema)
{
    char reference[128];

    (void)snprintf(reference, sizeof(reference), "#/components/schemas/%s", schema->name);
    json_put_text(d->w, "$ref", reference);
    d->nested(d->arg, schema);
}

static void put_string(const struct describer *d, int64_t min, int64_t max)
{
    json_put_text(d->w, "type", "string");
    if (min > 0)
        json_put_i64(d->w, "minLength", min > 1 ? 1 : min); /* ours are bytes, theirs characters */
    if (max > 0)
        json_put_i64(d->w, "maxLength", max);
}

static void put_integer(const struct describer *d, int64_t min, int64_t max)
{
    json_put_text(d->w, "type", "integer");
    json_put_text(d->w, "format", "int64");
    if (min == 0 && max == 0)
        return;
    json_put_i64(d->w, "minimum", min);
    json_put_i64(d->w, "maximum", max);
}

static void put_pattern(const struct describer *d, const char *prefix, unsigned digits,
                        const char *alphabet)
{
    char pattern[96];

    (void)snprintf(pattern, sizeof(pattern), "^%s[%s]{%u}$", prefix, alphabet, digits);
    json_put_text(d->w, "type", "string");
    json_put_text(d->w, "pattern", pattern);
}

static void put_id(const struct describer *d, const struct field *field)
{
    const char *prefix = field->kind == FIELD_PROJECT ? "(ten|prj)_" : id_prefix(field->id_kind);

    put_pattern(d, prefix, ID_DIGITS, "0-9a-hjkmnp-tv-z");
}

static void put_names(const struct describer *d, const struct field *field)
{
    const struct enum_names *names = field->names;

    json_put_text(d->w, "type", "string");
    json_key(d->w, "enum");
    json_begin_array(d->w);
    for (unsigned i = 0; i < field_name_count(field); i++)
        if (*enum_name(names, i) != '\0')
            json_add_text(d->w, enum_name(names, i));
    json_end_array(d->w);
}

static void put_moment(const struct describer *d)
{
    json_put_text(d->w, "type", "string");
    json_put_text(d->w, "format", "date-time");
}

static void put_items_of(const struct describer *d, const struct field *field)
{
    json_key(d->w, "items");
    json_begin_object(d->w);
    if (field->kind == FIELD_STRUCT_LIST)
        put_reference(d, field->schema);
    else if (field->kind == FIELD_ID_LIST)
        put_id(d, field);
    else
        put_string(d, 0, field->item_max);
    json_end_object(d->w);
}

static void put_list(const struct describer *d, const struct field *field)
{
    json_put_text(d->w, "type", "array");
    if (field->min > 0)
        json_put_i64(d->w, "minItems", field->min);
    if (field->max > 0)
        json_put_i64(d->w, "maxItems", field->max);
    put_items_of(d, field);
}

static void put_pairs(const struct describer *d, const struct field *field)
{
    json_put_text(d->w, "type", "object");
    if (field->max > 0)
        json_put_i64(d->w, "maxProperties", field->max);
    json_key(d->w, "additionalProperties");
    json_begin_object(d->w);
    put_string(d, 0, field->item_max);
    json_end_object(d->w);
}

static void put_type(const struct describer *d, const struct field *field)
{
    switch (field->kind) {
    case FIELD_STR:
        put_string(d, field->min, field->max);
        break;
    case FIELD_CLASS:
        put_string(d, 0, 0);
        break;
    case FIELD_RAW:
        json_put_text(d->w, "type", "object");
        break;
    case FIELD_ID:
    case FIELD_PROJECT:
        put_id(d, field);
        break;
    case FIELD_I64:
    case FIELD_MONO:
        put_integer(d, field->min, field->max);
        break;
    case FIELD_U64:
        put_integer(d, 0, INT64_MAX);
        break;
    case FIELD_BOOL:
        json_put_text(d->w, "type", "boolean");
        break;
    case FIELD_ENUM:
        put_names(d, field);
        break;
    case FIELD_DIGEST:
    case FIELD_BYTES:
        put_pattern(d, field->kind == FIELD_DIGEST ? "(sha256:)?" : "", field->size * 2, "0-9a-f");
        break;
    case FIELD_WALL:
        put_moment(d);
        break;
    case FIELD_CLASS_ARRAY:
    case FIELD_ID_LIST:
    case FIELD_STR_LIST:
    case FIELD_STRUCT_LIST:
        put_list(d, field);
        break;
    case FIELD_PAIRS:
        put_pairs(d, field);
        break;
    case FIELD_STRUCT:
        put_reference(d, field->schema);
        break;
    case FIELD_KIND_COUNT:
        assert(!"a kind of field that does not exist");
        break;
    }
}

static bool is_shown(const struct describer *d, const struct field *field)
{
    if (d->use == SCHEMA_REQUEST)
        return true;
    return (field->flags & (FIELD_SECRET | FIELD_STORED)) == 0;
}

static bool is_always_there(const struct describer *d, const struct field *field)
{
    if (d->use == SCHEMA_REQUEST)
        return (field->flags & FIELD_REQUIRED) != 0;
    return field_is_always_public(field);
}

static void put_required(const struct describer *d, const struct schema *schema)
{
    size_t count = 0;

    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        if (!is_shown(d, field) || !is_always_there(d, field))
            continue;
        if (count++ == 0) {
            json_key(d->w, "required");
            json_begin_array(d->w);
        }
        json_add_text(d->w, field->name);
    }
    if (count > 0)
        json_end_array(d->w);
}

void schema_describe(struct json_writer *w, const struct schema *schema, enum schema_use use,
                     void (*nested)(void *arg, const struct schema *schema), void *arg)
{
    const struct describer d = { w, use, nested, arg };

    json_begin_object(w);
    json_put_text(w, "type", "object");
    json_put_text(w, "description", schema->doc);
    json_key(w, "properties");
    json_begin_object(w);
    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        if (!is_shown(&d, field))
            continue;
        json_key(w, field->name);
        json_begin_object(w);
        put_type(&d, field);
        if (field->doc != NULL)
            json_put_text(w, "description", field->doc);
        json_end_object(w);
    }
    json_end_object(w);
    put_required(&d, schema);
    if (use == SCHEMA_REQUEST)
        json_put_bool(w, "additionalProperties", false);
    json_end_object(w);
}
