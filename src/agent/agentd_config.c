#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/init.h"
#include "agent/runtime/cgroup.h"
#include "agent/runtime/oci_config.h"
#include "os/fd.h"
#include "os/file.h"

enum {
    DEVICES_MAX = GRANT_DEVICES_MAX * GPU_NODES_MAX + GPU_NODES_MAX,
    BINDS_OF_OURS = 3, /* the upload, what it is told of its end, /etc/hosts */
};

/* Everything the OCI configuration borrows from, carved from one arena. */
struct draft {
    struct arena arena;
    struct grant_payload payload;
    struct container_edits edits; /* of all granted devices */
    struct oci_device *devices;
    struct oci_bind *binds;
    struct oci_hook *hooks;
    struct buf device_env[GPU_ENV_COUNT];
    struct str *device_env_strs;
    char cgroup[ATTEMPT_PATH_MAX];
    struct oci_config config;
};

static void draft_done(struct draft *draft)
{
    for (size_t i = 0; i < GPU_ENV_COUNT; i++)
        buf_done(&draft->device_env[i]);
    container_edits_done(&draft->edits);
    arena_done(&draft->arena);
}
DEFINE_CLEANUP_AT(draft, struct draft, draft_done)

void config_paths(const struct agentd *agentd, const char *name, struct attempt_paths *out)
{
    (void)snprintf(out->disk, sizeof(out->disk), "%s/%s", agentd->alloc_dir, name);
    (void)snprintf(out->run, sizeof(out->run), "%s/%s", agentd->bundle_dir, name);
}

static void add_nodes(struct draft *draft, const struct gpu_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        draft->devices[draft->config.device_count++] = (struct oci_device){
            .path = nodes[i].path, .major = nodes[i].major, .minor = nodes[i].minor
        };
}

/* Room for everything that a grant and its devices can ask for. */
static void draft_room(const struct agentd *agentd, const struct grant *grant, struct draft *draft)
{
    for (uint32_t i = 0; i < grant->device_count; i++)
        if (grant->devices[i].index < agentd->edits.count)
            container_edits_merge(&draft->edits, &agentd->edits.devices[grant->devices[i].index]);
    const struct container_edits *edits = &draft->edits;
    size_t binds = GRANT_VOLUMES_MAX + BINDS_OF_OURS + edits->mounts.count + edits->devices.count;
    draft->devices =
        arena_new(&draft->arena, DEVICES_MAX + edits->devices.count, sizeof(*draft->devices));
    draft->binds = arena_new(&draft->arena, binds, sizeof(*draft->binds));
    draft->hooks = arena_new(&draft->arena, edits->hooks.count + 1, sizeof(*draft->hooks));
    draft->device_env_strs =
        arena_new(&draft->arena, GPU_ENV_COUNT + edits->env.count, sizeof(*draft->device_env_strs));
}

static bool has_device(const struct draft *draft, const char *path)
{
    for (size_t i = 0; i < draft->config.device_count; i++)
        if (strcmp(draft->devices[i].path, path) == 0)
            return true;
    return false;
}

/* The file of the host is bound, for it may have another name inside. */
static void add_edit_device(struct draft *draft, const struct edit_device *edit)
{
    bool can_read = strchr(edit->permissions, 'r') != NULL;
    bool can_write = strchr(edit->permissions, 'w') != NULL;
    if (has_device(draft, edit->path) || (!can_read && !can_write))
        return; /* the driver found it as well; or it is only to be made, which nobody may */
    draft->devices[draft->config.device_count++] = (struct oci_device){
        .path = edit->path,
        .major = edit->major,
        .minor = edit->minor,
        .is_block = edit->type == 'b',
        .is_bound = true,
        .access = !can_write ? "r" : (can_read ? "rw" : "w"),
    };
    draft->binds[draft->config.bind_count++] = (struct oci_bind){ .source = edit->host_path,
                                                                  .target = str_of(edit->path),
                                                                  .is_device = true };
}

static void add_edit_mount(struct draft *draft, const struct edit_mount *edit)
{
    struct oci_bind bind = { .source = edit->host_path, .target = str_of(edit->container_path) };
    for (size_t i = 0; i < edit->option_count; i++)
        bind.is_read_only = bind.is_read_only || strcmp(edit->options[i], "ro") == 0;
    draft->binds[draft->config.bind_count++] = bind;
}

