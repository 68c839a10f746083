#include "controller/desired.h"

#include <assert.h>
#include <string.h>

#include "core/core.h"
#include "wire/spec_json.h"

enum { PIDS_MAX = 32768, SHM_DEFAULT_MIB = 64, MASTER_PORT = 29500, GIB_DEFAULT_MIB = 1024 };

struct payload {
    struct grant_digest digest;
    struct id allocation;
    struct buf bytes; /* owned */
    uint32_t shm_mib;
    struct payload *next;
};

struct desired {
    struct keys *keys;     /* borrowed */
    struct images *images; /* borrowed */
    struct id_map by_allocation;
    struct payload *first; /* owned, all of them */
};

struct desired *desired_new(struct keys *keys, struct images *images)
{
    struct desired *desired = mem_new(1, sizeof(*desired));
    desired->keys = keys;
    desired->images = images;
    return desired;
}

static void payload_free(struct payload *payload)
{
    buf_done(&payload->bytes);
    mem_free(payload);
}

void desired_free(struct desired *desired)
{
    if (desired == NULL)
        return;
    while (desired->first != NULL) {
        struct payload *next = desired->first->next;
        payload_free(desired->first);
        desired->first = next;
    }
    id_map_done(&desired->by_allocation);
    mem_free(desired);
}

void desired_forget(struct desired *desired, const struct state *state)
{
    struct payload **link = &desired->first;
    while (*link != NULL) {
        struct payload *payload = *link;
        if (state_allocation(state, payload->allocation) != NULL) {
            link = &payload->next;
            continue;
        }
        (void)id_map_remove(&desired->by_allocation, payload->allocation);
        *link = payload->next;
        payload_free(payload);
    }
}

static bool str_is_env_of(struct str entry, struct str name)
{
    return entry.size > name.size && str_starts(entry, name) && entry.data[name.size] == '=';
}

static bool spec_has_env(const struct workload_spec *spec, struct str entry)
{
    for (size_t i = 0; i < spec->env.count; i++) {
        if (str_is_env_of(entry, spec->env.items[i].name))
            return true;
    }
    return false;
}

/* The image's environment, then the workload's own over it. */
static struct str_list payload_env(const struct workload_record *workload,
                                   const struct workload_spec *spec,
                                   const struct image_defaults *defaults, struct arena *arena)
{
    struct str_list env = { 0 };
    size_t most = spec->env.count + (defaults != NULL ? defaults->env.count : 0) + 2;
    env.items = arena_new(arena, most, sizeof(*env.items));
    for (size_t i = 0; defaults != NULL && i < defaults->env.count; i++) {
        if (!spec_has_env(spec, defaults->env.items[i]))
            env.items[env.count++] = defaults->env.items[i];
    }
    for (size_t i = 0; i < spec->env.count; i++) {
        const struct pair *pair = &spec->env.items[i];
        env.items[env.count++] =
            str_of(arena_format(arena, "%.*s=%.*s", STR_ARG(pair->name), STR_ARG(pair->value)));
    }
    if (!id_is_none(workload->array)) {
        char array[ID_TEXT_MAX];
        env.items[env.count++] =
            str_of(arena_format(arena, "BERTH_ARRAY_INDEX=%lld", (long long)workload->array_index));
        env.items[env.count++] = str_of(
            arena_format(arena, "BERTH_ARRAY=%s", id_text(ID_ARRAY, workload->array, array)));
    }
    return env;
}

/* What runs: the workload's command, else the image's own. */
static struct str_list payload_args(const struct workload_spec *spec,
                                    const struct image_defaults *defaults, struct arena *arena)
{
    if (spec->command.count > 0 || defaults == NULL)
        return spec->command;
    return image_defaults_args(defaults, arena);
}

/* rank0.wl-..., rank1.wl-...: names that resolve inside the tenant's network only. A host name may
 * have no underscore, which ids have. */
static struct str member_name(const struct workload *workload, int64_t rank, struct arena *arena)
{
    char id[ID_TEXT_MAX];
    char *separator = strchr(id_text(ID_WORKLOAD, workload->r.id, id), '_');
    if (separator != NULL)
        *separator = '-';
    return str_of(arena_format(arena, "rank%lld.%s", (long long)rank, id));
}

static void payload_members(struct grant_payload *payload, const struct workload *workload,
                            int64_t rank, struct arena *arena)
{
    struct str *hosts = arena_new(arena, (size_t)workload->r.members, sizeof(*hosts));
    for (int64_t i = 0; i < workload->r.members; i++)
        hosts[i] = member_name(workload, i, arena);
    payload->hosts = hosts;
    payload->host_count = (uint32_t)workload->r.members;
    payload->hostname = hosts[rank];
    payload->master_port = MASTER_PORT;
}

static struct str absolute_or(struct str path, struct str fallback)
{
    return path.size > 0 ? path : fallback;
}

static enum err payload_make(struct desired *desired, const struct allocation *allocation,
                             struct payload *out, struct error *e)
{
    const struct workload *workload = allocation->workload;
    AUTO(arena) struct arena arena = { 0 };
    struct workload_spec spec = { 0 };
    enum err rc = workload_spec_parse(workload->r.spec_json, &arena, &spec, e);
    if (rc != ERR_OK)
        return rc;

