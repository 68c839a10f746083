#include "agent/gpu/edits.h"

#include <limits.h>
#include <string.h>

enum { TEXTS_MAX = 8192 };

const char *const edit_hook_stage_name[EDIT_HOOK_STAGE_COUNT] = {
    [EDIT_HOOK_CREATE_RUNTIME] = "createRuntime",
    [EDIT_HOOK_CREATE_CONTAINER] = "createContainer",
    [EDIT_HOOK_START_CONTAINER] = "startContainer",
    [EDIT_HOOK_POSTSTART] = "poststart",
    [EDIT_HOOK_POSTSTOP] = "poststop",
};

void container_edits_done(struct container_edits *edits)
{
    vec_done(&edits->env);
    vec_done(&edits->mounts);
    vec_done(&edits->devices);
    vec_done(&edits->hooks);
    vec_done(&edits->additional_gids);
}

bool edit_path_is_safe(const char *path)
{
    size_t size = strnlen(path, PATH_MAX);
    if (path[0] != '/' || size >= PATH_MAX)
        return false;
    struct str rest = { path, size };
    while (rest.size > 0) {
        if (str_is(str_cut(&rest, '/'), ".."))
            return false;
    }
    return true;
}

size_t edit_names_of(const struct gpu_device *device, struct arena *arena,
                     const char *out[EDIT_NAMES_MAX])
{
    static const char *const kinds[] = {
        [GPU_VENDOR_NVIDIA] = "nvidia.com/gpu",
        [GPU_VENDOR_AMD] = "amd.com/gpu",
        [GPU_VENDOR_INTEL] = "intel.com/gpu",
        [GPU_VENDOR_OTHER] = "",
    };
    /* A vendor's spec is of no use to a device that is not there; tests write one of this kind. */
    const char *kind = device->is_simulated ? "berth.test/gpu" : kinds[device->vendor];
    size_t count = 0;
    if (kind[0] == '\0')
        return 0;
    out[count++] = arena_format(arena, "%s=%s", kind, device->uuid);
    /* An instance has the number of its device and is not meant by it. */
    if (device->mig != GPU_MIG_INSTANCE && device->minor >= 0)
        out[count++] = arena_format(arena, "%s=%u", kind, device->index);
    return count;
}

/* Merging -------------------------------------------------------------------------------------- */

