/* check.c - what handlers share: bounds of fields, and finding the objects that a command names. */
#include <string.h>

#include "core/decide.h"

enum err decide_match(const struct decision *d, uint64_t version, struct error *e)
{
    uint64_t seen = d->command->if_match;
    if (seen == 0 || seen == version)
        return ERR_OK;
    return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                     "changed since it was read; read it again"); /* versions are not for tenants */
}

bool digest_is_none(const struct digest *digest)
{
    static const struct digest none;
    return memcmp(digest, &none, sizeof(none)) == 0;
}

static bool is_name_char(char c, bool is_inside)
{
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        return true;
    return is_inside && (c == '-' || c == '.' || c == '_');
}

/* Where a name or an id will do, the id goes first: nobody would be found by such a name. */
static bool is_like_an_id(struct str name)
{
    bool is_one = false;
    for (int kind = 0; kind < ID_KIND_COUNT && !is_one; kind++)
        is_one = id_is_kind((enum id_kind)kind, name);
    return is_one;
}

enum err check_name(struct str name, const char *field, struct error *e)
{
    if (name.size == 0)
        return err_field(e, field, "%s is missing", field);
    bool is_good = name.size <= NAME_MAX_BYTES;
    for (size_t i = 0; i < name.size && is_good; i++)
        is_good = is_name_char(name.data[i], i > 0 && i + 1 < name.size);
    if (!is_good)
        return err_field(e, field, "%s: use at most %d lower-case letters, digits and - . _ inside",
                         field, NAME_MAX_BYTES);
    if (is_like_an_id(name))
        return err_field(e, field, "%s: has the form of an id; choose a name", field);
    return ERR_OK;
}

enum err check_text(struct str text, size_t max, const char *field, struct error *e)
{
    if (text.size > max)
        return err_field(e, field, "%s is longer than %zu bytes", field, max);
    if (!str_is_text(text))
        return err_field(e, field, "%s is not printable UTF-8", field);
    return ERR_OK;
}

enum err check_ranges(const struct range *ranges, size_t count, struct error *e)
{
    for (size_t i = 0; i < count; i++) {
        const struct range *r = &ranges[i];
        if (r->value == UNSET || (r->value >= r->min && r->value <= r->max))
            continue;
        return err_field(e, r->field, "%s: %lld is not in %lld..%lld", r->field,
                         (long long)r->value, (long long)r->min, (long long)r->max);
    }
    return ERR_OK;
}

static struct project *project_named(const struct state *state, struct str name)
{
    struct id id;
    if (id_parse(ID_PROJECT, name, &id) || id_parse(ID_TENANT, name, &id))
        return state_project(state, id);
    return state_project_by_path(state, name);
}

enum err find_project(const struct decision *d, struct str name, const char *field,
                      struct project **out, struct error *e)
{
    if (name.size == 0)
        return err_field(e, field, "%s is missing; give a path such as amber/vision", field);
    struct project *project = project_named(d->state, name);
    if (project == NULL || !decide_permits(d, project->tenant->r.id))
        return not_found(e, "project", name);
    *out = project;
    return ERR_OK;
}

enum err find_tenant(const struct decision *d, struct str name, struct project **out,
                     struct error *e)
{
    struct project *project = NULL;
    if (name.size == 0 && !id_is_none(d->actor.tenant))
        project = state_project(d->state, d->actor.tenant);
    else if (name.size == 0)
        return err_field(e, "tenant", "tenant is missing; name the tenant it is for");
    else
        project = project_named(d->state, name);
    if (project == NULL || project->parent != NULL || !decide_permits(d, project->r.id))
        return not_found(e, "tenant", name);
    *out = project;
    return ERR_OK;
}

enum err find_class(const struct decision *d, struct str name, const char *field,
                    struct class_object **out, struct error *e)
{
    struct class_object *class = state_class_by_name(d->state, name);
    if (class == NULL) {
        enum err rc = not_found(e, "class", name);
        size_t size = strlen(field) + 1;
        if (e != NULL && size <= sizeof(e->field))
            memcpy(e->field, field, size);
        return rc;
    }
    *out = class;
    return ERR_OK;
}

enum err resolve_classes(const struct decision *d, const struct str_list *names,
                         struct request *request, struct error *e)
{
    if (names->count > REQUEST_CLASSES_MAX)
        return err_field(e, "classes", "classes: name at most %d", REQUEST_CLASSES_MAX);
    request->class_count = 0;
    for (size_t i = 0; i < names->count; i++) {
        struct class_object *class = NULL;
        enum err rc = find_class(d, names->items[i], "classes", &class, e);
        if (rc != ERR_OK)
            return rc;
        for (size_t k = 0; k < request->class_count; k++) {
            if (request->class_numbers[k] == class->r.number)
                return err_field(e, "classes", "classes: %.*s is named twice",
                                 STR_ARG(names->items[i]));
        }
        request->class_numbers[request->class_count++] = class->r.number;
    }
    return ERR_OK;
}

static enum err check_device_fields(const struct request *r, struct error *e)
{
    char text[MILLI_TEXT_MAX];
    bool has_devices = r->devices > 0 || r->share_milli > 0;
    bool has_profile = r->mig_profile != MIG_ANY;
    if ((r->gpu_milli > 0) + (r->gpu_memory_mib > 0) + has_devices + has_profile > 1)
        return err_field(
            e, "gpu_milli",
            "give only one of --gpus (gpu_milli), --gpu-memory (gpu_memory_mib), --mig-profile"
            " (mig_profile), and --devices (devices with share_milli)");
    if (has_devices && (r->devices == 0 || r->share_milli == 0))
        return err_field(e, "devices", "devices and share_milli belong together; give both");
    if (r->gpu_milli > 1000 && r->gpu_milli % 1000 != 0)
        return err_field(e, "gpu_milli",
                         "gpu_milli: %s devices are more than one and not a whole number of them;"
                         " ask for a part of one, or for whole ones",
                         milli_text(r->gpu_milli, text));
    return ERR_OK;
}

enum err check_request(const struct request *r, struct error *e)
{
    const struct range ranges[] = {
        { "gpu_milli", r->gpu_milli, 0, ALLOCATION_DEVICES_MAX * 1000 },
        { "gpu_memory_mib", r->gpu_memory_mib, 0, INT64_C(1) << 32 },
        { "devices", r->devices, 0, ALLOCATION_DEVICES_MAX },
        { "share_milli", r->share_milli, 0, 1000 },
        { "mig_profile", (int64_t)r->mig_profile, 0, MIG_NAME_COUNT - 1 },
        { "cpu_milli", r->cpu_milli, 0, MEMBER_CPU_MILLI_MAX },
        { "memory_mib", r->memory_mib, 0, MEMBER_MEMORY_MIB_MAX },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    if (rc != ERR_OK)
        return rc;
    if (r->cpu_milli > 0 && r->cpu_milli < MEMBER_CPU_MILLI_MIN)
        return err_field(
            e, "cpu_milli",
            "cpu_milli: %lld is too little to run; ask for %d at least, or leave it out",
            (long long)r->cpu_milli, MEMBER_CPU_MILLI_MIN);
    return check_device_fields(r, e);
}
