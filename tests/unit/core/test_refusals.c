/* Every refusal: its code, its cause, the field at fault; and that nothing happens then. */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

static const struct lab_quota no_quota;

static void world(struct lab *lab)
{
    lab_init(lab);
    lab_add_node(lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(lab, "amber",
                (struct lab_quota){ "h100", .quota_milli = 2000, .limit_milli = 3000 });
    lab_project(lab, "birch", no_quota);
}

static struct actor member_of(const struct lab *lab, const char *tenant)
{
    struct actor actor = { .role = ROLE_MEMBER, .name = STR("ann") };
    actor.tenant = state_project_by_path(lab->state, str_of(tenant))->r.id;
    return actor;
}

/* ---- submissions --------------------------------------------------------------------------- */

static struct workload_spec spec_of(void)
{
    return (struct workload_spec){
        .project = STR("amber"),
        .image = STR("debian-12"),
        .count = UNSET,
        .gpu_milli = UNSET,
        .gpu_memory_mib = UNSET,
        .devices = UNSET,
        .share_milli = UNSET,
        .cpu_milli = UNSET,
        .memory_mib = UNSET,
        .shm_mib = UNSET,
        .members = UNSET,
        .members_min = UNSET,
        .priority = UNSET,
        .time_limit_s = UNSET,
        .grace_s = UNSET,
        .retries = UNSET,
        .fence_after_s = UNSET,
        .preemptible = UNSET,
        .restart = UNSET,
        .on_contact_loss = UNSET,
    };
}

struct submit_case {
    const char *name;
    void (*change)(struct workload_spec *spec);
    enum err code;
    enum cause cause;
    const char *field;
};

/* clang-format off */
#define CHANGE(name, ...) static void name(struct workload_spec *s) { __VA_ARGS__; }
CHANGE(no_project, s->project = STR(""))
CHANGE(absent_project, s->project = STR("cedar"))
CHANGE(no_image, s->image = STR(""))
CHANGE(absent_image, s->image = STR("debian-13"))
CHANGE(other_kind, s->kind = STR("session"))
CHANGE(bad_name, s->name = STR("Upper Case"))
CHANGE(no_count, s->count = 0)
CHANGE(large_count, s->count = ARRAY_MAX + 1)
CHANGE(no_members, s->members = 0)
CHANGE(no_members_min, s->members = 2; s->members_min = 0)
CHANGE(more_min_than_members, s->members = 2; s->members_min = 3)
CHANGE(large_priority, s->priority = 1001)
CHANGE(negative_limit, s->time_limit_s = -1)
CHANGE(long_grace, s->grace_s = 901)
CHANGE(fence_within_two_heartbeats, s->fence_after_s = 11)
CHANGE(many_retries, s->retries = 1001)
CHANGE(one_and_a_half, s->gpu_milli = 1500)
CHANGE(negative_gpu, s->gpu_milli = -1)
CHANGE(two_ways, s->gpu_milli = 1000; s->gpu_memory_mib = 100)
CHANGE(devices_alone, s->devices = 2)
CHANGE(share_alone, s->share_milli = 500)
CHANGE(absent_class, static struct str c[] = { { "mi300x", 6 } }; s->classes = (struct str_list){ c, 1 })
CHANGE(class_twice, static struct str c[] = { { "h100", 4 }, { "h100", 4 } }; s->classes = (struct str_list){ c, 2 }; s->gpu_milli = 1000)
CHANGE(gpu_of_cores, static struct str c[] = { { "cpu-x86", 7 } }; s->classes = (struct str_list){ c, 1 }; s->gpu_milli = 1000)
CHANGE(cores_of_gpu, static struct str c[] = { { "h100", 4 } }; s->classes = (struct str_list){ c, 1 })
CHANGE(absent_profile, s->profile = STR("gpu-9"))
CHANGE(absent_volume, static struct mount_spec m = { { "data", 4 }, { "/data", 5 }, false }; s->mounts = (struct mount_list){ &m, 1 })
CHANGE(absent_upload, s->upload = STR("0000000000000000000000000000000000000000000000000000000000000001"))
CHANGE(bad_upload, s->upload = STR("xyz"))
CHANGE(bad_variable, static struct pair p = { { "9X", 2 }, { "1", 1 } }; s->env = (struct pair_list){ &p, 1 })
CHANGE(relative_workdir, s->workdir = STR("tmp"))
CHANGE(absent_dependency, static struct dependency_spec d = { { "wl_0000000000000000000000000g", 29 }, UNSET }; s->depends_on = (struct dependency_spec_list){ &d, 1 })
CHANGE(bad_dependency, static struct dependency_spec d = { { "x", 1 }, UNSET }; s->depends_on = (struct dependency_spec_list){ &d, 1 })
CHANGE(over_limit, s->gpu_milli = 1000; s->members = 4)
CHANGE(over_fixed_quota, s->gpu_milli = 3000; s->preemptible = PREEMPTIBLE_NEVER)
CHANGE(too_wide, s->project = STR("birch"); s->gpu_milli = 5000)
CHANGE(too_few_cores, s->cpu_milli = MEMBER_CPU_MILLI_MIN - 1)
CHANGE(too_many_cores, s->cpu_milli = 65000)
CHANGE(too_much_memory, s->project = STR("birch"); s->gpu_memory_mib = 90000)

static const struct submit_case submit_cases[] = {
    { "a project is needed", no_project, ERR_INVALID, CAUSE_NONE, "project" },
    { "an absent project", absent_project, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "" },
    { "an image is needed", no_image, ERR_INVALID, CAUSE_NONE, "image" },
    { "an absent image", absent_image, ERR_INVALID, CAUSE_NONE, "image" },
    { "only jobs for now", other_kind, ERR_INVALID, CAUSE_NONE, "kind" },
    { "a name that is none", bad_name, ERR_INVALID, CAUSE_NONE, "name" },
    { "an array of nothing", no_count, ERR_INVALID, CAUSE_NONE, "count" },
    { "an array too large", large_count, ERR_INVALID, CAUSE_NONE, "count" },
    { "a gang of nobody", no_members, ERR_INVALID, CAUSE_NONE, "members" },
    { "a minimum of nobody", no_members_min, ERR_INVALID, CAUSE_NONE, "members_min" },
    { "a minimum above the members", more_min_than_members, ERR_INVALID, CAUSE_NONE, "members_min" },
    { "a priority too high", large_priority, ERR_INVALID, CAUSE_NONE, "priority" },
    { "a negative limit", negative_limit, ERR_INVALID, CAUSE_NONE, "time_limit_s" },
    { "a grace too long", long_grace, ERR_INVALID, CAUSE_NONE, "grace_s" },
    { "a fence before two heartbeats", fence_within_two_heartbeats, ERR_INVALID, CAUSE_NONE, "fence_after_s" },
    { "too many retries", many_retries, ERR_INVALID, CAUSE_NONE, "retries" },
    { "one and a half devices", one_and_a_half, ERR_INVALID, CAUSE_NONE, "gpu_milli" },
    { "less than nothing", negative_gpu, ERR_INVALID, CAUSE_NONE, "gpu_milli" },
    { "two ways of asking", two_ways, ERR_INVALID, CAUSE_NONE, "gpu_milli" },
    { "devices without a share", devices_alone, ERR_INVALID, CAUSE_NONE, "devices" },
    { "a share without devices", share_alone, ERR_INVALID, CAUSE_NONE, "devices" },
    { "an absent class", absent_class, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "classes" },
    { "a class named twice", class_twice, ERR_INVALID, CAUSE_NONE, "classes" },
    { "devices of a class of cores", gpu_of_cores, ERR_INVALID, CAUSE_NONE, "classes" },
    { "cores of a class of devices", cores_of_gpu, ERR_INVALID, CAUSE_NONE, "classes" },
    { "an absent profile", absent_profile, ERR_INVALID, CAUSE_NONE, "profile" },
    { "an absent volume", absent_volume, ERR_INVALID, CAUSE_NONE, "mounts.volume" },
    { "an absent upload", absent_upload, ERR_INVALID, CAUSE_NONE, "upload" },
    { "a digest that is none", bad_upload, ERR_INVALID, CAUSE_NONE, "upload" },
    { "a variable that is none", bad_variable, ERR_INVALID, CAUSE_NONE, "env" },
    { "a relative directory", relative_workdir, ERR_INVALID, CAUSE_NONE, "workdir" },
    { "an absent dependency", absent_dependency, ERR_INVALID, CAUSE_NONE, "depends_on.workload" },
    { "a dependency that is none", bad_dependency, ERR_INVALID, CAUSE_NONE, "depends_on.workload" },
    { "more than the limit", over_limit, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT, "" },
    { "more than the quota, never preempted", over_fixed_quota, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT, "" },
    { "more than any node has", too_wide, ERR_INVALID, CAUSE_NO_MATCHING_CLASS, "" },
    { "a share that no kernel can give", too_few_cores, ERR_INVALID, CAUSE_NONE, "cpu_milli" },
    { "more cores than any node has", too_many_cores, ERR_INVALID, CAUSE_NO_MATCHING_CLASS, "" },
    { "more memory than any device has", too_much_memory, ERR_INVALID, CAUSE_NO_MATCHING_CLASS, "" },
};
/* clang-format on */

static void submissions(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    FOR_EACH_CASE (c, submit_cases) {
        struct command command = { .type = CMD_WORKLOAD_SUBMIT, .submit = spec_of() };
        command.spec_json = STR("{}");
        c->change(&command.submit);
        uint64_t sequence = lab.state->sequence;
        lab.e = (struct error){ 0 };
        enum err rc = lab_do(&lab, &command);
        CHECK(c->name, rc == c->code);
        CHECK(c->name, lab.e.code == c->code && lab.e.cause == c->cause);
        CHECK(c->name, strcmp(lab.e.field, c->field) == 0);
        CHECK(c->name, lab.e.text[0] != '\0');
        CHECK(c->name, lab.state->sequence == sequence);
    }
}

/* ---- foreign is absent --------------------------------------------------------------------- */

static void text_of(struct lab *lab, struct command command, struct id id, char out[320])
{
    command.target.id = id;
    command.target.name = STR("wl_x");
    command.new_id = (struct id){ 0 };
    CHECK(command_name(command.type), lab_do(lab, &command) == ERR_NOT_FOUND);
    memcpy(out, lab->e.text, sizeof(lab->e.text));
}

static void foreign_objects_are_absent(void **state)
{
    (void)state;
    static const enum command_type types[] = {
        CMD_WORKLOAD_CANCEL, CMD_WORKLOAD_HOLD, CMD_WORKLOAD_RELEASE, CMD_WORKLOAD_REQUEUE,
        CMD_VOLUME_REMOVE,   CMD_VOLUME_PLACE,  CMD_IMAGE_REMOVE,
    };
    AUTO(lab) struct lab lab;
    world(&lab);
    struct id job = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000 });
    struct id array = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 2 });
    struct command make = { .type = CMD_VOLUME_CREATE, .actor = member_of(&lab, "birch") };
    make.volume_create = (struct volume_spec){ .name = STR("data"), .quota_mib = UNSET };
    lab_must(&lab, &make);
    const struct id theirs[] = { job, array, lab.state->first_volume->r.id,
                                 lab.state->first_image->r.id };
    const struct id nothing = { 9, 9 };
    FOR_EACH_CASE (type, types) {
        struct command command = { .type = *type, .actor = member_of(&lab, "amber") };
        char absent[320];
        text_of(&lab, command, nothing, absent);
        FOR_EACH_CASE (id, theirs) {
            char foreign[320];
            text_of(&lab, command, *id, foreign);
            CHECK("byte for byte", memcmp(foreign, absent, sizeof(absent)) == 0);
        }
    }
    struct lab_job submit = { "birch", .gpu_milli = 1000, .actor = member_of(&lab, "amber") };
    CHECK("no work in a foreign project", id_is_none(lab_submit(&lab, submit)));
    CHECK("which is absent", lab.e.code == ERR_NOT_FOUND);
    submit = (struct lab_job){ "amber", .gpu_milli = 1000, .after = job,
                               .actor = member_of(&lab, "amber") };
    CHECK("nor after foreign work", id_is_none(lab_submit(&lab, submit)));
    submit = (struct lab_job){ "amber", .gpu_milli = 1000, .volume = "data",
                               .actor = member_of(&lab, "amber") };
    CHECK("nor with a foreign volume", id_is_none(lab_submit(&lab, submit)));
}