static bool has_texts(const char *const *a, size_t a_count, const char *const *b, size_t b_count)
{
    if (a_count != b_count)
        return false;
    for (size_t i = 0; i < a_count; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static void merge_env(struct container_edits *edits, const char *variable)
{
    for (size_t i = 0; i < edits->env.count; i++)
        if (strcmp(edits->env.items[i], variable) == 0)
            return;
    vec_push(&edits->env, variable);
}

static void merge_mount(struct container_edits *edits, const struct edit_mount *mount)
{
    for (size_t i = 0; i < edits->mounts.count; i++)
        if (strcmp(edits->mounts.items[i].container_path, mount->container_path) == 0)
            return;
    vec_push(&edits->mounts, *mount);
}

static void merge_device(struct container_edits *edits, const struct edit_device *device)
{
    for (size_t i = 0; i < edits->devices.count; i++)
        if (strcmp(edits->devices.items[i].path, device->path) == 0)
            return;
    vec_push(&edits->devices, *device);
}

static void merge_hook(struct container_edits *edits, const struct edit_hook *hook)
{
    for (size_t i = 0; i < edits->hooks.count; i++) {
        const struct edit_hook *other = &edits->hooks.items[i];
        if (other->stage == hook->stage && strcmp(other->path, hook->path) == 0 &&
            has_texts(other->args, other->arg_count, hook->args, hook->arg_count))
            return;
    }
    vec_push(&edits->hooks, *hook);
}

void container_edits_merge(struct container_edits *edits, const struct container_edits *from)
{
    for (size_t i = 0; i < from->env.count; i++)
        merge_env(edits, from->env.items[i]);
    for (size_t i = 0; i < from->mounts.count; i++)
        merge_mount(edits, &from->mounts.items[i]);
    for (size_t i = 0; i < from->devices.count; i++)
        merge_device(edits, &from->devices.items[i]);
    for (size_t i = 0; i < from->hooks.count; i++)
        merge_hook(edits, &from->hooks.items[i]);
}

/* Writing -------------------------------------------------------------------------------------- */

static size_t begin(struct buf *out, enum edit_kind kind, int64_t a, int64_t b, int64_t c)
{
    struct edit_record record = { .kind = (uint32_t)kind, .numbers = { a, b, c } };
    size_t at = out->size;
    buf_add(out, &record, sizeof(record));
    return at;
}

static void add_text(struct buf *out, size_t at, const char *text)
{
    struct edit_record record;
    size_t size = strlen(text) + 1;
    buf_add(out, text, size);
    memcpy(&record, out->data + at, sizeof(record));
    record.text_count++;
    record.text_bytes += (uint32_t)size;
    memcpy(out->data + at, &record, sizeof(record));
}

static void add_texts(struct buf *out, size_t at, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_text(out, at, texts[i]);
}

void edit_records_device(struct buf *out, unsigned index, const struct container_edits *edits)
{
    (void)begin(out, EDIT_DEVICE, index, 0, 0);
    for (size_t i = 0; i < edits->env.count; i++)
        add_text(out, begin(out, EDIT_ENV, 0, 0, 0), edits->env.items[i]);
    for (size_t i = 0; i < edits->mounts.count; i++) {
        const struct edit_mount *mount = &edits->mounts.items[i];
        size_t at = begin(out, EDIT_MOUNT, 0, 0, 0);
        add_text(out, at, mount->host_path);
        add_text(out, at, mount->container_path);
        add_texts(out, at, mount->options, mount->option_count);
    }
    for (size_t i = 0; i < edits->devices.count; i++) {
        const struct edit_device *device = &edits->devices.items[i];
        size_t at = begin(out, EDIT_NODE, device->type, device->major, device->minor);
        add_text(out, at, device->path);
        add_text(out, at, device->host_path);
        add_text(out, at, device->permissions);
    }
    for (size_t i = 0; i < edits->hooks.count; i++) {
        const struct edit_hook *hook = &edits->hooks.items[i];
        size_t at =
            begin(out, EDIT_HOOK, (int64_t)hook->stage, hook->timeout_s, (int64_t)hook->arg_count);
        add_text(out, at, hook->path);
        add_texts(out, at, hook->args, hook->arg_count);
        add_texts(out, at, hook->env, hook->env_count);
    }
}

void edit_records_problem(struct buf *out, const char *text)
{
    add_text(out, begin(out, EDIT_PROBLEM, 0, 0, 0), text);
}

void edit_records_end(struct buf *out)
{
    (void)begin(out, EDIT_END, 0, 0, 0);
}

/* Reading -------------------------------------------------------------------------------------- */

struct record {
    struct edit_record head;
    const char **texts; /* head.text_count of them */
};

static enum err refuse(struct error *e, const char *why)
{
    return err_set(e, ERR_INVALID, "the records of berth-cdi are wrong: %s", why);
}

static enum err next_record(struct str *bytes, struct arena *arena, struct record *out,
                            struct error *e)
{
    if (bytes->size < sizeof(out->head))
        return refuse(e, "they end early");
    memcpy(&out->head, bytes->data, sizeof(out->head));
    bytes->data += sizeof(out->head);
    bytes->size -= sizeof(out->head);
    if (out->head.text_bytes > bytes->size || out->head.text_count > TEXTS_MAX)
        return refuse(e, "a text is cut");
    const char *text = arena_dup(arena, bytes->data, out->head.text_bytes);
    struct str left = { text, out->head.text_bytes };
    bytes->data += left.size;
    bytes->size -= left.size;
    out->texts = arena_new(arena, (size_t)out->head.text_count + 1, sizeof(*out->texts));
    for (uint32_t i = 0; i < out->head.text_count; i++) {
        const char *end = left.size > 0 ? memchr(left.data, '\0', left.size) : NULL;
        if (end == NULL || !str_is_text((struct str){ left.data, (size_t)(end - left.data) }))
            return refuse(e, "a text is none");
        out->texts[i] = left.data;
        left.size -= (size_t)(end - left.data) + 1;
        left.data = end + 1;
    }
    return left.size == 0 ? ERR_OK : refuse(e, "something follows the texts");
}

typedef enum err record_taker(const struct record *record, struct container_edits *out,
                              struct error *e);

static enum err take_env(const struct record *record, struct container_edits *out, struct error *e)
{
    if (record->head.text_count != 1 || strchr(record->texts[0], '=') == NULL ||
        record->texts[0][0] == '=')
        return refuse(e, "a variable");
    vec_push(&out->env, record->texts[0]);
    return ERR_OK;
}

static enum err take_mount(const struct record *record, struct container_edits *out,
                           struct error *e)
{
    if (record->head.text_count < 2 || !edit_path_is_safe(record->texts[0]) ||
        !edit_path_is_safe(record->texts[1]))
        return refuse(e, "a mount");
    struct edit_mount mount = { record->texts[0], record->texts[1], record->texts + 2,
                                record->head.text_count - 2U };
    vec_push(&out->mounts, mount);
    return ERR_OK;
}

static enum err take_node(const struct record *record, struct container_edits *out, struct error *e)
{
    const int64_t *n = record->head.numbers;
    bool is_device = n[0] == 'c' || n[0] == 'b';
    if (record->head.text_count != 3 || !is_device || n[1] < 0 || n[1] > UINT16_MAX || n[2] < 0 ||
        n[2] > UINT32_MAX || !edit_path_is_safe(record->texts[0]) ||
        !edit_path_is_safe(record->texts[1]) ||
        record->texts[2][strspn(record->texts[2], "rwm")] != '\0' || record->texts[2][0] == '\0')
        return refuse(e, "a device");
    struct edit_device device = { .path = record->texts[0],
                                  .host_path = record->texts[1],
                                  .type = (char)n[0],
                                  .major = (unsigned)n[1],
                                  .minor = (unsigned)n[2],
                                  .permissions = record->texts[2],
                                  .file_mode = -1,
                                  .uid = -1,
                                  .gid = -1 };
    vec_push(&out->devices, device);
    return ERR_OK;
}

static enum err take_hook(const struct record *record, struct container_edits *out, struct error *e)
{
    const int64_t *n = record->head.numbers;
    if (record->head.text_count < 1 || n[0] < 0 || n[0] >= EDIT_HOOK_STAGE_COUNT || n[1] < 0 ||
        n[1] > 3600 || n[2] < 0 || n[2] > (int64_t)record->head.text_count - 1 ||
        !edit_path_is_safe(record->texts[0]))
        return refuse(e, "a hook");
    size_t args = (size_t)n[2];
    struct edit_hook hook = { .stage = (enum edit_hook_stage)n[0],
                              .path = record->texts[0],
                              .args = record->texts + 1,
                              .arg_count = args,
                              .env = record->texts + 1 + args,
                              .env_count = record->head.text_count - 1 - args,
                              .timeout_s = n[1] };
    vec_push(&out->hooks, hook);
    return ERR_OK;
}

static record_taker *const takers[] = {
    [EDIT_ENV] = take_env,
    [EDIT_MOUNT] = take_mount,
    [EDIT_NODE] = take_node,
    [EDIT_HOOK] = take_hook,
};

static enum err read_all(struct str bytes, struct arena *arena, struct edit_set *set,
                         struct error *e)
{
    struct container_edits *edits = NULL;
    for (;;) {
        struct record record;
        enum err rc = next_record(&bytes, arena, &record, e);
        if (rc != ERR_OK)
            return rc;
        int64_t number = record.head.numbers[0];
        uint32_t kind = record.head.kind;
        if (kind == EDIT_END)
            return bytes.size == 0 ? ERR_OK : refuse(e, "something follows the end");
        if (kind == EDIT_PROBLEM && record.head.text_count == 1) {
            vec_push(&set->problems, record.texts[0]);
        } else if (kind == EDIT_DEVICE && number >= 0 && number < (int64_t)set->count) {
            edits = &set->devices[number];
        } else if (kind < COUNT_OF(takers) && takers[kind] != NULL && edits != NULL) {
            rc = takers[kind](&record, edits, e);
            if (rc != ERR_OK)
                return rc;
        } else {
            return refuse(e, "a kind");
        }
    }
}

void edit_set_done(struct edit_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        container_edits_done(&set->devices[i]);
    vec_done(&set->problems);
    set->count = 0;
}

enum err edit_records_read(struct str bytes, size_t device_count, struct arena *arena,
                           struct edit_set *out, struct error *e)
{
    AUTO(edit_set) struct edit_set set = { .count = device_count };
    set.devices = arena_new(arena, device_count + 1, sizeof(*set.devices));
    enum err rc = read_all(bytes, arena, &set, e);
    if (rc != ERR_OK)
        return rc;
    *out = set;
    set = (struct edit_set){ .count = 0 };
    return ERR_OK;
}
