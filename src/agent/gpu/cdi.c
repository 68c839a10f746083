/*
 * Specs are parsed once and kept as JSON; edits are read out of it when a device is asked
 * for. Every path in a spec must be absolute and free of "..", whoever wrote it: a slip there
 * is a hole in a tenant's wall.
 */
#include "agent/gpu/cdi.h"

#include <assert.h>
#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/file.h"

enum {
    SPEC_BYTES_MAX = 1 << 20,
    SPECS_MAX = 256,
    LIST_MAX = 4096, /* entries of any list in a spec */
    TEXT_MAX = 8192,
    ALLOWED_MAX = 16,
    PROBLEMS_MAX = 64,
};

static const char *const usual_directories[] = { "/etc/cdi", "/run/cdi" };

struct spec {
    json_t *json;     /* owned */
    const char *kind; /* borrowed from json: "nvidia.com/gpu" */
};

struct cdi {
    struct spec specs[SPECS_MAX]; /* later ones win */
    size_t spec_count;
    char *allowed_hooks[ALLOWED_MAX]; /* owned */
    size_t allowed_count;
    char *problems[PROBLEMS_MAX]; /* owned */
    size_t problem_count;
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* Reading a spec ------------------------------------------------------------------------------- */

static enum err check_spec(const json_t *json, struct error *e)
{
    const char *kind = text_of(json, "kind");
    const json_t *devices = json_object_get(json, "devices");
    const char *slash = strchr(kind, '/');
    if (text_of(json, "cdiVersion")[0] == '\0')
        return err_set(e, ERR_INVALID, "it has no cdiVersion");
    if (slash == NULL || slash == kind || slash[1] == '\0' || strlen(kind) > 200)
        return err_set(e, ERR_INVALID, "its kind \"%.64s\" is not VENDOR/CLASS", kind);
    if (!json_is_array(devices) || json_array_size(devices) > LIST_MAX)
        return err_set(e, ERR_INVALID, "it has no list of at most %d devices", LIST_MAX);
    for (size_t i = 0; i < json_array_size(devices); i++) {
        if (text_of(json_array_get(devices, i), "name")[0] == '\0')
            return err_set(e, ERR_INVALID, "device %zu has no name", i);
    }
    return ERR_OK;
}

static enum err read_spec(struct cdi *cdi, const char *path, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    enum err rc = file_read(path, SPEC_BYTES_MAX, &text, e);
    if (rc != ERR_OK)
        return rc;
    json_error_t why;
    json_t *json =
        json_loadb(text.data != NULL ? text.data : "", text.size, JSON_REJECT_DUPLICATES, &why);
    if (json == NULL)
        return err_set(e, ERR_INVALID, "line %d: %s", why.line, why.text);
    rc = cdi->spec_count == SPECS_MAX ? err_set(e, ERR_LIMIT, "there are too many specs")
                                      : check_spec(json, e);
    if (rc != ERR_OK) {
        json_decref(json);
        return rc;
    }
    cdi->specs[cdi->spec_count++] = (struct spec){ json, text_of(json, "kind") };
    return ERR_OK;
}

static void note_problem(struct cdi *cdi, const char *path, const struct error *why)
{
    if (cdi->problem_count == PROBLEMS_MAX)
        return;
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "%s: %s", path, why->text);
    cdi->problems[cdi->problem_count++] = mem_strdup(text.data);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_json_file(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".json") == 0;
}

/* In the order of names, so that what wins does not depend on the file system. */
static void read_directory(struct cdi *cdi, const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, is_json_file, compare_names);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct error why = { 0 };
        if (snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name) <
                (int)sizeof(path) &&
            read_spec(cdi, path, &why) != ERR_OK)
            note_problem(cdi, path, &why);
        mem_free(entries[i]);
    }
    mem_free(entries);
}

enum err cdi_open(struct cdi **out, const struct cdi_options *options, struct error *e)
{
    if (options->allowed_hook_count > ALLOWED_MAX)
        return err_set(e, ERR_LIMIT, "more than %d hooks are allowed", ALLOWED_MAX);
    AUTO(cdi) struct cdi *cdi = mem_new(1, sizeof(*cdi));
    for (size_t i = 0; i < options->allowed_hook_count; i++) {
        if (!edit_path_is_safe(options->allowed_hooks[i]))
            return err_set(e, ERR_INVALID, "the allowed hook \"%.100s\" is no absolute path",
                           options->allowed_hooks[i]);
        cdi->allowed_hooks[cdi->allowed_count++] = mem_strdup(options->allowed_hooks[i]);
    }
    const char *const *directories = options->directories;
    size_t count = options->directory_count;
    if (directories == NULL) {
        directories = usual_directories;
        count = COUNT_OF(usual_directories);
    }
    for (size_t i = 0; i < count; i++)
        read_directory(cdi, directories[i]);
    *out = TAKE(cdi);
    return ERR_OK;
}