static void members_do_not_operate(void **state)
{
    (void)state;
    static const enum command_type types[] = {
        CMD_SETTINGS_SET,      CMD_CLASS_SET,      CMD_CLASS_REMOVE,
        CMD_POOL_SET,          CMD_POOL_REMOVE,    CMD_PROFILE_SET,
        CMD_PROFILE_REMOVE,    CMD_PROJECT_CREATE, CMD_PROJECT_UPDATE,
        CMD_PROJECT_REMOVE,    CMD_TOKEN_CREATE,   CMD_TOKEN_REVOKE,
        CMD_NODE_JOIN,         CMD_NODE_RENEW,     CMD_NODE_INVENTORY,
        CMD_NODE_OBSERVED,     CMD_NODE_CONTACT,   CMD_NODE_CORDON,
        CMD_NODE_UNCORDON,     CMD_NODE_DRAIN,     CMD_NODE_UNDRAIN,
        CMD_NODE_CONFIRM_LOST, CMD_NODE_REMOVE,    CMD_DEVICE_HOLD,
        CMD_DEVICE_RELEASE,    CMD_TICK,           CMD_CONTROLLER_START,
    };
    AUTO(lab) struct lab lab;
    world(&lab);
    FOR_EACH_CASE (type, types) {
        struct command command = { .type = *type, .actor = member_of(&lab, "amber") };
        command.target.name = STR("n1");
        CHECK(command_name(*type), lab_do(&lab, &command) == ERR_DENIED);
        CHECK(command_name(*type), lab.e.cause == CAUSE_NOT_PERMITTED);
    }
}

