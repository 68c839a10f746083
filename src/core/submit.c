/*
 * submit.c - from what a person asks for to a workload in the queue. Everything that can
 * be known at once is refused at once, with the field and what to change; what merely
 * does not fit now waits.
 */
#include <string.h>

#include "core/decide.h"
#include "sched/charge.h"

enum {
    WORKLOAD_PRIORITY_MAX = 1000,
    WORKLOAD_PRIORITY_DEFAULT = 50,
    CPU_MILLI_DEFAULT = 500,
    MEMORY_MIB_DEFAULT = 512,
    GRACE_MAX_S = 900,
    RETRIES_MAX = 1000,
    FENCE_AFTER_DEFAULT_S = 300,
    DAY_S = 24 * 3600,
    YEAR_S = 366 * DAY_S,
    LIVE_OF_PROJECT_MAX = 2000000,
};

/* ---- bounds -------------------------------------------------------------------------------- */

static enum err check_numbers(const struct workload_spec *s, struct error *e)
{
    const struct range ranges[] = {
        { "count", s->count, 1, ARRAY_MAX },
        { "members", s->members, 1, MEMBERS_MAX },
        { "members_min", s->members_min, 1, given_or(s->members, 1) },
        { "priority", s->priority, 0, WORKLOAD_PRIORITY_MAX },
        { "time_limit_s", s->time_limit_s, 0, YEAR_S },
        { "grace_s", s->grace_s, 0, GRACE_MAX_S },
        { "retries", s->retries, 0, RETRIES_MAX },
        { "fence_after_s", s->fence_after_s, FENCE_AFTER_MIN_S, DAY_S },
        { "shm_mib", s->shm_mib, 0, INT64_C(1) << 30 },
        { "preemptible", s->preemptible, 0, PREEMPTIBLE_COUNT - 1 },
        { "restart", s->restart, 0, RESTART_POLICY_COUNT - 1 },
        { "on_contact_loss", s->on_contact_loss, 0, ON_CONTACT_LOSS_COUNT - 1 },
        { "topology.required", (int64_t)s->topology.required, 0, TOPOLOGY_COUNT - 1 },
        { "topology.preferred", (int64_t)s->topology.preferred, 0, TOPOLOGY_COUNT - 1 },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    if (rc == ERR_OK && s->topology.required != TOPOLOGY_NONE &&
        s->topology.preferred >= s->topology.required)
        return err_field(e, "topology.preferred",
                         "topology.preferred: what is preferred is closer than what is required;"
                         " leave it out, or prefer a smaller one");
    return rc;
}

struct bound {
    const char *field;
    size_t count;
    size_t max;
};

static enum err check_sizes(const struct decision *d, struct error *e)
{
    const struct workload_spec *s = &d->command->submit;
    const struct bound bounds[] = {
        { "command", s->command.count, ARGV_MAX },
        { "env", s->env.count, ENV_MAX },
        { "labels", s->labels.count, LABELS_MAX },
        { "mounts", s->mounts.count, MOUNTS_MAX },
        { "depends_on", s->depends_on.count, DEPENDENCIES_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        if (bounds[i].count > bounds[i].max)
            return err_field(e, bounds[i].field, "%s: %zu entries are more than %zu",
                             bounds[i].field, bounds[i].count, bounds[i].max);
    }
    if (d->command->spec_json.size > SPEC_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "the workload's description has %zu bytes, more than %d",
                       d->command->spec_json.size, SPEC_MAX_BYTES);
    return ERR_OK;
}

static bool is_env_name(struct str name)
{
    bool is_good = name.size > 0 && !(name.data[0] >= '0' && name.data[0] <= '9');
    for (size_t i = 0; i < name.size && is_good; i++) {
        char c = name.data[i];
        is_good =
            c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    }
    return is_good;
}

static enum err check_texts(const struct workload_spec *s, struct error *e)
{
    enum err rc = s->name.size > 0 ? check_name(s->name, "name", e) : ERR_OK;
    if (rc == ERR_OK && s->kind.size > 0 && !str_is(s->kind, "job"))
        rc = err_field(e, "kind", "kind: only \"job\" is supported");
    for (size_t i = 0; i < s->command.count && rc == ERR_OK; i++) {
        if (memchr(s->command.items[i].data, '\0', s->command.items[i].size) != NULL)
            rc = err_field(e, "command", "command: an argument contains a NUL byte");
    }
    for (size_t i = 0; i < s->env.count && rc == ERR_OK; i++) {
        const struct pair *pair = &s->env.items[i];
        if (!is_env_name(pair->name))
            rc = err_field(e, "env", "env: entry %zu has no valid name of a variable", i + 1);
        else if (pair->value.size > 0 && memchr(pair->value.data, '\0', pair->value.size) != NULL)
            rc = err_field(e, "env", "env: the value of %.*s contains a NUL byte",
                           STR_ARG(pair->name));
    }
    if (rc == ERR_OK && s->workdir.size > 0 && s->workdir.data[0] != '/')
        rc = err_field(e, "workdir", "workdir must be an absolute path");
    return rc;
}

/* ---- the request --------------------------------------------------------------------------- */

static bool wants_devices(const struct request *r)
{
    return r->gpu_milli > 0 || r->gpu_memory_mib > 0 || r->devices > 0 || r->mig_profile != MIG_ANY;
}

/* Device amounts given by hand replace those of the profile as a whole: they exclude each other. */
static void merge_amounts(const struct workload_spec *s, struct request *r)
{
    bool by_hand = s->gpu_milli != UNSET || s->gpu_memory_mib != UNSET || s->devices != UNSET ||
                   s->share_milli != UNSET || given_or(s->mig_profile, MIG_ANY) != MIG_ANY;
    if (by_hand) {
        r->gpu_milli = given_or(s->gpu_milli, 0);
        r->gpu_memory_mib = given_or(s->gpu_memory_mib, 0);
        r->devices = given_or(s->devices, 0);
        r->share_milli = given_or(s->share_milli, 0);
        r->mig_profile = (enum mig_name)given_or(s->mig_profile, MIG_ANY);
    }
    r->cpu_milli = given_or(s->cpu_milli, r->cpu_milli);
    r->memory_mib = given_or(s->memory_mib, r->memory_mib);
    if (r->cpu_milli == 0)
        r->cpu_milli = CPU_MILLI_DEFAULT;
    if (r->memory_mib == 0)
        r->memory_mib = MEMORY_MIB_DEFAULT;
    if (s->topology.required != TOPOLOGY_NONE || s->topology.preferred != TOPOLOGY_NONE) {
        r->required = s->topology.required;
        r->preferred = s->topology.preferred;
    }
}

/* The classes of the profile's pools, in their order. */
static void classes_of_pools(const struct state *state, const struct str_list *pools,
                             struct request *r)
{
    r->class_count = 0;
    for (size_t i = 0; i < pools->count; i++) {
        const struct pool_object *pool = state_pool_by_name(state, pools->items[i]);
        bool is_known = pool == NULL || r->class_count == REQUEST_CLASSES_MAX;
        for (size_t k = 0; k < r->class_count && !is_known; k++)
            is_known = r->class_numbers[k] == pool->r.class_number;
        if (!is_known)
            r->class_numbers[r->class_count++] = pool->r.class_number;
    }
}

static enum err check_class_kinds(const struct decision *d, const struct request *r,
                                  struct error *e)
{
    enum class_kind kind = wants_devices(r) ? CLASS_GPU : CLASS_CPU;
    for (size_t i = 0; i < r->class_count; i++) {
        const struct class_record *class = &state_class(d->state, r->class_numbers[i])->r;
        if (class->kind == kind)
            continue;
        return err_field(e, "classes",
                         kind == CLASS_GPU
                             ? "classes: %.*s has no devices; leave it out"
                             : "classes: %.*s has devices, but none are asked for;"
                               " give --gpus (gpu_milli), --gpu-memory (gpu_memory_mib) or"
                               " --devices (devices)",
                         STR_ARG(class->name));
    }
    return ERR_OK;
}

static enum err resolve_request(const struct decision *d, const struct project *project,
                                struct request *r, struct error *e)
{
    const struct workload_spec *s = &d->command->submit;
    *r = (struct request){ 0 };
    if (s->profile.size > 0) {
        const struct profile_object *profile = state_profile_by_name(d->state, s->profile);
        if (profile == NULL || !profile_is_for(&profile->r, project))
            return err_field(e, "profile", "profile: there is no profile \"%.*s\"",
                             STR_ARG(s->profile));
        *r = profile->r.request;
        if (profile->r.pools.count > 0)
            classes_of_pools(d->state, &profile->r.pools, r);
    }
    merge_amounts(s, r);
    enum err rc = check_request(r, e);
    if (rc == ERR_OK && s->classes.count > 0)
        rc = resolve_classes(d, &s->classes, r, e);
    if (rc == ERR_OK)
        rc = check_class_kinds(d, r, e);
    return rc;
}

/* ---- what it refers to --------------------------------------------------------------------- */

static enum err resolve_image(const struct decision *d, struct id tenant, struct digest *out,
                              struct error *e)
{
    struct str name = d->command->submit.image;
    if (name.size == 0)
        return err_field(e, "image", "image is missing; name one of `berth image list`");
    const struct image *image = state_image_by_name(d->state, tenant, name);
    if (image == NULL)
        return err_field(e, "image",
                         "image: there is no image \"%.*s\"; bring it in with `berth image import`",
                         (int)MIN_OF(name.size, (size_t)100), name.data);
    *out = image->r.manifest;
    return ERR_OK;
}

static enum err resolve_upload(const struct decision *d, struct id tenant, struct digest *out,
                               struct error *e)
{
    struct str text = d->command->submit.upload;
    struct digest digest;
    if (text.size == 0)
        return ERR_OK;
    if (!hex_decode(text, digest.bytes, sizeof(digest.bytes)))
        return err_field(e, "upload", "upload must be a SHA-256 in hexadecimal");
    for (const struct upload *u = d->state->first_upload; u != NULL; u = u->next) {
        if (!id_eq(u->r.tenant, tenant) || memcmp(&u->r.digest, &digest, sizeof(digest)) != 0)
            continue;
        *out = digest;
        return ERR_OK;
    }
    return err_field(e, "upload", "upload: nothing with this digest is stored; upload it first");
}

/* Its project's own work, or that of projects below. */
static enum err tie(const struct decision *d, const struct reservation *reservation,
                    struct workload_record *r, struct error *e)
{
    int64_t class_number = reservation->r.class_number;
    struct str class_name = state_class(d->state, class_number)->r.name;
    char text[MILLI_TEXT_MAX];
    bool is_named = r->request.class_count == 0;
    for (size_t i = 0; i < r->request.class_count; i++)
        is_named |= r->request.class_numbers[i] == class_number;
    if (!project_is_within(state_project(d->state, r->project), reservation->project))
        return err_field(e, "reservation", "reservation: %.*s is of project %.*s",
                         STR_ARG(reservation->r.name), STR_ARG(reservation->project->r.path));
    if (!is_named || !wants_devices(&r->request))
        return err_field(e, "reservation", "reservation: %.*s has devices of %.*s; ask for those",
                         STR_ARG(reservation->r.name), STR_ARG(class_name));
    r->request.class_numbers[0] = class_number;
    r->request.class_count = 1;
    int64_t charge = members_least(r) * request_charge(d->state, &r->request, class_number);
    if (charge > reservation->r.gpu_milli)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                         "it needs more %.*s than the %s of reservation %.*s; ask for less",
                         STR_ARG(class_name), milli_text(reservation->r.gpu_milli, text),
                         STR_ARG(reservation->r.name));
    r->reservation = reservation->r.id;
    return ERR_OK;
}

static struct volume *volume_named(const struct decision *d, struct id tenant, struct str name)
{
    struct id id;
    struct volume *volume = NULL;
    if (id_parse(ID_VOLUME, name, &id))
        volume = state_volume(d->state, id);
    else
        volume = state_volume_by_name(d->state, tenant, name);
    return volume != NULL && id_eq(volume->r.tenant, tenant) ? volume : NULL;
}

static enum err resolve_mounts(const struct decision *d, struct id tenant,
                               struct workload_record *r, struct error *e)
{
    const struct mount_list *mounts = &d->command->submit.mounts;
    struct id node = { 0 };
    r->volumes.items = arena_new(d->arena, mounts->count, sizeof(*r->volumes.items));
    r->volumes.count = 0;
    for (size_t i = 0; i < mounts->count; i++) {
        const struct mount_spec *mount = &mounts->items[i];
        const struct volume *volume = volume_named(d, tenant, mount->volume);
        if (volume == NULL)
            return err_field(e, "mounts.volume", "mounts: there is no volume \"%.*s\"",
                             (int)MIN_OF(mount->volume.size, (size_t)100), mount->volume.data);
        if (mount->path.size < 2 || mount->path.data[0] != '/')
            return err_field(e, "mounts.path", "mounts: path must be absolute, and not \"/\"");
        for (size_t k = 0; k < i; k++) {
            if (str_eq(mounts->items[k].path, mount->path))
                return err_field(e, "mounts.path", "mounts: path %.*s is used twice",
                                 (int)MIN_OF(mount->path.size, (size_t)100), mount->path.data);
        }
        if (!id_is_none(node) && !id_is_none(volume->r.node) && !id_eq(node, volume->r.node))
            return err_field(e, "mounts.volume",
                             "mounts: the volumes are on different nodes; no node has them all");
        node = id_is_none(volume->r.node) ? node : volume->r.node;
        r->volumes.items[r->volumes.count++] = volume->r.id;
    }
    return ERR_OK;
}

/* Its devices are what it is for: of that class, and no more at once than it has. */
static enum err resolve_reservation(const struct decision *d, struct id tenant,
                                    struct workload_record *r, struct error *e)
{
    struct str name = d->command->submit.reservation;
    struct id id;
    struct reservation *reservation = NULL;
    if (name.size == 0)
        return ERR_OK;
    if (id_parse(ID_RESERVATION, name, &id))
        reservation = state_reservation(d->state, id);
    else
        reservation = state_reservation_by_name(d->state, tenant, name);
    if (reservation == NULL || !id_eq(reservation->project->tenant->r.id, tenant))
        return err_field(e, "reservation", "reservation: there is no reservation \"%.*s\"",
                         (int)MIN_OF(name.size, (size_t)100), name.data);
    if (reservation_state_is_final(reservation->r.state))
        return err_field(e, "reservation", "reservation: %.*s is %s; no window of it is left",
                         STR_ARG(reservation->r.name),
                         enum_name(&reservation_state_names, reservation->r.state));
    return tie(d, reservation, r, e);
}

/* The tenant of a workload or of an array's workloads; none: no such thing. */
static struct id tenant_of_work(const struct state *state, struct id id)
{
    const struct workload *workload = state_workload(state, id);
    if (workload == NULL)
        workload = state_array(state, id);
    return workload != NULL ? workload->project->tenant->r.id : (struct id){ 0 };
}

static enum err resolve_dependencies(const struct decision *d, struct id tenant,
                                     struct dependency_list *out, struct error *e)
{
    const struct dependency_spec_list *specs = &d->command->submit.depends_on;
    out->items = arena_new(d->arena, specs->count, sizeof(*out->items));
    out->count = 0;
    for (size_t i = 0; i < specs->count; i++) {
        const struct dependency_spec *spec = &specs->items[i];
        const struct range when = { "depends_on.when", spec->when, 0, DEPENDENCY_WHEN_COUNT - 1 };
        enum err rc = check_ranges(&when, 1, e);
        if (rc != ERR_OK)
            return rc;
        struct id id = { 0 };
        bool is_id =
            id_parse(ID_WORKLOAD, spec->workload, &id) || id_parse(ID_ARRAY, spec->workload, &id);
        if (!is_id || !id_eq(tenant_of_work(d->state, id), tenant))
            return err_field(e, "depends_on.workload",
                             "depends_on: there is no workload \"%.*s\" (work that ended long ago"
                             " cannot be waited for)",
                             (int)MIN_OF(spec->workload.size, (size_t)64), spec->workload.data);
        out->items[out->count++] =
            (struct dependency){ id, (enum dependency_when)given_or(spec->when, AFTER_OK) };
    }
    return ERR_OK;
}

/* ---- what can never be admitted ------------------------------------------------------------ */

/* The first level of the path that can never take that much of the class; NULL: all can. */
static const struct project *level_that_refuses(const struct decision *d,
                                                const struct workload_record *r,
                                                const struct project *project, int64_t class_number,
                                                int64_t charge, int64_t *bound)
{
    for (const struct project *p = project; p != NULL; p = p->parent) {
        int64_t limit = project_quota(p, class_number).limit_milli;
        int64_t quota = sched_quota(d->sched, p, class_number);
        bool is_over_limit = limit != UNBOUNDED && charge > limit;
        bool is_over_quota = r->preemptible == PREEMPTIBLE_NEVER && charge > quota;
        if (!is_over_limit && !is_over_quota)
            continue;
        *bound = is_over_limit ? limit : quota;
        return p;
    }
    return NULL;
}

/* What refuses the work in one class. */
struct bounded {
    const struct project *level; /* NULL: nothing yet */
    int64_t class_number;
    int64_t charge;
    int64_t bound; /* 0: the class is not for this project at all */
};

/* The classes that the project may use, of what asks for devices as this does; "none". */
static const char *classes_for(const struct decision *d, const struct project *project,
                               const struct request *r)
{
    enum class_kind kind = wants_devices(r) ? CLASS_GPU : CLASS_CPU;
    const char *out = "";
    for (size_t i = 0; i < d->state->classes.count; i++) {
        const struct class_object *class = d->state->classes.items[i];
        const struct project *p = project;
        while (p != NULL && project_quota(p, (int64_t)i).limit_milli != 0)
            p = p->parent;
        if (p == NULL && !class->is_removed && class->r.kind == kind)
            out = arena_format(d->arena, "%s%s%.*s", out, *out != '\0' ? ", " : "",
                               STR_ARG(class->r.name));
    }
    return *out != '\0' ? out : "none";
}

static enum err refuse_bounds(const struct decision *d, const struct workload_record *r,
                              const struct project *project, const struct bounded *by,
                              struct error *e)
{
    char charge_text[MILLI_TEXT_MAX];
    char bound_text[MILLI_TEXT_MAX];
    struct str class_name = state_class(d->state, by->class_number)->r.name;
    if (project_quota(by->level, by->class_number).limit_milli == 0)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT, "%.*s may not use %.*s; it may use: %s",
                         STR_ARG(by->level->r.path), STR_ARG(class_name),
                         classes_for(d, project, &r->request));
    bool is_fixed = r->preemptible == PREEMPTIBLE_NEVER;
    return err_cause(
        e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT, "it needs %s %.*s, but %.*s may %s %s; ask for less%s",
        milli_text(by->charge, charge_text), STR_ARG(class_name), STR_ARG(by->level->r.path),
        is_fixed ? "use for work that is never preempted at most" : "use at most",
        milli_text(by->bound, bound_text), is_fixed ? ", or let it be preemptible" : "");
}

