/* schema_private.h - how the two directions of schema.h reach into structs. For wire/ only. */
#ifndef WIRE_SCHEMA_PRIVATE_H
#define WIRE_SCHEMA_PRIVATE_H

#include "model/record.h"
#include "wire/schema.h"

/* What every { T *items; size_t count; } looks like. */
struct any_list {
    void *items;
    size_t count;
};

static inline const void *field_in(const struct field *field, const void *object)
{
    return (const char *)object + field->offset;
}

static inline void *field_of(const struct field *field, void *object)
{
    return (char *)object + field->offset;
}

/* Of the arrays inside of a struct. */
static inline size_t field_count(const struct field *field, const void *object)
{
    const void *at = (const char *)object + field->count_offset;

    return *(const size_t *)at;
}

/* An enumeration is an int in records and an int64_t in specs. */
static inline unsigned field_enum(const struct field *field, const void *object)
{
    const void *at = field_in(field, object);

    if (field->size == sizeof(int64_t))
        return (unsigned)*(const int64_t *)at;
    return *(const unsigned *)at;
}

/* Kinds whose zero is no value at all, so that even PUBLIC forms leave them out. */
static inline bool zero_is_absence(enum field_kind kind)
{
    return kind == FIELD_RAW || kind == FIELD_ID || kind == FIELD_PROJECT || kind == FIELD_ENUM ||
           kind == FIELD_DIGEST || kind == FIELD_WALL || kind == FIELD_MONO;
}

/* In every PUBLIC form, whatever the value. */
static inline bool field_is_always_public(const struct field *field)
{
    const unsigned never = FIELD_SECRET | FIELD_STORED | FIELD_SPARSE | FIELD_UNSET;

    return (field->flags & never) == 0 && !zero_is_absence(field->kind);
}

#endif