/* ---- projects and their sums --------------------------------------------------------------- */

struct project_case {
    const char *name;
    const char *path;
    int64_t quota_milli;
    bool is_forced;
    enum err code;
    enum cause cause;
};

/* clang-format off */
static const struct project_case project_cases[] = {
    { "exists already", "amber", 0, false, ERR_CONFLICT, CAUSE_CONFLICT },
    { "no parent", "cedar/x", 0, false, ERR_NOT_FOUND, CAUSE_NOT_FOUND },
    { "no path", "", 0, false, ERR_INVALID, CAUSE_NONE },
    { "an empty component", "amber//x", 0, false, ERR_INVALID, CAUSE_NONE },
    { "a slash at the end", "amber/", 0, false, ERR_INVALID, CAUSE_NONE },
    { "upper case", "amber/X", 0, false, ERR_INVALID, CAUSE_NONE },
    { "too deep", "a/b/c/d/e/f/g/h/i", 0, false, ERR_INVALID, CAUSE_NONE },
    { "more than the parent has", "amber/x", 2001, false, ERR_CONFLICT, CAUSE_OVERCOMMITTED },
    { "all that the parent has", "amber/x", 2000, false, ERR_OK, CAUSE_NONE },
    { "and no more", "amber/y", 1, false, ERR_CONFLICT, CAUSE_OVERCOMMITTED },
    { "unless by force", "amber/y", 1, true, ERR_OK, CAUSE_NONE },
    { "more than is installed", "cedar", 2001, false, ERR_CONFLICT, CAUSE_OVERCOMMITTED },
    { "all that is installed", "cedar", 2000, false, ERR_OK, CAUSE_NONE },
    { "a child of one without a quota counts", "birch/x", 1, false, ERR_CONFLICT, CAUSE_OVERCOMMITTED },
};
/* clang-format on */

