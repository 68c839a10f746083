/*
 * yaml.h - manifests: YAML into the same trees as JSON, so that one validator serves both.
 *
 * A safe subset: no anchors, aliases, tags or merge keys, no duplicate keys, at most 64 levels.
 * Plain scalars are typed as in JSON (integers, true, false, null, else text); quoted
 * ones are text.
 */
#ifndef WIRE_YAML_H
#define WIRE_YAML_H

#include "wire/json_read.h"

enum { YAML_DEPTH_MAX = 64, YAML_BYTES_MAX = 4 * 1024 * 1024, YAML_DOCUMENTS_MAX = 1024 };

/* `*out` is an array with one item a document, the caller's to json_decref. Empty documents (only
 * comments) are left out. ERR_INVALID with line and column; ERR_LIMIT. */
enum err yaml_read(struct str text, json_t **out, struct error *e) MUST_CHECK;

#endif