/* Of several classes that refuse it, the one that takes most speaks: what is not for the project
 * at all is of no use to hear about beside it. */
static enum err check_bounds(const struct decision *d, const struct workload_record *r,
                             const struct project *project, struct error *e)
{
    struct bounded by = { .level = NULL };
    size_t count = request_class_count(d->state, &r->request);
    for (size_t i = 0; i < count; i++) {
        struct bounded next = { .class_number = request_class(d->state, &r->request, i) };
        if (next.class_number < 0)
            continue;
        next.charge = members_least(r) * request_charge(d->state, &r->request, next.class_number);
        next.level = level_that_refuses(d, r, project, next.class_number, next.charge, &next.bound);
        if (next.level == NULL)
            return ERR_OK;
        if (by.level == NULL || next.bound >= by.bound)
            by = next;
    }
    /* No class at all: said by the next check. */
    return by.level == NULL ? ERR_OK : refuse_bounds(d, r, project, &by, e);
}

/* "; h100-80g has the partitions 1g.10gb, ... and none that covers it", or "". */
static const char *uncovered(const struct decision *d, const struct request *r)
{
    const char *out = "";
    for (size_t i = 0; i < d->state->classes.count; i++) {
        const struct class_object *class = state_class(d->state, (int64_t)i);
        bool is_named = r->class_count == 0;
        for (size_t k = 0; k < r->class_count; k++)
            is_named = is_named || r->class_numbers[k] == (int64_t)i;
        if (!is_named || class->is_removed)
            continue;
        const struct slicing_need need = request_slice(d->state, r, (int64_t)i);
        if (need.table == NULL || need.profile != NULL)
            continue;
        out = arena_format(d->arena, "%s; %.*s has the partitions", out, STR_ARG(class->r.name));
        for (size_t k = 0; k < MIG_PROFILES_MAX; k++)
            out = arena_format(d->arena, "%s%s %s", out, k > 0 ? "," : "",
                               enum_name(&mig_names, need.table->profiles[k].name));
        out = arena_format(d->arena, "%s, and none that covers what is asked for", out);
    }
    return out;
}