void cdi_free(struct cdi *cdi)
{
    if (cdi == NULL)
        return;
    for (size_t i = 0; i < cdi->spec_count; i++)
        json_decref(cdi->specs[i].json);
    for (size_t i = 0; i < cdi->allowed_count; i++)
        mem_free(cdi->allowed_hooks[i]);
    for (size_t i = 0; i < cdi->problem_count; i++)
        mem_free(cdi->problems[i]);
    mem_free(cdi);
}

size_t cdi_problem_count(const struct cdi *cdi)
{
    return cdi->problem_count;
}

const char *cdi_problem(const struct cdi *cdi, size_t index)
{
    return index < cdi->problem_count ? cdi->problems[index] : "";
}

/* Finding a device ----------------------------------------------------------------------------- */

struct found {
    const struct spec *spec;
    const json_t *device;
};

static const json_t *device_of(const struct spec *spec, const char *name)
{
    const json_t *devices = json_object_get(spec->json, "devices");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        if (strcmp(text_of(device, "name"), name) == 0)
            return device;
    }
    return NULL;
}

/* "VENDOR/CLASS=NAME" */
static bool find(const struct cdi *cdi, const char *name, struct found *out)
{
    struct str rest = str_of(name);
    struct str kind = str_cut(&rest, '=');
    if (rest.size == 0)
        return false;
    for (size_t i = cdi->spec_count; i > 0; i--) {
        const struct spec *spec = &cdi->specs[i - 1];
        if (!str_is(kind, spec->kind))
            continue;
        const json_t *device = device_of(spec, rest.data);
        if (device != NULL) {
            *out = (struct found){ spec, device };
            return true;
        }
    }
    return false;
}

bool cdi_has(const struct cdi *cdi, const char *name)
{
    struct found found;
    return find(cdi, name, &found);
}

/* Reading edits -------------------------------------------------------------------------------- */

static enum err read_strings(struct arena *arena, const json_t *object, const char *name,
                             const char *const **out, size_t *count, struct error *e)
{
    const json_t *list = json_object_get(object, name);
    size_t found = json_array_size(list);
    if ((list != NULL && !json_is_array(list)) || found > LIST_MAX)
        return err_set(e, ERR_INVALID, "%s is not a short list", name);
    const char **texts = arena_new(arena, found + 1, sizeof(*texts));
    for (size_t i = 0; i < found; i++) {
        const json_t *entry = json_array_get(list, i);
        size_t size = json_string_length(entry);
        if (!json_is_string(entry) || size > TEXT_MAX)
            return err_set(e, ERR_INVALID, "entry %zu of %s is not a short text", i, name);
        texts[i] = arena_dup(arena, json_string_value(entry), size);
    }
    *out = texts;
    *count = found;
    return ERR_OK;
}

/* A missing number leaves `out` alone. */
static enum err read_number(const json_t *object, const char *name, int64_t max, int64_t *out,
                            struct error *e)
{
    const json_t *number = json_object_get(object, name);
    if (number == NULL)
        return ERR_OK;
    int64_t value = json_integer_value(number);
    if (!json_is_integer(number) || value < 0 || value > max)
        return err_set(e, ERR_INVALID, "%s is not a number in 0..%lld", name, (long long)max);
    *out = value;
    return ERR_OK;
}

static enum err read_path(struct arena *arena, const json_t *object, const char *name,
                          const char **out, struct error *e)
{
    const char *path = text_of(object, name);
    if (!edit_path_is_safe(path))
        return err_set(e, ERR_INVALID, "%s \"%.100s\" is not an absolute path without \"..\"", name,
                       path);
    *out = arena_dup(arena, path, strlen(path));
    return ERR_OK;
}

static enum err add_env(const json_t *edits, struct arena *arena, struct container_edits *out,
                        struct error *e)
{
    const char *const *texts = NULL;
    size_t count = 0;
    enum err rc = read_strings(arena, edits, "env", &texts, &count, e);
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        const char *equals = strchr(texts[i], '=');
        if (equals == NULL || equals == texts[i])
            rc = err_set(e, ERR_INVALID, "env \"%.64s\" is not NAME=value", texts[i]);
        else
            vec_push(&out->env, texts[i]);
    }
    return rc;
}

