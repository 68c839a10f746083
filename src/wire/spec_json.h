/*
 * spec_json.h - bodies of requests and specs of manifests, both ways. Unknown fields are refused.
 */
#ifndef WIRE_SPEC_JSON_H
#define WIRE_SPEC_JSON_H

#include "model/command.h"
#include "model/spec.h"
#include "wire/schema.h"

extern const struct schema workload_spec_schema;    /* struct workload_spec */
extern const struct schema project_spec_schema;     /* struct project_spec */
extern const struct schema quota_spec_schema;       /* struct quota_spec */
extern const struct schema class_spec_schema;       /* struct class_spec */
extern const struct schema node_spec_schema;        /* struct node_spec */
extern const struct schema pool_spec_schema;        /* struct pool_spec */
extern const struct schema profile_spec_schema;     /* struct profile_spec */
extern const struct schema token_spec_schema;       /* struct token_spec */
extern const struct schema volume_spec_schema;      /* struct volume_spec */
extern const struct schema reservation_spec_schema; /* struct reservation_spec */
extern const struct schema whatif_spec_schema;      /* struct whatif_spec */
extern const struct schema change_spec_schema;      /* struct change_spec */
extern const struct schema image_spec_schema;       /* struct image_spec */
extern const struct schema hook_spec_schema,
    credential_spec_schema;                      /* their secrets not yet sealed */
extern const struct schema settings_spec_schema; /* struct settings_record; absent fields UNSET */
extern const struct schema target_spec_schema;   /* struct target: reason, deadline_s, is_forced */

/* Reads a request body of any of those tables into a struct of its kind. */
enum err spec_decode(const struct schema *schema, struct str body, struct arena *arena, void *spec,
                     struct error *e) MUST_CHECK;

/*
 * The canonical JSON of a workload: equal specs give equal bytes. Defaults are filled in where they
 * do not depend on a profile or the settings; what was not given is left out.
 */
struct str workload_spec_canonical(const struct workload_spec *spec, struct arena *arena);

/* Reads canonical JSON back: for an agent's payload, a resubmission, a display. ERR_CORRUPT. */
enum err workload_spec_parse(struct str json, struct arena *arena, struct workload_spec *out,
                             struct error *e) MUST_CHECK;

#endif
