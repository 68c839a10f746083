#include "unit/wire/generate.h"

#include <string.h>

#include "unit/test.h"
#include "wire/schema_private.h"

enum { LIST_MAX = 4, TEXT_MAX = 40 };

static struct str random_text(uint64_t *seed, struct arena *arena, int64_t min, int64_t max)
{
    static const char *const pieces[] = { "a",
                                          "Z",
                                          "0",
                                          "-",
                                          "_",
                                          "\"",
                                          "\\",
                                          "\n",
                                          "\t",
                                          "\x01",
                                          "\x7f",
                                          "\xc3\xa9",
                                          "\xe2\x82\xac",
                                          "/",
                                          "\xf0\x9f\x90\x9f" };
    int64_t bound = max != 0 ? MIN_OF(max, (int64_t)TEXT_MAX) : TEXT_MAX;
    size_t want = (size_t)(min + (int64_t)test_below(seed, (size_t)(bound - min + 1)));
    AUTO(buf) struct buf text = { 0 };

    while (text.size < want) {
        const char *piece = pieces[test_below(seed, COUNT_OF(pieces))];
        if (text.size + strlen(piece) > want)
            piece = "x";
        buf_add_text(&text, piece);
    }
    return str_copy(arena, buf_str(&text));
}

static int64_t random_number(uint64_t *seed, int64_t min, int64_t max)
{
    if (min == 0 && max == 0) {
        min = INT64_MIN + 1; /* INT64_MIN is UNSET */
        max = INT64_MAX;
    }
    switch (test_below(seed, 4)) {
    case 0:
        return min;
    case 1:
        return max;
    case 2:
        return min <= 0 && max >= 0 ? 0 : min;
    default:
        return (int64_t)((uint64_t)min + test_random(seed) % ((uint64_t)max - (uint64_t)min));
    }
}

static struct id random_id(uint64_t *seed)
{
    struct id id = { test_random(seed), test_random(seed) };

    return test_below(seed, 4) == 0 ? (struct id){ 0 } : id;
}

static void random_enum(uint64_t *seed, const struct field *field, void *at)
{
    unsigned value;

    do
        value = (unsigned)test_below(seed, field_name_count(field));
    while (*enum_name(field->names, value) == '\0');
    if (field->size == sizeof(int64_t))
        *(int64_t *)at = value;
    else
        *(unsigned *)at = value;
}

static size_t random_count(uint64_t *seed, const struct field *field)
{
    int64_t max = field->max != 0 ? MIN_OF(field->max, (int64_t)LIST_MAX) : LIST_MAX;

    return (size_t)(field->min + (int64_t)test_below(seed, (size_t)(max - field->min + 1)));
}

static struct str_list random_strings(uint64_t *seed, const struct field *field,
                                      struct arena *arena)
{
    struct str_list list = { .count = random_count(seed, field) };

    list.items = arena_new(arena, list.count, sizeof(*list.items));
    for (size_t i = 0; i < list.count; i++)
        list.items[i] = random_text(seed, arena, 0, field->item_max);
    return list;
}

static struct pair_list random_pairs(uint64_t *seed, const struct field *field, struct arena *arena)
{
    struct pair_list list = { .count = random_count(seed, field) };

    list.items = arena_new(arena, list.count, sizeof(*list.items));
    for (size_t i = 0; i < list.count; i++) {
        list.items[i].name = str_of(arena_format(arena, "NAME_%zu", i));
        list.items[i].value = random_text(seed, arena, 0, field->item_max);
    }
    return list;
}

static struct id_list random_ids(uint64_t *seed, const struct field *field, struct arena *arena)
{
    struct id_list list = { .count = random_count(seed, field) };

    list.items = arena_new(arena, list.count, sizeof(*list.items));
    for (size_t i = 0; i < list.count; i++)
        list.items[i] = random_id(seed);
    return list;
}

static void random_classes(uint64_t *seed, const struct field *field, void *object)
{
    int64_t *items = field_of(field, object);
    size_t count = random_count(seed, field);
    void *counter = (char *)object + field->count_offset;

    for (size_t i = 0; i < count; i++)
        items[i] = (int64_t)test_below(seed, CLASSES_MAX);
    *(size_t *)counter = count;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static struct any_list random_structs(uint64_t *seed, const struct field *field,
                                      struct arena *arena)
{
    struct any_list list = { .count = random_count(seed, field) };

    list.items = arena_new(arena, list.count, field->schema->size);
    for (size_t i = 0; i < list.count; i++)
        generate(seed, field->schema, arena, (char *)list.items + i * field->schema->size);
    return list;
}

static void random_bytes(uint64_t *seed, uint8_t *out, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)test_below(seed, 256);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static void random_value(uint64_t *seed, const struct field *field, struct arena *arena,
                         void *object)
{
    void *at = field_of(field, object);

    switch (field->kind) {
    case FIELD_STR:
        *(struct str *)at = random_text(seed, arena, field->min, field->max);
        break;
    case FIELD_RAW:
        *(struct str *)at = STR("{\"b\":[1,null,true],\"a\":\"\\u0001\"}");
        break;
    case FIELD_ID:
    case FIELD_PROJECT:
        *(struct id *)at = random_id(seed);
        if ((field->flags & FIELD_REQUIRED) != 0)
            ((struct id *)at)->lo |= 1;
        break;
    case FIELD_I64:
    case FIELD_CLASS:
    case FIELD_MONO:
        *(int64_t *)at = random_number(seed, field->min, field->max);
        break;
    case FIELD_WALL: /* PUBLIC texts know years 1970 to 2261, in milliseconds */
        *(int64_t *)at = (int64_t)test_below(seed, 9000000000000u) * NS_PER_MS;
        break;
    case FIELD_U64:
        *(uint64_t *)at = test_random(seed) >> 1;
        break;
    case FIELD_BOOL:
        *(bool *)at = test_below(seed, 2) == 0;
        break;
    case FIELD_ENUM:
        random_enum(seed, field, at);
        break;
    case FIELD_DIGEST:
    case FIELD_BYTES:
        random_bytes(seed, at, field->size);
        break;
    case FIELD_CLASS_ARRAY:
        random_classes(seed, field, object);
        break;
    case FIELD_ID_LIST:
        *(struct id_list *)at = random_ids(seed, field, arena);
        break;
    case FIELD_STR_LIST:
        *(struct str_list *)at = random_strings(seed, field, arena);
        break;
    case FIELD_PAIRS:
        *(struct pair_list *)at = random_pairs(seed, field, arena);
        break;
    case FIELD_STRUCT:
        generate(seed, field->schema, arena, at);
        break;
    case FIELD_STRUCT_LIST:
        *(struct any_list *)at = random_structs(seed, field, arena);
        break;
    case FIELD_KIND_COUNT:
        fail();
        break;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
void generate(uint64_t *seed, const struct schema *schema, struct arena *arena, void *object)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        bool is_required = (field->flags & FIELD_REQUIRED) != 0;
        bool has_unset = (field->flags & FIELD_UNSET) != 0;
        /* Enumerations have names for zero or not; leaving them alone would be neither. */
        bool is_given = is_required || field->kind == FIELD_ENUM || test_below(seed, 8) != 0;
        if (has_unset && (!is_given || test_below(seed, 2) == 0))
            *(int64_t *)field_of(field, object) = UNSET;
        else if (is_given)
            random_value(seed, field, arena, object);
    }
}