static void sums_of_guarantees(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    FOR_EACH_CASE (c, project_cases) {
        struct quota_spec quota = { STR("h100"), c->quota_milli, UNSET, UNSET, UNSET };
        struct command command = { .type = CMD_PROJECT_CREATE };
        command.project = (struct project_spec){ .path = str_of(c->path),
                                                 .priority = UNSET,
                                                 .quotas = { &quota, 1 },
                                                 .is_forced = c->is_forced };
        lab.e = (struct error){ 0 };
        CHECK(c->name, lab_do(&lab, &command) == c->code);
        CHECK(c->name, lab.e.cause == c->cause);
    }
    const struct project *forced = state_project_by_path(lab.state, STR("amber/y"));
    CHECK("and is flagged", forced->r.is_overcommitted);
    struct quota_spec less = { STR("h100"), 1999, UNSET, UNSET, UNSET };
    struct command lower = { .type = CMD_PROJECT_UPDATE };
    lower.project =
        (struct project_spec){ .path = STR("amber"), .priority = UNSET, .quotas = { &less, 1 } };
    CHECK("a parent keeps what its children are promised", lab_do(&lab, &lower) == ERR_CONFLICT);
    less.quota_milli = 0;
    CHECK("nor is its own taken away",
          lab_do(&lab, &lower) == ERR_CONFLICT && lab.e.cause == CAUSE_OVERCOMMITTED);
    lower.if_match = 1;
    CHECK("an old version", lab_do(&lab, &lower) == ERR_CONFLICT && lab.e.cause == CAUSE_CONFLICT);
}

static void limits_of_logs(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = { .type = CMD_PROJECT_UPDATE };
    struct project_spec *spec = &command.project;
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    *spec = (struct project_spec){
        .path = STR("amber"), .priority = UNSET, .log_quota_mib = 64, .log_days = UNSET
    };
    CHECK("set", lab_do(&lab, &command) == ERR_OK && amber->r.log_quota_mib == 64);
    spec->log_quota_mib = UNSET;
    spec->log_days = 7;
    CHECK("the other stays", lab_do(&lab, &command) == ERR_OK && amber->r.log_quota_mib == 64 &&
                                 amber->r.log_days == 7);
    spec->log_days = LOG_DAYS_MAX + 1;
    CHECK("too long",
          lab_do(&lab, &command) == ERR_INVALID && strcmp(lab.e.field, "log_days") == 0);
    spec->log_days = UNSET;
    spec->log_quota_mib = -1;
    CHECK("negative",
          lab_do(&lab, &command) == ERR_INVALID && strcmp(lab.e.field, "log_quota_mib") == 0);
    CHECK("and nothing has changed", amber->r.log_quota_mib == 64 && amber->r.log_days == 7);
}

