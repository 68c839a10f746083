/*
 * doc.h - YAML with the place of everything in it, for files that people write and that have to be
 * told where they are wrong.
 *
 * The same safe subset as manifests (wire/yaml.h): no anchors, aliases, tags or duplicate keys.
 */
#ifndef SIM_DOC_H
#define SIM_DOC_H

#include "base/str.h"

enum doc_kind { DOC_SCALAR, DOC_LIST, DOC_MAP };

struct doc {
    enum doc_kind kind;
    struct str key;    /* in a map */
    struct str text;   /* of a scalar */
    bool is_quoted;    /* a scalar that is text, whatever it looks like */
    struct doc *items; /* of a list or map, in order */
    size_t count;
    size_t line, column;         /* from 1 */
    size_t key_line, key_column; /* in a map */
};

enum { DOC_DEPTH_MAX = 32, DOC_FILES_BYTES_MAX = 64 * 1024 * 1024 };

/* All documents of a text, empty ones left out, in the arena. ERR_INVALID: "LINE:COLUMN: what". */
enum err doc_read(struct str text, struct arena *arena, struct doc **docs, size_t *count,
                  struct error *e) MUST_CHECK;
/* The value of a key of a map; NULL: it is not there. */
const struct doc *doc_get(const struct doc *map, const char *key);
/* ERR_INVALID with the place of the value, or of its key, in front. */
enum err doc_error(const struct doc *at, struct error *e, const char *fmt, ...) PRINTF(3, 4);
enum err doc_key_error(const struct doc *at, struct error *e, const char *what);

#endif