    const struct image_defaults *defaults = images_defaults(desired->images, &workload->r.image);
    struct str_list args = payload_args(&spec, defaults, &arena);
    struct str_list env = payload_env(&workload->r, &spec, defaults, &arena);
    struct str image_workdir = defaults != NULL ? defaults->workdir : (struct str){ 0 };
    struct str workdir = absolute_or(spec.workdir, absolute_or(image_workdir, STR("/")));
    struct str *targets = arena_new(&arena, spec.mounts.count, sizeof(*targets));
    for (size_t i = 0; i < spec.mounts.count; i++)
        targets[i] = spec.mounts.items[i].path;

    struct grant_payload payload = {
        .working_dir = workdir,
        .upload_path =
            spec.upload.size > 0 ? absolute_or(spec.workdir, STR("/workspace")) : (struct str){ 0 },
        .arg_count = (uint32_t)args.count,
        .args = args.items,
        .env_count = (uint32_t)env.count,
        .env = env.items,
        .volume_count = (uint32_t)spec.mounts.count,
        .volume_targets = targets,
    };
    if (spec.upload.size > 0)
        payload.working_dir = payload.upload_path;
    payload_members(&payload, workload, allocation->r.rank, &arena);
    out->shm_mib = (uint32_t)(spec.shm_mib != UNSET ? spec.shm_mib : SHM_DEFAULT_MIB);
    return grant_payload_encode(&payload, &out->bytes, e);
}

static const struct payload *desired_payload_of(struct desired *desired,
                                                const struct allocation *allocation,
                                                struct error *e)
{
    struct payload *payload = id_map_get(&desired->by_allocation, allocation->r.id);
    if (payload != NULL)
        return payload;
    payload = mem_new(1, sizeof(*payload));
    payload->allocation = allocation->r.id;
    if (payload_make(desired, allocation, payload, e) != ERR_OK) {
        payload_free(payload);
        return NULL;
    }
    struct grant_crypto crypto = keys_grant_crypto(desired->keys);
    crypto.sha256(crypto.self, buf_str(&payload->bytes), &payload->digest);
    payload->next = desired->first;
    desired->first = payload;
    id_map_put(&desired->by_allocation, payload->allocation, payload);
    return payload;
}

static enum grant_contact_loss contact_loss_of(enum on_contact_loss loss)
{
    switch (loss) {
    case LOSS_RESTART:
    case ON_CONTACT_LOSS_COUNT:
        return GRANT_RESTART;
    case LOSS_FENCE:
        return GRANT_FENCE;
    case LOSS_KEEP:
        return GRANT_KEEP;
    }
    return GRANT_RESTART;
}

static void grant_devices(struct grant *grant, const struct allocation *allocation)
{
    const struct share_list *shares = &allocation->r.shares;
    for (size_t i = 0; i < shares->count && i < GRANT_DEVICES_MAX; i++) {
        grant->devices[grant->device_count++] = (struct grant_device){
            .index = (uint16_t)shares->items[i].device,
            .milli = (uint16_t)shares->items[i].milli,
            .memory_mib = (uint32_t)shares->items[i].memory_mib,
            .flags = grant_slice_flags(
                (struct grant_slice){ .start = (uint32_t)shares->items[i].slice_start,
                                      .size = (uint32_t)shares->items[i].slice_size,
                                      .compute = (uint32_t)shares->items[i].slice_compute }),
        };
    }
}

static void grant_volumes(struct grant *grant, const struct workload *workload,
                          const struct payload *payload, const struct grant_crypto *crypto)
{
    AUTO(arena) struct arena arena = { 0 };
    struct grant_payload opened = { 0 };
    struct workload_spec spec = { 0 };
    if (workload->r.volumes.count == 0 ||
        grant_payload_decode(buf_str(&payload->bytes), &arena, &opened, NULL) != ERR_OK ||
        workload_spec_parse(workload->r.spec_json, &arena, &spec, NULL) != ERR_OK)
        return;
    for (size_t i = 0; i < workload->r.volumes.count && i < opened.volume_count; i++) {
        struct grant_volume *volume = &grant->volumes[grant->volume_count++];
        volume->volume = workload->r.volumes.items[i];
        volume->is_read_only = i < spec.mounts.count && spec.mounts.items[i].is_read_only;
        crypto->sha256(crypto->self, opened.volume_targets[i], &volume->target);
    }
}

/* What was lost, a node stops before it starts anything, whatever else it was to be stopped for. */
static enum cause stop_cause_of(const struct allocation *allocation, bool is_stop)
{
    if (!is_stop)
        return CAUSE_NONE;
    return allocation->r.state == AL_LOST ? CAUSE_NODE_FAILURE : allocation->r.stop_cause;
}