static enum err add_mount(const json_t *mount, struct arena *arena, struct container_edits *out,
                          struct error *e)
{
    struct edit_mount edit = { .option_count = 0 };
    enum err rc = read_path(arena, mount, "hostPath", &edit.host_path, e);
    if (rc == ERR_OK)
        rc = read_path(arena, mount, "containerPath", &edit.container_path, e);
    if (rc == ERR_OK)
        rc = read_strings(arena, mount, "options", &edit.options, &edit.option_count, e);
    if (rc == ERR_OK)
        vec_push(&out->mounts, edit);
    return rc;
}

/* Whether the numbers came with the spec or not, the file on the host decides what it is. */
static enum err read_device_numbers(const json_t *node, struct edit_device *edit, struct error *e)
{
    assert(edit->host_path != NULL);
    struct stat st;
    int64_t major_number = 0;
    int64_t minor_number = 0;
    const char *type = text_of(node, "type");
    bool has_numbers = json_object_get(node, "major") != NULL && type[0] != '\0';
    enum err rc = read_number(node, "major", 4095, &major_number, e);
    if (rc == ERR_OK)
        rc = read_number(node, "minor", (1 << 20) - 1, &minor_number, e);
    if (rc != ERR_OK)
        return rc;
    if (stat(edit->host_path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))) {
        edit->type = S_ISCHR(st.st_mode) ? 'c' : 'b';
        edit->major = major(st.st_rdev);
        edit->minor = minor(st.st_rdev);
        return ERR_OK;
    }
    if (!has_numbers)
        return err_set(e, ERR_UNAVAILABLE, "%.100s is no device file on this node",
                       edit->host_path);
    if (strcmp(type, "c") != 0 && strcmp(type, "u") != 0 && strcmp(type, "b") != 0)
        return err_set(e, ERR_INVALID, "the type \"%.8s\" is no device", type);
    edit->type = type[0] == 'b' ? 'b' : 'c';
    edit->major = (unsigned)major_number;
    edit->minor = (unsigned)minor_number;
    return ERR_OK;
}

static enum err add_device(const json_t *node, struct arena *arena, struct container_edits *out,
                           struct error *e)
{
    struct edit_device edit = { .file_mode = -1, .uid = -1, .gid = -1 };
    const char *permissions = text_of(node, "permissions");
    enum err rc = read_path(arena, node, "path", &edit.path, e);
    edit.host_path = edit.path;
    if (rc == ERR_OK && json_object_get(node, "hostPath") != NULL)
        rc = read_path(arena, node, "hostPath", &edit.host_path, e);
    if (rc == ERR_OK)
        rc = read_device_numbers(node, &edit, e);
    if (rc == ERR_OK)
        rc = read_number(node, "fileMode", 07777, &edit.file_mode, e);
    if (rc == ERR_OK)
        rc = read_number(node, "uid", UINT32_MAX, &edit.uid, e);
    if (rc == ERR_OK)
        rc = read_number(node, "gid", UINT32_MAX, &edit.gid, e);
    if (rc == ERR_OK && permissions[strspn(permissions, "rwm")] != '\0')
        rc = err_set(e, ERR_INVALID, "the permissions \"%.16s\" are not of rwm", permissions);
    if (rc != ERR_OK)
        return rc;
    edit.permissions =
        permissions[0] != '\0' ? arena_dup(arena, permissions, strlen(permissions)) : "rwm";
    vec_push(&out->devices, edit);
    return ERR_OK;
}

static bool is_hook_allowed(const struct cdi *cdi, const char *path)
{
    assert(path != NULL);
    for (size_t i = 0; i < cdi->allowed_count; i++) {
        if (strcmp(cdi->allowed_hooks[i], path) == 0)
            return true;
    }
    return false;
}

static enum err hook_stage(const json_t *hook, enum edit_hook_stage *out, struct error *e)
{
    const char *name = text_of(hook, "hookName");
    for (size_t i = 0; i < EDIT_HOOK_STAGE_COUNT; i++) {
        if (strcmp(name, edit_hook_stage_name[i]) == 0) {
            *out = (enum edit_hook_stage)i;
            return ERR_OK;
        }
    }
    return err_set(e, ERR_INVALID, "there is no hook \"%.40s\"", name);
}

static enum err add_hook(const struct cdi *cdi, const json_t *hook, struct arena *arena,
                         struct container_edits *out, struct error *e)
{
    struct edit_hook edit = { .timeout_s = 0 };
    enum err rc = read_path(arena, hook, "path", &edit.path, e);
    if (rc == ERR_OK && !is_hook_allowed(cdi, edit.path)) {
        out->hooks_refused++;
        return ERR_OK;
    }
    if (rc == ERR_OK)
        rc = hook_stage(hook, &edit.stage, e);
    if (rc == ERR_OK)
        rc = read_strings(arena, hook, "args", &edit.args, &edit.arg_count, e);
    if (rc == ERR_OK)
        rc = read_strings(arena, hook, "env", &edit.env, &edit.env_count, e);
    if (rc == ERR_OK)
        rc = read_number(hook, "timeout", 3600, &edit.timeout_s, e);
    if (rc == ERR_OK)
        vec_push(&out->hooks, edit);
    return rc;
}

