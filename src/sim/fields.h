/*
 * fields.h - maps of a document into structs, by tables: a field's name, where it goes and of which
 * kind it is. Everything that is not in the table is an error with its place.
 */
#ifndef SIM_FIELDS_H
#define SIM_FIELDS_H

#include "model/kinds.h"
#include "model/record.h"
#include "sim/doc.h"

enum field_kind {
    FIELD_TEXT,    /* struct str */
    FIELD_INT,     /* int64_t */
    FIELD_MILLI,   /* int64_t; decimal with three places, in thousandths */
    FIELD_SPAN,    /* int64_t seconds: 10s, 5m, 1h30m; `never` where `max` is INT64_MAX */
    FIELD_BOOL,    /* bool */
    FIELD_ENUM,    /* int64_t, out of `names` */
    FIELD_TEXTS,   /* struct str_list; one text alone is a list of one */
    FIELD_AMOUNTS, /* struct amount_list: {CLASS: decimal}, in thousandths */
    FIELD_COUNTS,  /* struct amount_list: {NAME: integer}; of one number alone the name is empty */
    FIELD_PATHS,   /* struct path_amounts_list: {PATH: {CLASS: decimal}} */
    FIELD_OTHER,   /* read by the caller */
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    const struct enum_names *names; /* FIELD_ENUM */
    bool is_required;
};

#define FIELD(struct_name, member, kind_name)                                                      \
    {                                                                                              \
        .name = #member, .kind = FIELD_##kind_name, .offset = offsetof(struct struct_name, member) \
    }
#define FIELD_AS(struct_name, text, member, kind_name)                                             \
    {                                                                                              \
        .name = (text), .kind = FIELD_##kind_name, .offset = offsetof(struct struct_name, member)  \
    }

/* Integers and spans that are not there become UNSET; the rest stays as it was. */
enum err fields_read(const struct doc *map, const struct field *fields, size_t count,
                     struct arena *arena, void *out, struct error *e) MUST_CHECK;
/* One value. */
enum err field_read(const struct doc *value, const struct field *field, struct arena *arena,
                    void *out, struct error *e) MUST_CHECK;

#endif
