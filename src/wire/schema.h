/*
 * schema.h - one table a struct says how it looks as JSON; everything else is generic.
 *
 * The tables are the single source for event bodies, records in snapshots, request
 * bodies, resources of the API, messages of agents, and the schemas of the OpenAPI
 * document. Two views of one table:
 *
 *   STORED  for the journal, snapshots and agents: exact (times in ns, class numbers), secrets
 *           included, what is zero or empty left out.
 *   PUBLIC  for people and programs: times in RFC 3339, names of classes instead of numbers, secrets
 *           left out, all fields there (except FIELD_SPARSE ones that are empty).
 *
 * JSON names are the names of the C members; the few that differ say so in their row.
 */
#ifndef WIRE_SCHEMA_H
#define WIRE_SCHEMA_H

#include "base/id.h"
#include "model/kinds.h"
#include "wire/json_cursor.h"
#include "wire/json_read.h"
#include "wire/json_writer.h"

enum field_kind {
    FIELD_STR,         /* struct str; min..max bytes */
    FIELD_RAW,         /* struct str that is JSON already; max bytes */
    FIELD_ID,          /* struct id of `id_kind`; none is left out */
    FIELD_PROJECT,     /* struct id of a project, or of a tenant */
    FIELD_I64,         /* int64_t, min..max */
    FIELD_U64,         /* uint64_t */
    FIELD_BOOL,        /* bool */
    FIELD_ENUM,        /* an enum, or an int64_t that may be UNSET: a name out of `names` */
    FIELD_DIGEST,      /* struct digest: hexadecimal; zero is left out */
    FIELD_BYTES,       /* uint8_t[size]: hexadecimal */
    FIELD_WALL,        /* struct wall; 0 is left out */
    FIELD_MONO,        /* struct mono, in ns; 0 is left out */
    FIELD_CLASS,       /* int64_t number of a class; PUBLIC: its name */
    FIELD_CLASS_ARRAY, /* int64_t[max] of those, and a size_t */
    FIELD_ID_LIST,     /* struct id_list; at most max */
    FIELD_STR_LIST,    /* struct str_list; at most max items of at most item_max bytes */
    FIELD_PAIRS,       /* struct pair_list: an object of strings; bounds as for lists */
    FIELD_STRUCT,      /* a struct inside, of `schema` */
    FIELD_STRUCT_LIST, /* struct { T *items; size_t count; }; T of `schema`, at most max */
    FIELD_KIND_COUNT
};

enum field_flag {
    FIELD_REQUIRED = 1 << 0, /* decoding fails without it */
    FIELD_SECRET = 1 << 1,   /* never in a PUBLIC form */
    FIELD_UNSET = 1 << 2,    /* absent: UNSET, and UNSET is left out */
    FIELD_SPARSE = 1 << 3,   /* PUBLIC: left out when zero or empty */
    FIELD_STORED = 1 << 4,   /* only in STORED forms */
    FIELD_HIDDEN = 1 << 5    /* FIELD_U64 that counts for everybody: see wire/hidden.h */
};

struct schema;

struct field {
    const char *name;
    enum field_kind kind;
    unsigned flags;
    uint32_t offset;
    uint32_t count_offset; /* of the size_t of FIELD_CLASS_ARRAY */
    uint32_t size;         /* of the member */
    int64_t min, max; /* of numbers, bytes of strings, items of lists; both 0: the kind's own */
    int64_t item_max; /* bytes of one string in a list */
    enum id_kind id_kind;
    const struct enum_names *names;
    const struct schema *schema;
    const char *doc; /* one line for the OpenAPI document; may be NULL */
};

/* How many names a FIELD_ENUM takes, of the first: all, or `max`. What is not there yet is neither
 * accepted nor described. */
static inline size_t field_name_count(const struct field *field)
{
    return field->max > 0 ? (size_t)field->max : field->names->count;
}

struct schema {
    const char *name; /* "Workload": its name in the OpenAPI document */
    const char *doc;
    size_t size; /* of the struct */
    const struct field *fields;
    size_t count;
};

/*
 * How rows are written: `#define OF struct thing`, then { F(STR, name), .max = 63 }. F_AS gives the
 * JSON name where it differs from the member's; F_ARRAY is for arrays inside of the struct.
 */
#define F_AS(json_name, kind_, member)                                                             \
    .name = (json_name), .kind = FIELD_##kind_, .offset = (uint32_t)offsetof(OF, member),          \
    .size = (uint32_t)sizeof(((OF *)0)->member)
#define F(kind_, member) F_AS(#member, kind_, member)
#define F_ARRAY(json_name, kind_, member, counter)                                                 \
    F_AS(json_name, kind_, member), .count_offset = (uint32_t)offsetof(OF, counter),               \
                                    .max = (int64_t)COUNT_OF(((OF *)0)->member)
#define SCHEMA(title, rows, about)                                                                 \
    {                                                                                              \
        .name = (title), .doc = (about), .size = sizeof(OF), .fields = (rows),                     \
        .count = COUNT_OF(rows)                                                                    \
    }

/* What only the state knows and PUBLIC forms want. All-zero: numbers stay numbers. */
struct wire_names {
    const void *arg;                                           /* borrowed */
    struct str (*class_name)(const void *arg, int64_t number); /* empty: unknown */
    bool (*is_tenant)(const void *arg, struct id id);
    const uint8_t *hide_key; /* borrowed; a tenant reads: FIELD_HIDDEN numbers are hidden with it */
};

enum wire_form { WIRE_STORED, WIRE_PUBLIC };

/* Writes `object`, a struct described by `schema`, as one JSON object. */
void schema_encode(struct json_writer *w, const struct schema *schema, const void *object,
                   enum wire_form form, const struct wire_names *names);

enum unknown_fields { UNKNOWN_REFUSED, UNKNOWN_IGNORED };

/*
 * Reads a JSON object into `object`. Absent fields stay what they were (start from a zeroed struct,
 * or from present values for a patch), except FIELD_UNSET ones, which become UNSET. Strings and
 * lists live in the arena. ERR_INVALID with the path of the field ("depends_on[3].workload")
 * otherwise; then `object` is in an unspecified state.
 */
enum err schema_decode(const struct schema *schema, const json_t *json, enum unknown_fields unknown,
                       struct arena *arena, void *object, struct error *e) MUST_CHECK;
/* The same from text: the way that costs no tree. */
enum err schema_decode_text(const struct schema *schema, struct str text,
                            enum unknown_fields unknown, struct arena *arena, void *object,
                            struct error *e) MUST_CHECK;

/* The same of the value at the cursor, which then stands behind it. */
enum err schema_decode_at(const struct schema *schema, struct json_cursor *c,
                          enum unknown_fields unknown, struct arena *arena, void *object,
                          struct error *e) MUST_CHECK;

/* Writes the JSON Schema (2020-12) of a table's PUBLIC or request form; nested tables are written
 * as references to "#/components/schemas/NAME" and passed to `nested`, once for every mention. */
enum schema_use { SCHEMA_ANSWER, SCHEMA_REQUEST };
void schema_describe(struct json_writer *w, const struct schema *schema, enum schema_use use,
                     void (*nested)(void *arg, const struct schema *schema), void *arg);

#endif