static enum err list_of(const json_t *edits, const char *name, const json_t **out, struct error *e)
{
    const json_t *list = json_object_get(edits, name);
    if ((list != NULL && !json_is_array(list)) || json_array_size(list) > LIST_MAX)
        return err_set(e, ERR_INVALID, "%s is not a list of at most %d", name, LIST_MAX);
    *out = list;
    return ERR_OK;
}

static enum err add_gids(const json_t *edits, struct container_edits *out, struct error *e)
{
    const json_t *list = NULL;
    enum err rc = list_of(edits, "additionalGids", &list, e);
    for (size_t i = 0; i < json_array_size(list) && rc == ERR_OK; i++) {
        int64_t gid = json_integer_value(json_array_get(list, i));
        if (!json_is_integer(json_array_get(list, i)) || gid < 1 || gid > UINT32_MAX)
            rc = err_set(e, ERR_INVALID, "additionalGids[%zu] is no group", i);
        else
            vec_push(&out->additional_gids, (uint32_t)gid);
    }
    return rc;
}

static enum err add_edits(const struct cdi *cdi, const json_t *edits, struct arena *arena,
                          struct container_edits *out, struct error *e)
{
    const json_t *mounts = NULL;
    const json_t *nodes = NULL;
    const json_t *hooks = NULL;
    enum err rc = add_env(edits, arena, out, e);
    if (rc == ERR_OK)
        rc = list_of(edits, "mounts", &mounts, e);
    if (rc == ERR_OK)
        rc = list_of(edits, "deviceNodes", &nodes, e);
    if (rc == ERR_OK)
        rc = list_of(edits, "hooks", &hooks, e);
    for (size_t i = 0; i < json_array_size(mounts) && rc == ERR_OK; i++)
        rc = add_mount(json_array_get(mounts, i), arena, out, e);
    for (size_t i = 0; i < json_array_size(nodes) && rc == ERR_OK; i++)
        rc = add_device(json_array_get(nodes, i), arena, out, e);
    for (size_t i = 0; i < json_array_size(hooks) && rc == ERR_OK; i++)
        rc = add_hook(cdi, json_array_get(hooks, i), arena, out, e);
    return rc == ERR_OK ? add_gids(edits, out, e) : rc;
}

static bool was_spec_used(const struct found *found, size_t count, const struct spec *spec)
{
    for (size_t i = 0; i < count; i++) {
        if (found[i].spec == spec)
            return true;
    }
    return false;
}

/* What is to be undone when a later edit turns out to be wrong. */
struct sizes {
    size_t env;
    size_t mounts;
    size_t devices;
    size_t hooks;
    size_t gids;
    size_t refused;
};

static struct sizes sizes_of(const struct container_edits *edits)
{
    return (struct sizes){ edits->env.count,   edits->mounts.count,          edits->devices.count,
                           edits->hooks.count, edits->additional_gids.count, edits->hooks_refused };
}

static void cut_back(struct container_edits *edits, const struct sizes *sizes)
{
    edits->env.count = sizes->env;
    edits->mounts.count = sizes->mounts;
    edits->devices.count = sizes->devices;
    edits->hooks.count = sizes->hooks;
    edits->additional_gids.count = sizes->gids;
    edits->hooks_refused = sizes->refused;
}

enum err cdi_apply(const struct cdi *cdi, const char *const *names, size_t count,
                   struct arena *arena, struct container_edits *edits, struct error *e)
{
    const struct sizes before = sizes_of(edits);
    struct found *found = arena_new(arena, count + 1, sizeof(*found));
    enum err rc = ERR_OK;
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        if (!find(cdi, names[i], &found[i])) {
            rc = err_set(e, ERR_NOT_FOUND, "no CDI spec on this node has %.100s", names[i]);
            break;
        }
        if (!was_spec_used(found, i, found[i].spec))
            rc = add_edits(cdi, json_object_get(found[i].spec->json, "containerEdits"), arena,
                           edits, e);
        if (rc == ERR_OK)
            rc =
                add_edits(cdi, json_object_get(found[i].device, "containerEdits"), arena, edits, e);
        if (rc != ERR_OK)
            rc = err_wrap(e, rc, "CDI device %.100s", names[i]);
    }
    if (rc != ERR_OK)
        cut_back(edits, &before);
    return rc;
}
