/* schema_write.c - from structs to JSON: one loop over a table. */
#include <assert.h>
#include <string.h>

#include "model/record.h"
#include "wire/hidden.h"
#include "wire/schema_private.h"

static bool is_zero(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < size; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/* Nothing to say: what the decoder makes of an absent field. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static bool is_empty(const struct field *field, const void *object)
{
    const void *at = field_in(field, object);

    if ((field->flags & FIELD_UNSET) != 0)
        return *(const int64_t *)at == UNSET;
    switch (field->kind) {
    case FIELD_STR:
    case FIELD_RAW:
        return ((const struct str *)at)->size == 0;
    case FIELD_ENUM:
        return *enum_name(field->names, field_enum(field, object)) == '\0' ||
               ((field->flags & FIELD_SPARSE) != 0 && field_enum(field, object) == 0);
    case FIELD_CLASS_ARRAY:
        return field_count(field, object) == 0;
    case FIELD_ID_LIST:
    case FIELD_STR_LIST:
    case FIELD_PAIRS:
    case FIELD_STRUCT_LIST:
        return ((const struct any_list *)at)->count == 0;
    case FIELD_STRUCT:
        for (size_t i = 0; i < field->schema->count; i++)
            if (!is_empty(&field->schema->fields[i], at))
                return false;
        return true;
    case FIELD_ID:
    case FIELD_PROJECT:
    case FIELD_I64:
    case FIELD_U64:
    case FIELD_BOOL:
    case FIELD_DIGEST:
    case FIELD_BYTES:
    case FIELD_WALL:
    case FIELD_MONO:
    case FIELD_CLASS:
        return is_zero(at, field->size);
    case FIELD_KIND_COUNT:
        break;
    }
    assert(!"a kind of field that does not exist");
    return true;
}

static bool is_left_out(const struct field *field, const void *object, enum wire_form form)
{
    if (form == WIRE_PUBLIC && (field->flags & (FIELD_SECRET | FIELD_STORED)) != 0)
        return true;
    if ((field->flags & FIELD_UNSET) != 0)
        return *(const int64_t *)field_in(field, object) == UNSET;
    if ((field->flags & FIELD_REQUIRED) != 0 && !zero_is_absence(field->kind))
        return false;
    if (form == WIRE_STORED || (field->flags & FIELD_SPARSE) != 0 || zero_is_absence(field->kind))
        return is_empty(field, object);
    return false;
}

struct encoder {
    struct json_writer *w;
    enum wire_form form;
    const struct wire_names *names; /* NULL: numbers stay numbers */
};

static void encode_id(const struct encoder *c, enum id_kind kind, struct id id)
{
    char text[ID_TEXT_MAX];

    json_add_text(c->w, id_text(kind, id, text));
}

static void encode_project(const struct encoder *c, struct id id)
{
    bool is_tenant = c->form == WIRE_PUBLIC && c->names != NULL && c->names->is_tenant != NULL &&
                     c->names->is_tenant(c->names->arg, id);

    encode_id(c, is_tenant ? ID_TENANT : ID_PROJECT, id);
}

static void encode_class(const struct encoder *c, int64_t number)
{
    struct str name = { 0 };

    if (c->form == WIRE_PUBLIC && c->names != NULL && c->names->class_name != NULL)
        name = c->names->class_name(c->names->arg, number);
    if (name.size > 0)
        json_add_str(c->w, name);
    else
        json_add_i64(c->w, number);
}

static void encode_hex(const struct encoder *c, const uint8_t *bytes, size_t size)
{
    char text[2 * 64 + 1];

    assert(size <= 64);
    hex_encode(bytes, size, text);
    json_add_text(c->w, text);
}

static void encode_wall(const struct encoder *c, struct wall at)
{
    char text[WALL_TEXT_MAX];

    if (c->form == WIRE_PUBLIC)
        json_add_text(c->w, wall_text(at, text));
    else
        json_add_i64(c->w, at.ns);
}