/* Which of what one member wants is more than any node has; "": none alone. */
static const char *excess(const struct decision *d, const struct request *r)
{
    char text[MILLI_TEXT_MAX];
    char most_text[MILLI_TEXT_MAX];
    struct node_most most = sched_most(d->sched, r);
    int64_t devices = r->devices > 0 ? r->devices : (r->gpu_milli + 999) / 1000;
    const char *out = uncovered(d, r);
    if (devices > most.devices)
        out = arena_format(d->arena, "%s; it asks for %lld devices, and a node has at most %lld",
                           out, (long long)devices, (long long)most.devices);
    if (r->gpu_memory_mib > most.device_mib)
        out = arena_format(d->arena,
                           "%s; it asks for %lld MiB of one device, and a device has at most %lld",
                           out, (long long)r->gpu_memory_mib, (long long)most.device_mib);
    if (r->cpu_milli > most.cpu_milli)
        out = arena_format(d->arena, "%s; it asks for %s cores, and a node has at most %s", out,
                           milli_text(r->cpu_milli, text), milli_text(most.cpu_milli, most_text));
    if (r->memory_mib > most.memory_mib)
        out = arena_format(d->arena,
                           "%s; it asks for %lld MiB of memory, and a node has at most %lld MiB",
                           out, (long long)r->memory_mib, (long long)most.memory_mib);
    return out;
}