static enum err remove_project(struct lab *lab, const char *path)
{
    struct command command = { .type = CMD_PROJECT_REMOVE };
    command.target.name = str_of(path);
    return lab_do(lab, &command);
}

static void projects_are_removed_empty(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    lab_project(&lab, "amber/x", no_quota);
    CHECK("not with children", remove_project(&lab, "amber") == ERR_CONFLICT);
    struct id job = lab_submit(&lab, (struct lab_job){ "amber/x", .gpu_milli = 1000 });
    CHECK("not with live work", remove_project(&lab, "amber/x") == ERR_CONFLICT);
    lab_settle(&lab);
    lab_exit(&lab, job, 0, 0);
    lab_settle(&lab);
    CHECK("ended work goes along", remove_project(&lab, "amber/x") == ERR_OK);
    CHECK("it is forgotten", state_workload(lab.state, job) == NULL);
    CHECK("then the tenant", remove_project(&lab, "amber") == ERR_OK);
    CHECK("once", remove_project(&lab, "amber") == ERR_NOT_FOUND);
    lab_settle(&lab);
}

/* ---- configuration ------------------------------------------------------------------------- */

static void settings_have_bounds(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = { .type = CMD_SETTINGS_SET, .settings = lab_no_settings() };
    uint64_t sequence = lab.state->sequence;
    CHECK("nothing given changes nothing",
          lab_do(&lab, &command) == ERR_OK && lab.state->sequence == sequence);
    command.settings.grace_s = -1;
    CHECK("out of bounds",
          lab_do(&lab, &command) == ERR_INVALID && strcmp(lab.e.field, "grace_s") == 0);
    command.settings = lab_no_settings();
    command.settings.unknown_after_s = 500;
    CHECK("unknown before lost", lab_do(&lab, &command) == ERR_INVALID);
    command.settings = lab_no_settings();
    command.settings.reclaim_to = RECLAIM_TO_FAIR_SHARE;
    CHECK("how far reclaim goes", lab_do(&lab, &command) == ERR_OK &&
                                      lab.state->settings.reclaim_to == RECLAIM_TO_FAIR_SHARE);
    command.settings = lab_no_settings();
    command.settings.placement = PLACE_BEST_FIT;
    CHECK("which node work goes to",
          lab_do(&lab, &command) == ERR_OK && lab.state->settings.placement == PLACE_BEST_FIT);
    command.settings = lab_no_settings();
    command.settings.backoff_base_s = 5;
    CHECK("one field", lab_do(&lab, &command) == ERR_OK && lab.state->settings.backoff_base_s == 5);
    CHECK("others keep", lab.state->settings.grace_s == 60);
}

static void the_catalogue_is_consistent(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = { .type = CMD_CLASS_REMOVE };
    command.target.name = STR("h100");
    CHECK("a used class stays", lab_do(&lab, &command) == ERR_CONFLICT);
    command.type = CMD_POOL_REMOVE;
    CHECK("a used pool stays", lab_do(&lab, &command) == ERR_CONFLICT);
    command.target.name = STR("nowhere");
    CHECK("an absent pool", lab_do(&lab, &command) == ERR_NOT_FOUND);
    command.type = CMD_CLASS_REMOVE;
    CHECK("an absent class", lab_do(&lab, &command) == ERR_NOT_FOUND);
    command.type = CMD_PROFILE_REMOVE;
    CHECK("an absent profile", lab_do(&lab, &command) == ERR_NOT_FOUND);

    struct command pool = { .type = CMD_POOL_SET };
    pool.pool_set = (struct pool_spec){ .name = STR("p"), .site = UNSET };
    CHECK("a pool has a class", lab_do(&lab, &pool) == ERR_INVALID);
    pool.pool_set.class_name = STR("absent");
    CHECK("that exists", lab_do(&lab, &pool) == ERR_NOT_FOUND);
    struct command class = { .type = CMD_CLASS_SET };
    class.class_set = (struct class_spec){ .name = STR("h100"),
                                           .kind = CLASS_CPU,
                                           .memory_mib = UNSET,
                                           .slicing = UNSET,
                                           .price_micros_per_hour = UNSET };
    CHECK("a used class keeps its kind", lab_do(&lab, &class) == ERR_CONFLICT);
    class.class_set.kind = UNSET;
    class.class_set.price_micros_per_hour = -5;
    CHECK("no negative price", lab_do(&lab, &class) == ERR_INVALID);
}