static void grant_fill(struct grant *grant, const struct allocation *allocation,
                       const struct payload *payload, const struct grant_crypto *crypto)
{
    const struct allocation_record *r = &allocation->r;
    const struct workload_record *w = &allocation->workload->r;
    const struct project *tenant = allocation->workload->project->tenant;
    int64_t memory_mib = r->memory_mib > 0 ? r->memory_mib : GIB_DEFAULT_MIB;
    bool is_stop = !core_wants_running(allocation);
    *grant = (struct grant){
        .allocation = r->id,
        .workload = r->workload,
        .tenant = tenant->r.id,
        .attempt = (uint32_t)r->attempt,
        .member_rank = (uint32_t)r->rank,
        .member_count = (uint32_t)w->members,
        .uid_base = tenant_uid_base(tenant),
        .uid_count = UID_RANGE,
        .cpu_milli = (uint32_t)(r->cpu_milli > 0 ? r->cpu_milli : 1000),
        .memory_mib = (uint32_t)memory_mib,
        .pids_max = PIDS_MAX,
        .shm_mib = MIN_OF(payload->shm_mib, (uint32_t)memory_mib),
        .time_limit_s = (uint32_t)w->time_limit_s,
        .grace_s = (uint32_t)(r->grace_s > 0 ? r->grace_s : w->grace_s),
        .is_stop = is_stop,
        .stop_cause = (uint16_t)stop_cause_of(allocation, is_stop),
        .on_contact_loss = contact_loss_of(w->on_contact_loss),
        .fence_after_s = w->on_contact_loss == LOSS_FENCE ? (uint32_t)w->fence_after_s : 0,
        .payload = payload->digest,
    };
    memcpy(grant->image.bytes, w->image.bytes, sizeof(grant->image.bytes));
    memcpy(grant->upload.bytes, w->upload.bytes, sizeof(grant->upload.bytes));
    grant_devices(grant, allocation);
    grant_volumes(grant, allocation->workload, payload, crypto);
}

/* What the scheduler grants, a node can be told. */
static_assert((int64_t)GRANT_SET_MAX >= (int64_t)NODE_MEMBERS_MAX, "all members of a node");
static_assert((int64_t)GRANT_CPU_MILLI_MIN <= (int64_t)MEMBER_CPU_MILLI_MIN, "bounds of requests");
static_assert((int64_t)GRANT_CPU_MILLI_MAX >= (int64_t)MEMBER_CPU_MILLI_MAX, "bounds of requests");
static_assert((int64_t)GRANT_MEMORY_MIB_MAX >= (int64_t)MEMBER_MEMORY_MIB_MAX,
              "bounds of requests");

/* Cleaning means gone for the node: it is no longer wanted there. */
static bool is_wanted(const struct allocation *allocation)
{
    return allocation_is_held(allocation->r.state) && allocation->r.state != AL_CLEANING;
}

enum err desired_build(struct desired *desired, const struct state *state, const struct node *node,
                       struct buf *out, struct error *e)
{
    const struct grant_crypto crypto = keys_grant_crypto(desired->keys);
    AUTO(grant_set)
    struct grant_set set = {
        .node = node->r.id,
        .epoch = state->epoch,
        .generation = node->r.generation,
        .issued_ns =
            0, /* sent again, a set is the same bytes: nodes refuse a generation told twice */
    };
    size_t most = 0;
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
        most++;
    set.grants = mem_new(MIN_OF(most, (size_t)GRANT_SET_MAX), sizeof(*set.grants));

    enum err worst = ERR_OK;
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        if (!is_wanted(a) || set.count == GRANT_SET_MAX)
            continue;
        const struct payload *payload = desired_payload_of(desired, a, e);
        struct grant grant;
        if (payload != NULL) {
            grant_fill(&grant, a, payload, &crypto);
            if (grant_check(&grant, e) == ERR_OK) {
                set.grants[set.count++] = grant;
                continue;
            }
        }
        worst = ERR_INVALID;
    }
    enum err rc = grant_set_encode(&set, &crypto, out, e);
    return rc != ERR_OK ? rc : worst;
}

struct str_list desired_payloads(struct desired *desired, const struct node *node, size_t bytes_max,
                                 bool *is_cut, struct arena *arena)
{
    struct str_list list = { 0 };
    size_t most = 0;
    size_t bytes_left = bytes_max;
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
        most += a->r.state == AL_STARTING;
    *is_cut = false;
    list.items = arena_new(arena, most, sizeof(*list.items));
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        const struct payload *payload =
            a->r.state == AL_STARTING ? desired_payload_of(desired, a, NULL) : NULL;
        if (payload == NULL)
            continue;
        if (payload->bytes.size > bytes_left) {
            *is_cut = true;
            break;
        }
        bytes_left -= payload->bytes.size;
        list.items[list.count++] = buf_str(&payload->bytes);
    }
    return list;
}

struct str desired_payload(struct desired *desired, const struct node *node,
                           const struct grant_digest *digest)
{
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        const struct payload *payload = id_map_get(&desired->by_allocation, a->r.id);
        if (payload != NULL && grant_digest_eq(&payload->digest, digest))
            return buf_str(&payload->bytes);
    }
    return (struct str){ 0 };
}