static enum err check_admissible(const struct decision *d, const struct workload_record *r,
                                 const struct project *project, struct error *e)
{
    enum err rc = check_bounds(d, r, project, e);
    if (rc != ERR_OK)
        return rc;
    if (!sched_could_ever_fit(d->sched, &r->request))
        return err_cause(e, ERR_INVALID, CAUSE_NO_MATCHING_CLASS,
                         "no node of the named classes could hold one member, even if it were"
                         " empty%s; ask for less on one node, or for another class",
                         excess(d, &r->request));
    size_t count = (size_t)given_or(d->command->submit.count, 1);
    if (project->live_workloads + count > LIVE_OF_PROJECT_MAX)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                         "the project has %zu workloads that have not ended; wait for some",
                         project->live_workloads);
    return ERR_OK;
}

/* ---- the workloads ------------------------------------------------------------------------- */

static void fill_numbers(const struct decision *d, struct workload_record *r)
{
    const struct workload_spec *s = &d->command->submit;
    r->members = given_or(s->members, 1);
    r->members_min = given_or(s->members_min, r->members);
    r->priority = given_or(s->priority, WORKLOAD_PRIORITY_DEFAULT);
    r->preemptible = (enum preemptible)given_or(s->preemptible, PREEMPTIBLE_ALWAYS);
    r->time_limit_s = given_or(s->time_limit_s, 0);
    r->grace_s = given_or(s->grace_s, d->state->settings.grace_s);
    r->retries = given_or(s->retries, 0);
    r->restart = (enum restart_policy)given_or(s->restart, RESTART_ON_FAILURE);
    r->on_contact_loss = (enum on_contact_loss)given_or(s->on_contact_loss, LOSS_RESTART);
    r->fence_after_s = given_or(s->fence_after_s, FENCE_AFTER_DEFAULT_S);
    r->state = s->is_held ? WL_HELD : WL_QUEUED;
    r->cause = s->is_held ? CAUSE_HELD : CAUSE_NONE;
}

