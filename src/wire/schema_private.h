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

#endif