static void draft_edits(struct draft *draft)
{
    const struct container_edits *edits = &draft->edits;
    for (size_t i = 0; i < edits->env.count; i++) {
        struct str rest = str_of(edits->env.items[i]);
        struct str name = str_cut(&rest, '=');
        if (!oci_is_reserved_env(name)) /* the grant says which devices are visible */
            draft->device_env_strs[draft->config.device_env_count++] = str_of(edits->env.items[i]);
    }
    for (size_t i = 0; i < edits->devices.count; i++)
        add_edit_device(draft, &edits->devices.items[i]);
    for (size_t i = 0; i < edits->mounts.count; i++)
        add_edit_mount(draft, &edits->mounts.items[i]);
    for (size_t i = 0; i < edits->hooks.count; i++) {
        const struct edit_hook *hook = &edits->hooks.items[i];
        draft->hooks[draft->config.hook_count++] = (struct oci_hook){
            .stage = edit_hook_stage_name[hook->stage],
            .path = hook->path,
            .args = hook->args,
            .arg_count = hook->arg_count,
            .env = hook->env,
            .env_count = hook->env_count,
            .timeout_s = hook->timeout_s,
        };
    }
}

static enum err draft_devices(const struct agentd *agentd, const struct grant *grant,
                              struct draft *draft, struct error *e)
{
    const struct gpu_inventory *inventory = &agentd->inventory;
    unsigned indices[GRANT_DEVICES_MAX];
    for (uint32_t i = 0; i < grant->device_count; i++) {
        indices[i] = grant->devices[i].index;
        if (indices[i] >= inventory->count)
            return err_field(e, "devices", "device %u is granted, but the node has %zu", indices[i],
                             inventory->count);
        const struct gpu_device *device = &inventory->devices[indices[i]];
        if (grant_slice_of(&grant->devices[i]).size > 0 && !device->is_simulated)
            return err_field(e, "devices",
                             "device %u: a partition of it is granted, and this node makes none;"
                             " make instances by hand (they are devices of their own), or let the"
                             " class be sliced otherwise",
                             indices[i]);
        add_nodes(draft, device->nodes, device->node_count);
    }
    if (grant->device_count > 0)
        add_nodes(draft, inventory->shared, inventory->shared_count);
    enum err rc = gpu_environment(inventory, indices, grant->device_count, draft->device_env, e);
    for (size_t i = 0; i < GPU_ENV_COUNT; i++)
        draft->device_env_strs[i] = buf_str(&draft->device_env[i]);
    if (rc == ERR_OK)
        draft_edits(draft);
    return rc;
}

/* Made when it is first granted: owned by ids 0.. on disk, shifted to the tenant's by the mount. */
static enum err draft_volumes(const struct agentd *agentd, const struct grant *grant,
                              struct draft *draft, struct error *e)
{
    char tenant[ID_TEXT_MAX];
    char volume[ID_TEXT_MAX];
    for (uint32_t i = 0; i < grant->volume_count; i++) {
        const char *path = arena_format(&draft->arena, "%s/%s/%s", agentd->volume_dir,
                                        id_text(ID_TENANT, grant->tenant, tenant),
                                        id_text(ID_VOLUME, grant->volumes[i].volume, volume));
        enum err rc = file_make_dirs(path, 0755, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "volume %s", volume);
        draft->binds[draft->config.bind_count++] = (struct oci_bind){
            .source = path,
            .target = draft->payload.volume_targets[i],
            .is_read_only = grant->volumes[i].is_read_only,
            .is_idmapped = true,
        };
    }
    return ERR_OK;
}