/* A profile is for those it names, and gives its topology to work that says none. */
static void profiles_are_for_some(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct str own[] = { STR("amber/deep") };
    struct str all[] = { STR("*") };
    struct str nobody[] = { STR("oak") };
    lab_init(&lab);
    (void)lab_add_node(&lab, (struct lab_node){ "n1", "h100", .devices = 4 });
    (void)lab_project(&lab, "amber", (struct lab_quota){ .class_name = "h100" });
    (void)lab_project(&lab, "amber/deep", (struct lab_quota){ .class_name = "h100" });
    struct command profile = { .type = CMD_PROFILE_SET };
    profile.profile_set = (struct profile_spec){ .name = STR("gpu-2"),
                                                 .gpu_milli = 2000,
                                                 .gpu_memory_mib = UNSET,
                                                 .devices = UNSET,
                                                 .share_milli = UNSET,
                                                 .cpu_milli = UNSET,
                                                 .memory_mib = UNSET,
                                                 .projects = { own, 1 },
                                                 .topology = { TOPOLOGY_RACK, TOPOLOGY_NODE } };
    lab_must(&lab, &profile);
    struct command submit = lab_submission(&lab, (struct lab_job){ .project = "amber" });
    submit.submit.profile = STR("gpu-2");
    CHECK("not for others", lab_do(&lab, &submit) == ERR_INVALID);
    CHECK("as if it were absent", strstr(lab.e.text, "there is no profile") != NULL);
    submit.submit.project = STR("amber/deep");
    lab_must(&lab, &submit);
    const struct request *r = &lab_record(&lab, submit.new_id)->request;
    CHECK("its topology", r->required == TOPOLOGY_RACK && r->preferred == TOPOLOGY_NODE);
    submit.new_id = lab_id(&lab);
    submit.submit.topology = (struct topology_spec){ .preferred = TOPOLOGY_BLOCK };
    lab_must(&lab, &submit);
    r = &lab_record(&lab, submit.new_id)->request;
    CHECK("or its own", r->required == TOPOLOGY_NONE && r->preferred == TOPOLOGY_BLOCK);
    struct command remove = { .type = CMD_PROJECT_REMOVE };
    remove.target.name = STR("amber/deep");
    CHECK("who is named is not removed", lab_do(&lab, &remove) == ERR_CONFLICT);
    profile.profile_set.projects.items = nobody;
    CHECK("not for who is not there", lab_do(&lab, &profile) == ERR_INVALID);
    profile.profile_set.projects.items = all;
    profile.profile_set.topology = (struct topology_spec){ TOPOLOGY_NODE, TOPOLOGY_RACK };
    CHECK("what is closer is not preferred to wider", lab_do(&lab, &profile) == ERR_INVALID);
    profile.profile_set.topology = (struct topology_spec){ TOPOLOGY_NONE, TOPOLOGY_NONE };
    lab_must(&lab, &profile);
    submit = lab_submission(&lab, (struct lab_job){ .project = "amber" });
    submit.submit.profile = STR("gpu-2");
    lab_must(&lab, &submit);
    r = &lab_record(&lab, submit.new_id)->request;
    CHECK("for all, and as it was otherwise", r->required == TOPOLOGY_RACK && r->gpu_milli == 2000);
}

static void profiles_give_requests(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    static struct str pools[] = { { "h100", 4 } };
    struct command profile = { .type = CMD_PROFILE_SET };
    profile.profile_set = (struct profile_spec){ .name = STR("gpu-2"),
                                                 .gpu_milli = 2000,
                                                 .gpu_memory_mib = UNSET,
                                                 .devices = UNSET,
                                                 .share_milli = UNSET,
                                                 .cpu_milli = 4000,
                                                 .memory_mib = UNSET,
                                                 .pools = { pools, 1 } };
    lab_must(&lab, &profile);
    struct command submit = { .type = CMD_WORKLOAD_SUBMIT, .submit = spec_of() };
    submit.submit.project = STR("birch");
    submit.submit.profile = STR("gpu-2");
    submit.spec_json = STR("{}");
    lab_must(&lab, &submit);
    const struct request *request = &lab_record(&lab, submit.new_id)->request;
    CHECK("its amounts", request->gpu_milli == 2000 && request->cpu_milli == 4000);
    CHECK("the classes of its pools", request->class_count == 1);
    submit.new_id = (struct id){ 0 };
    submit.submit.gpu_memory_mib = 1000;
    lab_must(&lab, &submit);
    request = &lab_record(&lab, submit.new_id)->request;
    CHECK("devices asked for by hand replace its own",
          request->gpu_milli == 0 && request->gpu_memory_mib == 1000);
    static struct str nowhere[] = { { "nowhere", 7 } };
    profile.profile_set.pools = (struct str_list){ nowhere, 1 };
    CHECK("an absent pool", lab_do(&lab, &profile) == ERR_INVALID);
}