static void encode_number(const struct encoder *c, const struct field *field, uint64_t number)
{
    bool is_hidden =
        c->form == WIRE_PUBLIC && c->names != NULL && (field->flags & FIELD_HIDDEN) != 0;
    json_add_u64(c->w, is_hidden ? hidden_of(c->names->hide_key, number) : number);
}

static void encode_classes(const struct encoder *c, const int64_t *numbers, size_t count)
{
    json_begin_array(c->w);
    for (size_t i = 0; i < count; i++)
        encode_class(c, numbers[i]);
    json_end_array(c->w);
}

static void encode_ids(const struct encoder *c, enum id_kind kind, const struct id_list *list)
{
    json_begin_array(c->w);
    for (size_t i = 0; i < list->count; i++)
        encode_id(c, kind, list->items[i]);
    json_end_array(c->w);
}

static void encode_strings(const struct encoder *c, const struct str_list *list)
{
    json_begin_array(c->w);
    for (size_t i = 0; i < list->count; i++)
        json_add_str(c->w, list->items[i]);
    json_end_array(c->w);
}

static void encode_pairs(const struct encoder *c, const struct pair_list *list)
{
    json_begin_object(c->w);
    for (size_t i = 0; i < list->count; i++) {
        json_key_str(c->w, list->items[i].name);
        json_add_str(c->w, list->items[i].value);
    }
    json_end_object(c->w);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static void encode_structs(const struct encoder *c, const struct field *field,
                           const struct any_list *list)
{
    json_begin_array(c->w);
    for (size_t i = 0; i < list->count; i++)
        schema_encode(c->w, field->schema, (const char *)list->items + i * field->schema->size,
                      c->form, c->names);
    json_end_array(c->w);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static void encode_value(const struct encoder *c, const struct field *field, const void *object)
{
    const void *at = field_in(field, object);

    switch (field->kind) {
    case FIELD_STR:
        json_add_str(c->w, *(const struct str *)at);
        break;
    case FIELD_RAW:
        json_add_raw(c->w, *(const struct str *)at);
        break;
    case FIELD_ID:
        encode_id(c, field->id_kind, *(const struct id *)at);
        break;
    case FIELD_PROJECT:
        encode_project(c, *(const struct id *)at);
        break;
    case FIELD_I64:
    case FIELD_MONO:
        json_add_i64(c->w, *(const int64_t *)at);
        break;
    case FIELD_U64:
        encode_number(c, field, *(const uint64_t *)at);
        break;
    case FIELD_BOOL:
        json_add_bool(c->w, *(const bool *)at);
        break;
    case FIELD_ENUM:
        json_add_text(c->w, enum_name(field->names, field_enum(field, object)));
        break;
    case FIELD_DIGEST:
    case FIELD_BYTES:
        encode_hex(c, at, field->size);
        break;
    case FIELD_WALL:
        encode_wall(c, *(const struct wall *)at);
        break;
    case FIELD_CLASS:
        encode_class(c, *(const int64_t *)at);
        break;
    case FIELD_CLASS_ARRAY:
        encode_classes(c, at, field_count(field, object));
        break;
    case FIELD_ID_LIST:
        encode_ids(c, field->id_kind, at);
        break;
    case FIELD_STR_LIST:
        encode_strings(c, at);
        break;
    case FIELD_PAIRS:
        encode_pairs(c, at);
        break;
    case FIELD_STRUCT:
        schema_encode(c->w, field->schema, at, c->form, c->names);
        break;
    case FIELD_STRUCT_LIST:
        encode_structs(c, field, at);
        break;
    case FIELD_KIND_COUNT:
        assert(!"a kind of field that does not exist");
        break;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
void schema_encode(struct json_writer *w, const struct schema *schema, const void *object,
                   enum wire_form form, const struct wire_names *names)
{
    const struct encoder c = { w, form, names };

    json_begin_object(w);
    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        if (is_left_out(field, object, form))
            continue;
        json_key(w, field->name);
        encode_value(&c, field, object);
    }
    json_end_object(w);
}
