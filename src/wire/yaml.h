/*
 * yaml.h - manifests: YAML into the same trees as JSON, so that one validator serves both.
 *
 * A safe subset: no anchors, aliases, tags or merge keys, no duplicate keys, at most 64 levels.
 * Plain scalars are typed as in JSON (integers, true, false, null, else text); quoted
 * ones are text.
 */
#ifndef WIRE_YAML_H
#define WIRE_YAML_H

#include "base/map.h"
#include "wire/json_read.h"

enum { YAML_DEPTH_MAX = 64, YAML_BYTES_MAX = 4 * 1024 * 1024, YAML_DOCUMENTS_MAX = 10000 };

/* `*out` is an array with one item a document, the caller's to json_decref. Empty documents (only
 * comments) are left out. ERR_INVALID with line and column; ERR_LIMIT. */
enum err yaml_read(struct str text, json_t **out, struct error *e) MUST_CHECK;

/* Where values of the tree stand, for what is to be said of them. All-zero is empty. */
struct yaml_marks {
    struct id_map lines;
};
void yaml_marks_done(struct yaml_marks *marks);
DEFINE_CLEANUP_AT(yaml_marks, struct yaml_marks, yaml_marks_done)
/* From 1; 0: not known (true, false and null are nowhere, and so are values made since). */
size_t yaml_line(const struct yaml_marks *marks, const json_t *value);
/* As yaml_read, and notes the lines; they are good as long as the tree is. */
enum err yaml_read_marked(struct str text, json_t **out, struct yaml_marks *marks, struct error *e)
    MUST_CHECK;

#endif