/* ---- tokens, images, credentials, uploads -------------------------------------------------- */

static void tokens(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command token = { .type = CMD_TOKEN_CREATE };
    token.token_create =
        (struct token_spec){ .name = STR("t"), .role = ROLE_MEMBER, .expires_s = UNSET };
    CHECK("a secret is needed", lab_do(&lab, &token) == ERR_INVALID);
    token.secret.bytes[3] = 1;
    CHECK("members are of a tenant", lab_do(&lab, &token) == ERR_INVALID);
    token.token_create.tenant = STR("amber");
    CHECK("and somebody", lab_do(&lab, &token) == ERR_INVALID && strcmp(lab.e.field, "user") == 0);
    token.token_create.user = STR("ann");
    lab_must(&lab, &token);
    struct id made = lab.state->last_token->r.id;
    token.new_id = (struct id){ 0 };
    CHECK("a secret is one token's", lab_do(&lab, &token) == ERR_CONFLICT);
    token.secret.bytes[3] = 2;
    token.token_create.role = ROLE_SYSTEM;
    CHECK("no other roles",
          lab_do(&lab, &token) == ERR_INVALID && strcmp(lab.e.field, "role") == 0);
    token.token_create = (struct token_spec){
        .name = STR("t"), .role = ROLE_NODE_JOIN, .expires_s = UNSET, .pool = STR("nowhere")
    };
    CHECK("an absent pool", lab_do(&lab, &token) == ERR_INVALID);
    struct command revoke = { .type = CMD_TOKEN_REVOKE };
    revoke.target.id = made;
    CHECK("revoke", lab_do(&lab, &revoke) == ERR_OK && state_token(lab.state, made)->r.is_revoked);
    uint64_t sequence = lab.state->sequence;
    CHECK("twice is harmless", lab_do(&lab, &revoke) == ERR_OK && lab.state->sequence == sequence);
    revoke.target.id = (struct id){ 4, 4 };
    CHECK("an absent one", lab_do(&lab, &revoke) == ERR_NOT_FOUND);
}

static const struct {
    const char *name, *url, *sealed;
} bad_hooks[] = {
    { "no URL", "", "00ff" },
    { "no secret", "https://example.org/", "" },
    { "another scheme", "ftp://example.org/", "00ff" },
    { "no host", "https:///x", "00ff" },
    { "a login", "https://a:b@example.org/", "00ff" },
    { "a space", "https://example.org/a b", "00ff" },
    { "another line", "https://example.org/a\nx: y", "00ff" },
    { "a secret for mail", "mailto:a@example.org", "00ff" },
    { "no domain", "mailto:a", "" },
    { "two receivers", "mailto:a@example.org,b@example.org", "" },
    { "a header", "mailto:a@example.org\r\nBcc: b@example.org", "" },
    { "an option", "mailto:-f@example.org", "" },
};

static void hooks(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command set = { .type = CMD_HOOK_SET, .actor = member_of(&lab, "amber") };
    FOR_EACH_CASE (c, bad_hooks) {
        set.hook_set =
            (struct hook_spec){ STR("ops"), STR("amber"), str_of(c->url), str_of(c->sealed) };
        CHECK(c->name, lab_do(&lab, &set) == ERR_INVALID && lab.state->first_hook == NULL);
    }
    set.hook_set =
        (struct hook_spec){ STR("ops"), STR("birch"), STR("https://example.org/x"), STR("00ff") };
    CHECK("not for others", lab_do(&lab, &set) == ERR_NOT_FOUND);
    set.hook_set.project = STR("amber");
    lab_must(&lab, &set);
    const struct hook *hook = lab.state->first_hook;
    struct id made = hook->r.id;

    set.new_id = (struct id){ 0 };
    set.hook_set.url = STR("https://example.org/y");
    set.hook_set.sealed = (struct str){ 0 };
    lab_must(&lab, &set);
    CHECK("set again it is the same, and keeps its secret",
          hook == lab.state->last_hook && str_is(hook->r.sealed, "00ff") &&
              str_is(hook->r.url, "https://example.org/y"));

    struct command note = { .type = CMD_HOOK_NOTE, .target = { .id = made } };
    note.target.reason = STR("it answered HTTP 500");
    CHECK("people cannot say how it went", lab_do(&lab, &note) == ERR_DENIED);
    note.actor = (struct actor){ .role = ROLE_SYSTEM, .name = STR("system") };
    lab_must(&lab, &note);
    uint64_t sequence = lab.state->sequence;
    lab_must(&lab, &note);
    CHECK("the same fault is no news", lab.state->sequence == sequence &&
                                           str_is(hook->r.fault, "it answered HTTP 500") &&
                                           str_is(hook->r.sealed, "00ff"));

    struct command remove = { .type = CMD_HOOK_REMOVE, .target = { .id = made } };
    struct command test = { .type = CMD_HOOK_TEST, .target = { .id = made } };
    remove.actor = test.actor = member_of(&lab, "birch");
    CHECK("foreign is absent",
          lab_do(&lab, &remove) == ERR_NOT_FOUND && lab_do(&lab, &test) == ERR_NOT_FOUND);
    remove.actor = test.actor = member_of(&lab, "amber");
    CHECK("its own is tested", lab_do(&lab, &test) == ERR_OK);
    CHECK("and goes", lab_do(&lab, &remove) == ERR_OK && lab.state->first_hook == NULL);
}

