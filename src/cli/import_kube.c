#include "cli/import_kube.h"

#include <string.h>

enum { WEIGHT_MAX = 1000000, WEIGHT_MILLI_OF_ONE = 10 };

size_t kube_line(const struct kube *kube, const json_t *value, size_t otherwise)
{
    size_t line = value != NULL ? yaml_line(&kube->marks, value) : 0;
    return line != 0 ? line : otherwise;
}

enum err kube_milli(struct kube *kube, const json_t *value, size_t line, const char *what,
                    int64_t *out, struct error *e)
{
    bool is_good = false;
    if (json_is_integer(value)) {
        int64_t whole = json_integer_value(value);
        is_good = whole >= 0 && whole <= IMPORT_MILLI_MAX / 1000;
        if (is_good)
            *out = whole * 1000;
    } else if (json_is_string(value)) {
        is_good = import_milli(str_of(json_string_value(value)), out);
    }
    if (is_good)
        return ERR_OK;
    return err_set(e, ERR_INVALID, "line %zu: %s is not an amount such as 8, 0.5 or 500m",
                   kube_line(kube, value, line), what);
}

enum err kube_weight(struct kube *kube, const json_t *value, size_t line, int64_t *out,
                     struct error *e)
{
    int64_t milli = 1000;
    enum err rc = ERR_OK;
    if (value != NULL && !json_is_null(value))
        rc = kube_milli(kube, value, line, "the weight", &milli, e);
    if (rc == ERR_OK)
        *out = MIN_OF(milli / WEIGHT_MILLI_OF_ONE, (int64_t)WEIGHT_MAX);
    return rc;
}

void kube_note_others(struct kube *kube, const struct kube_object *of, const json_t *object,
                      const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const char *const *at = known;
        while (*at != NULL && strcmp(*at, key) != 0)
            at++;
        bool is_empty =
            (json_is_object(value) && json_object_size(value) == 0) || json_is_null(value);
        if (*at == NULL && !is_empty)
            import_note(kube->import, kube_line(kube, value, of->line), "%s %s: %s", of->kind,
                        of->name, key);
    }
}

static enum err one_object(struct kube *kube, const json_t *json, size_t number, kube_reader *each,
                           struct error *e)
{
    const json_t *metadata = json_object_get(json, "metadata");
    const char *group = json_string_value(json_object_get(json, "apiVersion"));
    struct kube_object object = {
        .kind = json_string_value(json_object_get(json, "kind")),
        .name = json_string_value(json_object_get(metadata, "name")),
        .name_space = json_string_value(json_object_get(metadata, "namespace")),
        .spec = json_object_get(json, "spec"),
        .line = kube_line(kube, json, 0),
    };
    if (object.kind == NULL || group == NULL)
        return err_set(e, ERR_INVALID, "line %zu: object %zu has no kind or no apiVersion",
                       object.line, number);
    if (!str_starts(str_of(group), kube->group)) {
        import_note(kube->import, object.line, "%s of %s: not looked at", object.kind, group);
        return ERR_OK;
    }
    if (object.name == NULL || object.name[0] == '\0')
        return err_set(e, ERR_INVALID, "line %zu: metadata.name of this %s is missing", object.line,
                       object.kind);
    if (object.spec != NULL && !json_is_null(object.spec) && !json_is_object(object.spec))
        return err_set(e, ERR_INVALID, "line %zu: spec of %s %s is no mapping",
                       kube_line(kube, object.spec, object.line), object.kind, object.name);
    if (object.name_space == NULL)
        object.name_space = "";
    return each(kube, &object, e);
}

/* "List", "QueueList". */
static bool is_list_kind(const char *kind)
{
    size_t size = kind != NULL ? strlen(kind) : 0;
    return size >= 4 && strcmp(kind + size - 4, "List") == 0;
}

static enum err all_objects(struct kube *kube, const json_t *documents, kube_reader *each,
                            struct error *e)
{
    enum err rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < json_array_size(documents); i++) {
        const json_t *document = json_array_get(documents, i);
        const json_t *items = json_object_get(document, "items");
        const char *kind = json_string_value(json_object_get(document, "kind"));
        bool is_list = is_list_kind(kind) && json_is_array(items);
        if (!is_list) {
            rc = one_object(kube, document, i + 1, each, e);
            continue;
        }
        for (size_t k = 0; rc == ERR_OK && k < json_array_size(items); k++)
            rc = one_object(kube, json_array_get(items, k), k + 1, each, e);
    }
    return rc;
}

enum err kube_each(struct kube *kube, struct str text, kube_reader *each, struct error *e)
{
    AUTO(json) json_t *documents = NULL;
    enum err rc = yaml_read_marked(text, &documents, &kube->marks, e);
    if (rc == ERR_OK)
        rc = all_objects(kube, documents, each, e);
    yaml_marks_done(&kube->marks);
    return rc;
}
