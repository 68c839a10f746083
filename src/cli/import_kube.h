/* import_kube.h - objects of Kubernetes out of a file of them, with the lines they stand in. */
#ifndef CLI_IMPORT_KUBE_H
#define CLI_IMPORT_KUBE_H

#include "cli/import.h"
#include "wire/yaml.h"

struct kube {
    struct import *import;
    struct yaml_marks marks;
    struct str group; /* of the API whose objects are read: "kueue.x-k8s.io/" */
};

/* One object; its spec is one (`{}` when there is none). */
struct kube_object {
    const char *kind, *name, *name_space; /* name_space "" : none */
    const json_t *spec;
    size_t line;
};

typedef enum err kube_reader(struct kube *kube, const struct kube_object *object, struct error *e);

/* Calls for each object of the group, those in a List too; others are noted. */
enum err kube_each(struct kube *kube, struct str text, kube_reader *each, struct error *e)
    MUST_CHECK;

/* 8, "8", "500m" in thousandths. ERR_INVALID says what and where. */
enum err kube_milli(struct kube *kube, const json_t *value, size_t line, const char *what,
                    int64_t *out, struct error *e) MUST_CHECK;
/* A weight of 1 is 100 of ours. `value` NULL: 1. */
enum err kube_weight(struct kube *kube, const json_t *value, size_t line, int64_t *out,
                     struct error *e) MUST_CHECK;
/* Notes the fields of `object` that are not among `known`, which ends with NULL. */
void kube_note_others(struct kube *kube, const struct kube_object *of, const json_t *object,
                      const char *const *known);
/* The line of a value, or that of what holds it. */
size_t kube_line(const struct kube *kube, const json_t *value, size_t otherwise);

#endif