static void images_and_credentials(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command image = { .type = CMD_IMAGE_SET, .actor = member_of(&lab, "amber") };
    image.image_set = (struct image_spec){ .name = STR("mine"), .size_bytes = 5 };
    CHECK("a digest is needed", lab_do(&lab, &image) == ERR_INVALID);
    image.image_set.manifest.bytes[0] = 7;
    lab_must(&lab, &image);
    CHECK("it is the tenant's own", id_eq(lab.state->last_image->r.tenant, image.actor.tenant));
    uint64_t sequence = lab.state->sequence;
    image.new_id = (struct id){ 0 };
    CHECK("the same again is harmless",
          lab_do(&lab, &image) == ERR_OK && lab.state->sequence == sequence);
    image.image_set.tenant = STR("birch");
    CHECK("not for others", lab_do(&lab, &image) == ERR_NOT_FOUND);

    struct command credential = { .type = CMD_CREDENTIAL_SET, .actor = member_of(&lab, "amber") };
    credential.credential_set =
        (struct credential_spec){ .username = STR("ann"), .sealed = STR("00ff") };
    CHECK("a registry is needed", lab_do(&lab, &credential) == ERR_INVALID);
    credential.credential_set.registry = STR("registry.example");
    lab_must(&lab, &credential);
    struct id made = lab.state->first_credential->r.id;
    credential.new_id = (struct id){ 0 };
    credential.credential_set.sealed = STR("00fe");
    lab_must(&lab, &credential);
    CHECK("one a registry", id_eq(lab.state->last_credential->r.id, made));
    struct command remove = { .type = CMD_CREDENTIAL_REMOVE, .actor = member_of(&lab, "birch") };
    remove.target.id = made;
    CHECK("foreign is absent", lab_do(&lab, &remove) == ERR_NOT_FOUND);
    remove.actor = member_of(&lab, "amber");
    CHECK("its own goes", lab_do(&lab, &remove) == ERR_OK && lab.state->first_credential == NULL);

    struct command upload = { .type = CMD_UPLOAD_STORED, .actor = member_of(&lab, "amber") };
    upload.upload_stored.tenant = upload.actor.tenant;
    CHECK("a digest is needed", lab_do(&lab, &upload) == ERR_INVALID);
    upload.upload_stored.digest.bytes[31] = 1;
    lab_must(&lab, &upload);
    sequence = lab.state->sequence;
    CHECK("the same again is harmless",
          lab_do(&lab, &upload) == ERR_OK && lab.state->sequence == sequence);
    upload.actor = member_of(&lab, "birch");
    CHECK("not for others", lab_do(&lab, &upload) == ERR_NOT_FOUND);
}

static void a_start_needs_a_new_epoch(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command start = { .type = CMD_CONTROLLER_START, .actor = { .role = ROLE_SYSTEM } };
    start.controller_start.epoch = lab.state->epoch;
    CHECK("the same epoch", lab_do(&lab, &start) == ERR_CONFLICT);
    uint8_t key = lab.state->id_key[0];
    start.controller_start.epoch++;
    lab_must(&lab, &start);
    CHECK("the key of the first start stays", lab.state->id_key[0] == key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submissions),
        cmocka_unit_test(foreign_objects_are_absent),
        cmocka_unit_test(members_do_not_operate),
        cmocka_unit_test(sums_of_guarantees),
        cmocka_unit_test(limits_of_logs),
        cmocka_unit_test(projects_are_removed_empty),
        cmocka_unit_test(settings_have_bounds),
        cmocka_unit_test(the_catalogue_is_consistent),
        cmocka_unit_test(profiles_give_requests),
        cmocka_unit_test(profiles_are_for_some),
        cmocka_unit_test(tokens),
        cmocka_unit_test(hooks),
        cmocka_unit_test(images_and_credentials),
        cmocka_unit_test(a_start_needs_a_new_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