static void add_workloads(struct decision *d, const struct workload_record *one, struct id tenant)
{
    const struct workload_spec *s = &d->command->submit;
    struct str name = s->name.size > 0 ? s->name : STR("job");
    int64_t count = given_or(s->count, 1);
    for (int64_t i = 0; i < count; i++) {
        struct workload_record *r =
            &decide_add(d, EV_WORKLOAD_SUBMITTED, tenant)->workload_submitted;
        *r = *one;
        r->id = d->command->new_id;
        r->name = name;
        if (count == 1)
            continue;
        r->array = d->command->new_id;
        r->array_index = i;
        r->id = decide_id(d, (uint64_t)i + 1);
        r->name = str_of(arena_format(d->arena, "%.*s.%lld", STR_ARG(name), (long long)i));
    }
}

enum err decide_workload_submit(struct decision *d, struct error *e)
{
    const struct workload_spec *s = &d->command->submit;
    struct project *project = NULL;
    enum err rc = find_project(d, s->project, "project", &project, e);
    if (rc == ERR_OK)
        rc = check_numbers(s, e);
    if (rc == ERR_OK)
        rc = check_sizes(d, e);
    if (rc == ERR_OK)
        rc = check_texts(s, e);
    if (rc != ERR_OK)
        return rc;

    struct id tenant = project->tenant->r.id;
    struct workload_record r = { .project = project->r.id,
                                 .user = d->actor.name,
                                 .kind = KIND_JOB,
                                 .spec_json = d->command->spec_json };
    fill_numbers(d, &r);
    rc = resolve_request(d, project, &r.request, e);
    if (rc == ERR_OK)
        rc = resolve_image(d, tenant, &r.image, e);
    if (rc == ERR_OK)
        rc = resolve_upload(d, tenant, &r.upload, e);
    if (rc == ERR_OK)
        rc = resolve_mounts(d, tenant, &r, e);
    if (rc == ERR_OK)
        rc = resolve_reservation(d, tenant, &r, e);
    if (rc == ERR_OK)
        rc = resolve_dependencies(d, tenant, &r.depends_on, e);
    if (rc == ERR_OK)
        rc = check_admissible(d, &r, project, e);
    if (rc == ERR_OK)
        add_workloads(d, &r, tenant);
    return rc;
}