/* The root that is used as it is (in tests) is written by nobody: what we mount must be there. */
static bool has_place(const struct agentd *agentd, const struct grant *grant, const char *target)
{
    char path[PATH_MAX];
    if (!grant_digest_is_none(&grant->image))
        return true;
    return snprintf(path, sizeof(path), "%s%s", agentd->options.rootfs, target) <
               (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

static enum err draft_make(const struct agentd *agentd, const struct grant *grant,
                           struct str payload, struct draft *draft, struct error *e)
{
    enum err rc =
        grant_payload_open(payload, grant, &agentd->crypto, &draft->arena, &draft->payload, e);
    if (rc != ERR_OK)
        return rc;
    char name[ATTEMPT_NAME_MAX];
    (void)snprintf(draft->cgroup, sizeof(draft->cgroup), "%s/%s", agentd->options.cgroup,
                   attempt_name(grant->allocation, grant->attempt, name));
    bool has_image = !grant_digest_is_none(&grant->image);
    draft_room(agentd, grant, draft);
    draft->config = (struct oci_config){
        .grant = grant,
        .payload = &draft->payload,
        .rootfs = has_image ? "rootfs" : agentd->options.rootfs,
        .is_rootfs_read_only = !has_image,
        .cgroup = draft->cgroup,
        .init = ATTEMPT_OWN_DIR "/" ATTEMPT_INIT_NAME,
        .has_swap_limit = cgroup_has_swap_limit(CGROUP_ROOT, agentd->cgroup_mode),
        .nofile_max = agentd->nofile_max,
        .devices = draft->devices,
        .binds = draft->binds,
        .hooks = draft->hooks,
        .device_env = draft->device_env_strs,
        .device_env_count = GPU_ENV_COUNT,
    };
    if (has_place(agentd, grant, NOTICE_DIR)) /* first: a volume at /run covers it */
        draft->binds[draft->config.bind_count++] = (struct oci_bind){ .source = ATTEMPT_NOTICE_DIR,
                                                                      .target = STR(NOTICE_DIR),
                                                                      .is_read_only = true };
    rc = draft_devices(agentd, grant, draft, e);
    if (rc == ERR_OK)
        rc = draft_volumes(agentd, grant, draft, e);
    if (rc == ERR_OK && !grant_digest_is_none(&grant->upload))
        draft->binds[draft->config.bind_count++] =
            (struct oci_bind){ .source = "upload", .target = draft->payload.upload_path };
    if (rc == ERR_OK && has_place(agentd, grant, "/etc/hosts"))
        draft->binds[draft->config.bind_count++] =
            (struct oci_bind){ .source = ATTEMPT_OWN_DIR "/" ATTEMPT_HOSTS_NAME,
                               .target = STR("/etc/hosts"),
                               .is_read_only = true };
    return rc;
}

#define COPY_PATH(field, value) copy_path(field, sizeof(field), value, e)

static enum err copy_path(char *out, size_t size, const char *path, struct error *e)
{
    if (strlen(path) >= size)
        return err_set(e, ERR_LIMIT, "%s is longer than %zu characters", path, size - 1);
    memset(out, 0, size); /* the record is written whole, and checked whole */
    (void)snprintf(out, size, "%s", path);
    return ERR_OK;
}

static enum err write_spec(const struct agentd *agentd, const struct wanted *wanted,
                           struct str payload, const struct draft *draft,
                           const struct attempt_dirs *dirs, struct error *e)
{
    const struct grant *grant = draft->config.grant;
    struct attempt_spec spec;
    memset(&spec, 0, sizeof(spec));
    spec.allocation = grant->allocation;
    spec.attempt = grant->attempt;
    spec.uid_base = grant->uid_base;
    spec.time_limit_s = grant->time_limit_s;
    spec.grace_s = grant->grace_s;
    spec.fence_after_s = grant->on_contact_loss == GRANT_FENCE ? grant->fence_after_s : 0;
    spec.has_image = grant_digest_is_none(&grant->image) ? 0 : 1;
    spec.has_upload = grant_digest_is_none(&grant->upload) ? 0 : 1;
    spec.log_quota_bytes = agentd->options.log_quota_bytes;
    spec.is_fake = agentd->options.is_fake ? 1 : 0;
    grant_encode(grant, spec.grant);
    memcpy(spec.image, grant->image.bytes, sizeof(spec.image));
    memcpy(spec.upload, wanted->upload_image.bytes, sizeof(spec.upload));
    memcpy(spec.boot_id, agentd->boot_id, sizeof(agentd->boot_id));
    (void)attempt_name(grant->allocation, grant->attempt, spec.name);
    enum err rc = COPY_PATH(spec.cgroup, draft->cgroup);
    if (rc == ERR_OK)
        rc = COPY_PATH(spec.runtime, agentd->options.crun);
    if (rc == ERR_OK)
        rc = COPY_PATH(spec.runtime_root, agentd->runtime_root);
    if (rc == ERR_OK)
        rc = COPY_PATH(spec.image_store, agentd->store_path);
    if (rc == ERR_OK)
        rc = COPY_PATH(spec.lease, agentd->lease_path);
    if (rc == ERR_OK)
        rc = COPY_PATH(spec.notify, agentd->notify_path);
    return rc == ERR_OK ? attempt_write_spec(dirs, &spec, payload, e) : rc;
}

/* What an earlier try has left, which could not be removed then. Never what a shim has signed for.
 * Says only that it cannot look now; whatever else is wrong, making it anew tells. */
static enum err remove_leftover(const struct agentd *agentd, const char *name,
                                const struct attempt_paths *paths, struct error *e)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    AUTO(fd) int pidfd = -1;
    enum attempt_holder holder = ATTEMPT_LEFT;
    struct attempt_status status;
    enum err rc = attempt_dirs_open(paths->disk, paths->run, &dirs, e);
    if (rc == ERR_OK)
        rc = attempt_holder(&dirs, &holder, &pidfd, e);
    if (rc != ERR_OK)
        return err_is_shortage(e) ? rc : ERR_OK;
    if (holder == ATTEMPT_NEVER_RAN && attempt_read_status(&dirs, &status, NULL) == ERR_NOT_FOUND)
        (void)config_remove(agentd, name);
    return ERR_OK;
}

static enum err make_dirs(const struct agentd *agentd, const char *name, struct attempt_dirs *out,
                          struct error *e)
{
    struct attempt_paths paths;
    config_paths(agentd, name, &paths);
    enum err rc = ERR_OK;
    if (access(paths.disk, F_OK) == 0)
        rc = remove_leftover(agentd, name, &paths, e);
    if (rc != ERR_OK)
        return rc;
    if (mkdir(paths.disk, 0700) != 0)
        return err_errno(e, "make %s", paths.disk);
    /* The tenant's root passes through on its way to rootfs/, and can list nothing. */
    if (mkdir(paths.run, 0711) != 0 || chmod(paths.run, 0711) != 0)
        return err_errno(e, "make %s", paths.run);
    return attempt_dirs_open(paths.disk, paths.run, out, e);
}

static enum err write_config(const struct draft *draft, const struct attempt_dirs *dirs,
                             struct error *e)
{
    AUTO(buf) struct buf json = { 0 };
    AUTO(buf) struct buf hosts = { 0 };
    oci_config_write(&draft->config, &json);
    oci_hosts_write(&draft->config, &hosts);
    enum err rc = attempt_write_file(dirs->run, "config.json", buf_str(&json), e);
    if (rc == ERR_OK)
        rc = attempt_write_file(dirs->run, ATTEMPT_HOSTS_NAME, buf_str(&hosts), e);
    return rc;
}

enum err config_prepare(struct agentd *agentd, const struct grant *grant,
                        const struct wanted *wanted, struct attempt_dirs *dirs, struct error *e)
{
    const struct payload_entry *entry = desired_payload(agentd, &grant->payload);
    if (entry == NULL)
        return err_set(e, ERR_NOT_FOUND, "the payload is missing");
    struct str payload = { entry->bytes, entry->size };
    AUTO(draft) struct draft draft = { 0 };
    enum err rc = draft_make(agentd, grant, payload, &draft, e);
    if (rc != ERR_OK)
        return rc;

    char name[ATTEMPT_NAME_MAX];
    rc = make_dirs(agentd, attempt_name(grant->allocation, grant->attempt, name), dirs, e);
    if (rc == ERR_OK)
        rc = write_config(&draft, dirs, e);
    if (rc == ERR_OK)
        rc = write_spec(agentd, wanted, payload, &draft, dirs, e);
    if (rc == ERR_OK)
        rc = attempt_reserve(dirs, e);
    if (rc != ERR_OK)
        (void)config_remove(agentd, name); /* what is left is found at the next start */
    return rc;
}

/* The workload's environment first, then the command's own: the last one wins. */
static void merge_env(struct draft *draft, struct grant_payload *command)
{
    uint32_t count = draft->payload.env_count + command->env_count;
    struct str *env = arena_new(&draft->arena, (size_t)count + 1, sizeof(*env));
    for (uint32_t i = 0; i < draft->payload.env_count; i++)
        env[i] = draft->payload.env[i];
    for (uint32_t i = 0; i < command->env_count; i++)
        env[draft->payload.env_count + i] = command->env[i];
    command->env = env;
    command->env_count = count;
}

enum err config_command(struct agentd *agentd, const struct attempt *attempt,
                        const struct grant_payload *command, bool is_tty, const char *name,
                        struct error *e)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    AUTO(buf) struct buf payload = { 0 };
    AUTO(buf) struct buf json = { 0 };
    AUTO(draft) struct draft draft = { 0 };
    if (!attempt_open(agentd, attempt->name, &dirs))
        return err_set(e, ERR_CONFLICT,
                       "it is not running now; wait until it runs (`berth show` says its state)");
    enum err rc = attempt_read_payload(&dirs, &payload, e);
    if (rc == ERR_OK)
        rc = draft_make(agentd, &attempt->grant, buf_str(&payload), &draft, e);
    if (rc != ERR_OK)
        return rc;
    struct grant_payload merged = *command;
    merge_env(&draft, &merged);
    if (merged.working_dir.size == 0)
        merged.working_dir = draft.payload.working_dir;
    oci_process_write(&draft.config, &merged, is_tty, &json);
    return attempt_write_file(dirs.run, name, buf_str(&json), e);
}

static bool remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return errno == ENOENT;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int flags = entry->d_type == DT_DIR ? AT_REMOVEDIR : 0;
        (void)unlinkat(dirfd(dir), entry->d_name, flags); /* the rmdir below tells */
    }
    (void)closedir(dir);
    return rmdir(path) == 0;
}

bool config_remove(const struct agentd *agentd, const char *name)
{
    struct attempt_paths paths;
    config_paths(agentd, name, &paths);
    /* The one on disk last: as long as it is there the attempt is known. */
    return remove_dir(paths.run) && remove_dir(paths.disk);
}
