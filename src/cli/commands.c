/* commands.c - the table of commands: help, completion and the manual page are made from it. */
#include "cli/special.h"

#define TEXT(n, l, f, m, h)                                                                        \
    {                                                                                              \
        (n), (l), OPTION_TEXT, OPTION_BODY, (f), (m), (h)                                          \
    }
#define NUMBER(n, l, f, h)                                                                         \
    {                                                                                              \
        (n), (l), OPTION_NUMBER, OPTION_BODY, (f), "N", (h)                                        \
    }
#define MILLI(n, l, f, h)                                                                          \
    {                                                                                              \
        (n), (l), OPTION_MILLI, OPTION_BODY, (f), "N", (h)                                         \
    }
#define SPAN(n, l, f, h)                                                                           \
    {                                                                                              \
        (n), (l), OPTION_SECONDS, OPTION_BODY, (f), "TIME", (h)                                    \
    }
#define MIB(n, l, f, h)                                                                            \
    {                                                                                              \
        (n), (l), OPTION_MIB, OPTION_BODY, (f), "SIZE", (h)                                        \
    }
#define FLAG(n, l, f, h)                                                                           \
    {                                                                                              \
        (n), (l), OPTION_FLAG, OPTION_BODY, (f), NULL, (h)                                         \
    }
#define LOCAL(n, l, m, h)                                                                          \
    {                                                                                              \
        (n), (l), OPTION_TEXT, OPTION_LOCAL, NULL, (m), (h)                                        \
    }
#define LOCAL_FLAG(n, l, h)                                                                        \
    {                                                                                              \
        (n), (l), OPTION_FLAG, OPTION_LOCAL, NULL, NULL, (h)                                       \
    }
#define QUERY(n, l, f, m, h)                                                                       \
    {                                                                                              \
        (n), (l), OPTION_TEXT, OPTION_QUERY, (f), (m), (h)                                         \
    }
#define QUERY_FLAG(n, l, f, h)                                                                     \
    {                                                                                              \
        (n), (l), OPTION_FLAG, OPTION_QUERY, (f), NULL, (h)                                        \
    }
#define DRY_RUN          LOCAL_FLAG("dry-run", 0, "say what would be done to what, and do nothing")
#define LIMIT            LOCAL("limit", 0, "N", "only the first N, which are the newest")
#define LOOK(path, what) .look = (path), .would = (what)
#define OPTIONS(list)    .options = (list), .option_count = COUNT_OF(list)
#define COLUMNS(list)    .columns = (list), .column_count = COUNT_OF(list)
/* Of what answers with pages of such rows. */
#define ROWS(list)      .is_list = true, COLUMNS(list)
#define ARGUMENT(text)  .arguments = (text), .arguments_min = 1, .arguments_max = 1
#define ARGUMENTS(text) .arguments = (text), .arguments_min = 1, .arguments_max = CLI_ARGUMENTS_MAX

/* clang-format off */
/* ---- columns --------------------------------------------------------------------------------- */

static const struct cli_column project_columns[] = {
    { "PATH", "path", COLUMN_TEXT }, { "PRIORITY", "priority", COLUMN_TEXT },
    { "CLASSES", "quotas", COLUMN_LIST }, { "LIVE", "live_workloads", COLUMN_TEXT },
    { "OVERCOMMITTED", "is_overcommitted", COLUMN_FLAG }, { "ID", "id", COLUMN_TEXT },
};
static const struct cli_column class_columns[] = {
    { "NAME", "name", COLUMN_TEXT }, { "KIND", "kind", COLUMN_TEXT },
    { "VENDOR", "vendor", COLUMN_TEXT }, { "MEMORY_MIB", "memory_mib", COLUMN_TEXT },
    { "CAPACITY", "capacity_milli", COLUMN_MILLI }, { "FREE", "free_milli", COLUMN_MILLI },
    { "GUARANTEED", "quota_milli", COLUMN_MILLI },
    { "PRICE/H", "price_micros_per_hour", COLUMN_MICROS },
};
static const struct cli_column pool_columns[] = {
    { "NAME", "name", COLUMN_TEXT }, { "CLASS", "class", COLUMN_TEXT },
    { "SITE", "site", COLUMN_TEXT }, { "NODES", "node_count", COLUMN_TEXT },
};
static const struct cli_column profile_columns[] = {
    { "NAME", "name", COLUMN_TEXT }, { "GPUS", "request", COLUMN_GPUS },
    { "CPUS", "request.cpu_milli", COLUMN_MILLI },
    { "MEMORY_MIB", "request.memory_mib", COLUMN_TEXT },
    { "CLASSES", "request.classes", COLUMN_LIST }, { "POOLS", "pools", COLUMN_LIST },
    { "PROJECTS", "projects", COLUMN_LIST }, { "DESCRIPTION", "description", COLUMN_TEXT },
};
static const struct cli_column node_columns[] = {
    { "NAME", "name", COLUMN_TEXT }, { "POOL", "pool", COLUMN_TEXT },
    { "CONTACT", "contact", COLUMN_TEXT }, { "USABLE", "is_usable", COLUMN_TEXT },
    { "HOLDS", "holds", COLUMN_LIST }, { "DEVICES", "devices", COLUMN_LIST },
    { "CPUS", "cpu_milli", COLUMN_MILLI }, { "MEMORY_MIB", "memory_mib", COLUMN_TEXT },
    { "WORK", "allocation_count", COLUMN_TEXT }, { "ID", "id", COLUMN_TEXT },
};
static const struct cli_column device_columns[] = {
    { "NODE", "node", COLUMN_TEXT }, { "INDEX", "index", COLUMN_TEXT },
    { "CLASS", "class", COLUMN_TEXT }, { "MODEL", "model", COLUMN_TEXT },
    { "MEMORY_MIB", "memory_mib", COLUMN_TEXT }, { "HEALTH", "health", COLUMN_TEXT },
    { "WHY", "health_reason", COLUMN_TEXT },
    { "USED", "allocated_milli", COLUMN_MILLI }, { "HELD", "is_held", COLUMN_FLAG },
    { "REASON", "hold_reason", COLUMN_TEXT }, { "SIMULATED", "is_simulated", COLUMN_FLAG },
};
static const struct cli_column workload_columns[] = {
    { "ID", "id", COLUMN_TEXT }, { "NAME", "name", COLUMN_TEXT },
    { "PROJECT", "project", COLUMN_TEXT }, { "USER", "user", COLUMN_TEXT },
    { "STATE", "state", COLUMN_TEXT }, { "CAUSE", "cause", COLUMN_CAUSE },
    { "GPUS", "request", COLUMN_GPUS }, { "MEMBERS", "members", COLUMN_TEXT },
    { "NODES", "nodes", COLUMN_LIST }, { "QUEUED", "queued_s", COLUMN_SECONDS },
    { "RUNNING", "running_s", COLUMN_SECONDS }, { "STARTS_BY", "promised_start_at", COLUMN_TIME },
};
static const struct cli_column explain_columns[] = {
    { "STATE", "state", COLUMN_TEXT }, { "CAUSE", "cause", COLUMN_TEXT },
    { "DETAIL", "detail", COLUMN_TEXT }, { "POSITION", "position", COLUMN_TEXT },
    { "STARTS_BY", "starts_by", COLUMN_TIME }, { "AHEAD", "ahead_count", COLUMN_TEXT },
    { "CHANGES", "changes", COLUMN_LIST },
};
static const struct cli_column allocation_columns[] = {
    { "ID", "id", COLUMN_TEXT }, { "WORKLOAD", "workload", COLUMN_TEXT },
    { "PROJECT", "project", COLUMN_TEXT }, { "NODE", "node", COLUMN_TEXT },
    { "RANK", "rank", COLUMN_TEXT }, { "CLASS", "class", COLUMN_TEXT },
    { "CHARGE", "charge_milli", COLUMN_MILLI }, { "STATE", "state", COLUMN_TEXT },
    { "BORROWED", "is_borrowed", COLUMN_FLAG },
};
static const struct cli_column token_columns[] = {
    { "ID", "id", COLUMN_TEXT }, { "NAME", "name", COLUMN_TEXT }, { "ROLE", "role", COLUMN_TEXT },
    { "TENANT", "tenant", COLUMN_TEXT }, { "USER", "user", COLUMN_TEXT },
    { "POOL", "pool", COLUMN_TEXT }, { "EXPIRES", "expires", COLUMN_TIME },
    { "REVOKED", "is_revoked", COLUMN_FLAG },
};
static const struct cli_column volume_columns[] = {
    { "ID", "id", COLUMN_TEXT }, { "TENANT", "tenant", COLUMN_TEXT },
    { "NAME", "name", COLUMN_TEXT }, { "NODE", "node", COLUMN_TEXT },
    { "QUOTA_MIB", "quota_mib", COLUMN_TEXT }, { "CREATED", "created", COLUMN_TIME },
};
static const struct cli_column reservation_columns[] = {
    { "NAME", "name", COLUMN_TEXT }, { "PROJECT", "project", COLUMN_TEXT },
    { "CLASS", "class", COLUMN_TEXT }, { "GPUS", "gpu_milli", COLUMN_MILLI },
    { "STATE", "state", COLUMN_TEXT }, { "EVERY", "every", COLUMN_TEXT },
    { "FROM", "window_start", COLUMN_TIME }, { "TO", "window_end", COLUMN_TIME },
    { "USED", "used_milli", COLUMN_MILLI }, { "WAITING", "waiting", COLUMN_TEXT },
    { "OVERCOMMITTED", "is_overcommitted", COLUMN_FLAG }, { "ID", "id", COLUMN_TEXT },
};
static const struct cli_column change_columns[] = {
    { "ID", "id", COLUMN_TEXT }, { "NAME", "name", COLUMN_TEXT },
    { "PROJECT", "project", COLUMN_TEXT }, { "STATE", "state", COLUMN_TEXT },
    { "SETS", "summary", COLUMN_TEXT }, { "FROM", "window_start", COLUMN_TIME },
    { "UNTIL", "window_end", COLUMN_TIME }, { "EVERY", "every", COLUMN_TEXT },
    { "USER", "user", COLUMN_TEXT }, { "DETAIL", "detail", COLUMN_TEXT },
};
static const struct cli_column slot_columns[] = {
    { "FROM", "start", COLUMN_TIME }, { "TO", "end", COLUMN_TIME },
    { "CLASS", "class", COLUMN_TEXT }, { "FREE", "free_milli", COLUMN_MILLI },
};
static const struct cli_column image_columns[] = {
    { "NAME", "name", COLUMN_TEXT }, { "TENANT", "tenant", COLUMN_TEXT },
    { "SIZE", "size_bytes", COLUMN_BYTES }, { "MANIFEST", "manifest", COLUMN_TEXT },
    { "CREATED", "created", COLUMN_TIME },
};
static const struct cli_column credential_columns[] = {
    { "ID", "id", COLUMN_TEXT }, { "TENANT", "tenant", COLUMN_TEXT },
    { "REGISTRY", "registry", COLUMN_TEXT }, { "USERNAME", "username", COLUMN_TEXT },
};
static const struct cli_column hook_columns[] = {
    { "ID", "id", COLUMN_TEXT },   { "NAME", "name", COLUMN_TEXT },
    { "PROJECT", "project", COLUMN_TEXT }, { "URL", "url", COLUMN_TEXT },
    { "FAULT", "fault", COLUMN_TEXT },
};
static const struct cli_column usage_columns[] = {
    { "PROJECT", "project", COLUMN_TEXT }, { "CLASS", "class", COLUMN_TEXT },
    { "DEVICE_S", "milli_ms", COLUMN_DEVICE_S },
    { "SEGMENTS", "segments", COLUMN_TEXT }, { "PRICE/H", "price_micros_per_hour", COLUMN_MICROS },
    { "AMOUNT", "amount_micros", COLUMN_MICROS },
};
static const struct cli_column segment_columns[] = {
    { "WORKLOAD", "workload", COLUMN_TEXT }, { "CLASS", "class", COLUMN_TEXT },
    { "CHARGE", "charge_milli", COLUMN_MILLI }, { "START", "start", COLUMN_TIME },
    { "DURATION_MS", "duration_ms", COLUMN_TEXT }, { "CAUSE", "cause", COLUMN_TEXT },
    { "AMOUNT", "amount_micros", COLUMN_MICROS },
};
static const struct cli_column audit_columns[] = {
    { "SEQUENCE", "sequence", COLUMN_TEXT }, { "AT", "at", COLUMN_TIME },
    { "ACTOR", "actor", COLUMN_TEXT }, { "ROLE", "role", COLUMN_TEXT },
    { "VERB", "verb", COLUMN_TEXT }, { "OBJECT", "object", COLUMN_TEXT },
};

static const struct cli_column decision_columns[] = {
    { "SEQUENCE", "sequence", COLUMN_TEXT }, { "AT", "at", COLUMN_TIME },
    { "RULE", "rule", COLUMN_TEXT }, { "WORKLOAD", "workload", COLUMN_TEXT },
    { "NAME", "name", COLUMN_TEXT }, { "PROJECT", "project", COLUMN_TEXT },
    { "CLASS", "class", COLUMN_TEXT }, { "MEMBERS", "members", COLUMN_TEXT },
    { "CHARGE", "charge_milli", COLUMN_MILLI }, { "BORROWED", "is_borrowed", COLUMN_FLAG },
    { "CAUSE", "cause", COLUMN_CAUSE }, { "FOR", "evictor", COLUMN_TEXT },
};

/* ---- options --------------------------------------------------------------------------------- */

static const struct cli_option submit_options[] = {
    TEXT("project", 'p', NULL, "PATH", "project it belongs to (default: one's tenant)"),
    TEXT("name", 'n', NULL, "NAME", "for people; default: job"),
    TEXT("image", 'i', NULL, "NAME", "root file system"),
    TEXT("profile", 0, NULL, "NAME", "a predefined shape; options override its fields"),
    MILLI("gpus", 'g', "gpu_milli", "devices per member: 0.5 a fraction, 2 whole ones"),
    MIB("gpu-memory", 0, "gpu_memory_mib", "instead: a fraction by memory"),
    TEXT("mig-profile", 0, "mig_profile", "NAME", "instead: a partition of a device, as 1g.10gb"),
    { "devices", 0, OPTION_DEVICES, OPTION_BODY, NULL, "NxSHARE", "2x0.5: two devices, half of each" },
    { "class", 'c', OPTION_LIST, OPTION_BODY, "classes", "NAME,...", "resource classes, the best first" },
    MILLI("cpus", 0, "cpu_milli", "cores per member"),
    MIB("memory", 'm', "memory_mib", "memory per member"),
    MIB("shm", 0, "shm_mib", "size of /dev/shm"),
    NUMBER("members", 'N', NULL, "of a gang: they start together"),
    NUMBER("members-min", 0, "members_min", "with how many of them it may run: it grows when there is room"),
    { "topology", 0, OPTION_TOPOLOGY, OPTION_BODY, "topology", "[prefer:]LEVEL", "all members within one node, rack or block; may be repeated" },
    NUMBER("count", 0, NULL, "an array of that many workloads; BERTH_ARRAY_INDEX tells them apart"),
    NUMBER("priority", 0, NULL, "inside the project, 0 to 1000; default 50"),
    SPAN("time-limit", 't', "time_limit_s", "of each attempt"),
    SPAN("grace", 0, "grace_s", "between TERM and KILL"),
    NUMBER("retries", 0, NULL, "after failures of its own"),
    { "env", 'e', OPTION_PAIRS, OPTION_BODY, NULL, "NAME=VALUE", "environment; may be repeated" },
    { "label", 'l', OPTION_PAIRS, OPTION_BODY, "labels", "NAME=VALUE", "for searching; may be repeated" },
    { "mount", 'v', OPTION_MOUNT, OPTION_BODY, "mounts", "VOLUME:PATH[:ro]", "own volumes, by name or id; may be repeated" },
    { "after", 0, OPTION_DEPENDS, OPTION_BODY, "depends_on", "[WHEN:]WORKLOAD", "start after it ended: ok (default), any or failed" },
    TEXT("reservation", 0, NULL, "NAME", "run only in the windows of this reservation"),
    TEXT("workdir", 'w', NULL, "PATH", "working directory"),
    TEXT("preemptible", 0, NULL, "WHEN", "always (default) or never"),
    TEXT("restart", 0, NULL, "WHEN", "on_failure (default) or never"),
    TEXT("on-contact-loss", 0, "on_contact_loss", "HOW", "restart (default), fence or keep"),
    SPAN("fence-after", 0, "fence_after_s", "with fence: when the work stops by itself"),
    FLAG("hold", 0, "is_held", "do not start it before `berth release`"),
    LOCAL("upload", 'u', "DIR", "code to run in: .gitignore is respected"),
    LOCAL("file", 'f', "FILE", "the specification as YAML; options override it"),
    LOCAL_FLAG("wait", 'W', "wait until it ends; exit 0 only if it succeeded"),
    LOCAL_FLAG("follow", 0, "print its output as it comes, then as --wait"),
};
static const struct cli_option list_options[] = {
    QUERY("project", 'p', NULL, "PATH", "with all that is below it"),
    QUERY("state", 0, NULL, "STATE,...", "queued, running, failed, ..."),
    QUERY("label", 'l', NULL, "NAME=VALUE", "with this label"),
    { "array", 0, OPTION_WORKLOAD, OPTION_QUERY, NULL, "ARRAY", "elements of this array, by name or id" },
    QUERY("user", 0, NULL, "NAME", "of this user"),
    QUERY("tenant", 0, NULL, "NAME", "of this tenant"),
    QUERY_FLAG("history", 0, NULL, "ended work out of the store"),
    LIMIT,
};
static const struct cli_option log_options[] = {
    LOCAL("member", 0, "RANK", "of a gang, or `all` one after the other; default 0"),
    LOCAL("attempt", 0, "N", "default: the latest; with --follow also those that come after it"),
    LOCAL("stream", 0, "NAME", "stdout or stderr; default both"),
    LOCAL("tail", 0, "BYTES", "only the last so many bytes"),
    LOCAL_FLAG("follow", 'f', "go on as it grows"),
    LOCAL_FLAG("raw", 0, "control characters as they are, also on a terminal"),
};
static const struct cli_option wait_options[] = {
    LOCAL("timeout", 0, "TIME", "give up after this (exit 1)"),
};
static const struct cli_option reason_options[] = {
    TEXT("reason", 'r', NULL, "TEXT", "for people, kept in the audit"),
};
static const struct cli_option drain_options[] = {
    TEXT("reason", 'r', NULL, "TEXT", "for people, kept in the audit"),
    SPAN("deadline", 0, "deadline_s", "then what still runs is evicted and queued again"),
    DRY_RUN,
};
static const struct cli_option stop_options[] = {
    TEXT("reason", 'r', NULL, "TEXT", "for people, kept in the audit"),
    DRY_RUN,
};
static const struct cli_option dry_options[] = {
    DRY_RUN,
};
static const struct cli_option confirm_options[] = {
    LOCAL_FLAG("yes", 'y', "do not ask"),
    DRY_RUN,
};
static const struct cli_option node_remove_options[] = {
    QUERY_FLAG("force", 0, NULL, "although work or volumes are on it, which are lost to it"),
    LOCAL_FLAG("yes", 'y', "do not ask"),
    DRY_RUN,
};
static const struct cli_option exec_options[] = {
    LOCAL("member", 0, "RANK", "of a gang; default 0"),
    LOCAL_FLAG("tty", 't', "a terminal (default: when ours is one)"),
    LOCAL_FLAG("no-tty", 'T', "no terminal"),
};
static const struct cli_option copy_options[] = {
    LOCAL("member", 0, "RANK", "of a gang; default 0"),
    LOCAL_FLAG("verbose", 0, "name the links that are not copied"),
};
static const struct cli_option volume_copy_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "whose it is (needed only when several have one of that name)"),
    LOCAL_FLAG("verbose", 0, "name the links that are not copied"),
};
static const struct cli_option quota_options[] = {
    { "quota", 0, OPTION_QUOTA, OPTION_BODY, "quota_milli", "CLASS=N", "guarantee" },
    { "limit", 0, OPTION_QUOTA, OPTION_BODY, "limit_milli", "CLASS=N|none", "ceiling" },
    { "lend-limit", 0, OPTION_QUOTA, OPTION_BODY, "lend_limit_milli", "CLASS=N|none", "how much of it others may borrow" },
    { "weight", 0, OPTION_QUOTA, OPTION_BODY, "over_quota_weight", "CLASS=N", "in dividing what is left over" },
    NUMBER("priority", 0, NULL, "among siblings, 0 to 1000"),
    { "log-quota", 0, OPTION_NUMBER, OPTION_BODY, "log_quota_mib", "MIB", "output of its work stored at most, and of each project below; 0: as its parent" },
    { "log-days", 0, OPTION_NUMBER, OPTION_BODY, "log_days", "DAYS", "how long output of ended work is kept; 0: as its parent" },
    FLAG("force", 0, "is_forced", "accept more than there is, and mark it"),
};
#define WHEN_OPTIONS \
    TEXT("from", 0, NULL, "TIME", "local time of the zone: 2026-03-27T18:00; default: now"), \
    TEXT("until", 0, NULL, "TIME", "likewise: then what was before holds again; default: for good"), \
    SPAN("for", 0, "duration_s", "how long, instead of --until"), \
    TEXT("zone", 'z', NULL, "NAME", "Europe/Berlin; default UTC"), \
    TEXT("every", 0, NULL, "WHEN", "day, weekday or week; once unless given"), \
    NUMBER("interval", 0, NULL, "every so many days or weeks"), \
    TEXT("repeat-until", 0, "repeat_until", "TIME", "the last window begins before; default: 366 days after --from"), \
    TEXT("name", 'n', NULL, "NAME", "of the change, to find it again"), \
    TEXT("reason", 'r', NULL, "TEXT", "for people"), \
    LOCAL_FLAG("dry-run", 0, "say what it would do, and to which work; change nothing")
static const struct cli_option quota_change_options[] = {
    { "quota", 0, OPTION_QUOTA, OPTION_BODY, "quota_milli", "CLASS=N", "guarantee" },
    { "limit", 0, OPTION_QUOTA, OPTION_BODY, "limit_milli", "CLASS=N|none", "ceiling" },
    { "lend-limit", 0, OPTION_QUOTA, OPTION_BODY, "lend_limit_milli", "CLASS=N|none", "how much of it others may borrow" },
    { "weight", 0, OPTION_QUOTA, OPTION_BODY, "over_quota_weight", "CLASS=N", "in dividing what is left over" },
    NUMBER("priority", 0, NULL, "among siblings, 0 to 1000"),
    NUMBER("log-quota", 0, "log_quota_mib", "MiB of output of its work stored at most, and of each project below; 0: as its parent"),
    NUMBER("log-days", 0, "log_days", "how long output of ended work is kept; 0: as its parent"),
    FLAG("force", 0, "is_forced", "accept more than there is, and mark it"),
    WHEN_OPTIONS,
};
/* The settings, once: `settings set` has their fields itself, a change has them in `settings`. */
#define SETTINGS(of) \
    SPAN("grace", 0, of "grace_s", "between TERM and KILL"), \
    SPAN("kill-confirm", 0, of "kill_confirm_s", "for a killed process to be gone"), \
    SPAN("min-runtime", 0, of "min_runtime_s", "that borrowed work is left in peace by claims above quota"), \
    SPAN("min-runtime-in-quota", 0, of "min_runtime_in_quota_s", "and by claims within quota"), \
    SPAN("start-timeout", 0, of "start_timeout_s", "from grant to running"), \
    SPAN("lost-after", 0, of "lost_after_s", "without contact, until a node is declared lost"), \
    SPAN("unknown-after", 0, of "unknown_after_s", "without contact, until a node gets no new work"), \
    SPAN("gang-repair", 0, of "gang_repair_s", "that a gang short of members waits for others"), \
    SPAN("backoff-base", 0, of "backoff_base_s", "the n-th failure waits base times 2 to the n"), \
    SPAN("backoff-max", 0, of "backoff_max_s", "and at most this"), \
    SPAN("lead", 0, of "lead_s", "before its start the devices of a reservation are cleared"), \
    SPAN("ended-keep", 0, of "ended_keep_s", "that ended work stays in memory"), \
    NUMBER("ended-keep-count", 0, of "ended_keep_count", "and at most so many"), \
    SPAN("default-time-limit", 0, of "default_time_limit_s", "that work without a time limit is planned with"), \
    SPAN("starvation-after", 0, of "starvation_after_s", "of waiting, until others leave a place"), \
    MIB("device-reserve", 0, of "device_reserve_mib", "memory of a device that no fraction gets"), \
    NUMBER("history-k", 0, of "history_k_milli", "how much past use takes from a weight; 1000: as much as was too much"), \
    SPAN("history-half-life", 0, of "history_half_life_s", "after which past use counts half"), \
    TEXT("user-fairness", 0, of "user_fairness", "off|usage", "who used less of a project lately comes first in it"), \
    TEXT("consolidate", 0, of "consolidate", "off|on", "move work that can go so that waiting work fits"), \
    NUMBER("consolidate-max-moves", 0, of "consolidate_max_moves", "workloads moved for one, at most"), \
    TEXT("reclaim-to", 0, of "reclaim_to", "WHAT", "quota or fair_share"), \
    TEXT("placement", 0, of "placement", "NAME", "adaptive, first_fit, best_fit, pack, spread or fgd")
static const struct cli_option policy_options[] = {
    NUMBER("priority", 0, NULL, "of a project, among its siblings: 0 to 1000"),
    SETTINGS("settings."),
    WHEN_OPTIONS,
};
#define HORIZON LOCAL("horizon", 0, "TIME", "so far ahead; default 24h")
static const struct cli_option whatif_submit_options[] = {
    TEXT("project", 'p', NULL, "PATH", "project it belongs to (default: one's tenant)"),
    TEXT("image", 'i', NULL, "NAME", "root file system"),
    TEXT("profile", 0, NULL, "NAME", "a predefined shape; options override its fields"),
    MILLI("gpus", 'g', "gpu_milli", "devices per member: 0.5 a fraction, 2 whole ones"),
    { "class", 'c', OPTION_LIST, OPTION_BODY, "classes", "NAME,...", "resource classes, the best first" },
    MILLI("cpus", 0, "cpu_milli", "cores per member"),
    MIB("memory", 'm', "memory_mib", "memory per member"),
    NUMBER("members", 'N', NULL, "of a gang: they start together"),
    NUMBER("count", 0, NULL, "an array of that many workloads"),
    NUMBER("priority", 0, NULL, "inside the project, 0 to 1000; default 50"),
    SPAN("time-limit", 't', "time_limit_s", "of each attempt"),
    TEXT("preemptible", 0, NULL, "WHEN", "always (default) or never"),
    LOCAL("file", 'f', "FILE", "the specification as YAML; options override it"),
    HORIZON,
};
static const struct cli_option whatif_quota_options[] = {
    { "quota", 0, OPTION_QUOTA, OPTION_BODY, "quota_milli", "CLASS=N", "guarantee" },
    { "limit", 0, OPTION_QUOTA, OPTION_BODY, "limit_milli", "CLASS=N|none", "ceiling" },
    { "lend-limit", 0, OPTION_QUOTA, OPTION_BODY, "lend_limit_milli", "CLASS=N|none", "how much of it others may borrow" },
    { "weight", 0, OPTION_QUOTA, OPTION_BODY, "over_quota_weight", "CLASS=N", "in dividing what is left over" },
    NUMBER("priority", 0, NULL, "among siblings, 0 to 1000"),
    SPAN("for", 0, "duration_s", "how long; default for good"),
    FLAG("force", 0, "is_forced", "accept more than there is"),
    HORIZON,
};
static const struct cli_option whatif_policy_options[] = {
    SETTINGS("settings."),
    HORIZON,
};
static const struct cli_option whatif_node_options[] = {
    HORIZON,
};
static const struct cli_option export_options[] = {
    LOCAL("snapshot", 0, "FILE", "where it goes; it has no secrets"),
};
static const struct cli_option change_list_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant (default: one's own; operators: all)"),
    QUERY("project", 'p', NULL, "PATH", "with all that is below it"),
    QUERY("state", 's', NULL, "STATE", "scheduled, active, expired, reverted, settled or failed"),
};
static const struct cli_option revert_options[] = {
    TEXT("reason", 'r', NULL, "TEXT", "for people, kept in the audit"),
    DRY_RUN,
};
static const struct cli_option tenant_query[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant (default: one's own; operators: all)"),
};
static const struct cli_option audit_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant (default: one's own; operators: all)"),
    LIMIT,
};
static const struct cli_option decision_options[] = {
    QUERY("project", 'p', NULL, "PATH", "with all that is below it"),
    { "workload", 0, OPTION_WORKLOAD, OPTION_QUERY, NULL, "WORKLOAD", "only about this workload, by name or id" },
    QUERY("rule", 'r', NULL, "NAME", "allocate, reclaim, preempt, consolidate, drain, ..."),
    { "since", 0, OPTION_SECONDS, OPTION_QUERY, "since_s", "TIME", "only of the last 10m, 2h, ..." },
    QUERY("tenant", 0, NULL, "NAME", "of this tenant (default: one's own; operators: all)"),
    LIMIT,
};
static const struct cli_option tenant_of[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant"),
};
static const struct cli_option tenant_remove_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant"),
    LOCAL_FLAG("yes", 'y', "do not ask"),
    DRY_RUN,
};
static const struct cli_option class_options[] = {
    TEXT("vendor", 0, NULL, "NAME", "nvidia, amd, ..."),
    TEXT("kind", 0, NULL, "KIND", "gpu or cpu"),
    MIB("memory", 'm', "memory_mib", "of one device"),
    TEXT("slicing", 0, NULL, "HOW", "policed, mig or cooperative"),
    TEXT("mig", 0, NULL, "TABLE", "which partitions there are, as h100-80g (default: by its name)"),
    NUMBER("price-micros", 0, "price_micros_per_hour", "of a whole device and hour, in millionths"),
};
static const struct cli_option pool_options[] = {
    TEXT("class", 'c', NULL, "NAME", "of its devices"),
};
static const struct cli_option profile_options[] = {
    TEXT("description", 'd', NULL, "TEXT", "for people"),
    MILLI("gpus", 'g', "gpu_milli", "devices per member"),
    MIB("gpu-memory", 0, "gpu_memory_mib", "instead: a fraction by memory"),
    TEXT("mig-profile", 0, "mig_profile", "NAME", "instead: a partition of a device, as 1g.10gb"),
    MILLI("cpus", 0, "cpu_milli", "cores per member"),
    MIB("memory", 'm', "memory_mib", "memory per member"),
    { "class", 'c', OPTION_LIST, OPTION_BODY, "classes", "NAME,...", "the best first" },
    { "pool", 0, OPTION_LIST, OPTION_BODY, "pools", "NAME,...", "in order" },
    { "project", 'p', OPTION_LIST, OPTION_BODY, "projects", "PATH,...", "only they and what is below may use it; *: all" },
    { "topology", 0, OPTION_TOPOLOGY, OPTION_BODY, "topology", "[prefer:]LEVEL", "all members within one node, rack or block; may be repeated" },
};
static const struct cli_option token_options[] = {
    TEXT("role", 0, NULL, "ROLE", "member (default) or admin"),
    TEXT("tenant", 0, NULL, "NAME", "of members"),
    TEXT("user", 0, NULL, "NAME", "who acts with it"),
    TEXT("name", 'n', NULL, "TEXT", "what it is for"),
    SPAN("expires", 0, "expires_s", "from now; default never"),
};
static const struct cli_option join_token_options[] = {
    TEXT("pool", 0, NULL, "NAME", "that the node enters (default: by its class)"),
    TEXT("name", 'n', NULL, "TEXT", "what it is for"),
    SPAN("expires", 0, "expires_s", "from now; default an hour"),
};
static const struct cli_option volume_options[] = {
    TEXT("tenant", 0, NULL, "NAME", "default: one's own"),
    MIB("quota", 0, "quota_mib", "at most so much"),
};
static const struct cli_option reservation_options[] = {
    TEXT("project", 'p', NULL, "PATH", "whose work may use it"),
    TEXT("class", 'c', NULL, "NAME", "of the devices"),
    MILLI("gpus", 'g', "gpu_milli", "how many devices, whole ones"),
    TEXT("start", 0, NULL, "TIME", "local time of the zone: 2026-03-27T18:00"),
    TEXT("end", 0, NULL, "TIME", "likewise; or --for"),
    SPAN("for", 0, "duration_s", "how long, instead of --end"),
    TEXT("zone", 'z', NULL, "NAME", "Europe/Berlin; default UTC"),
    TEXT("every", 0, NULL, "WHEN", "day, weekday or week; once unless given"),
    NUMBER("interval", 0, NULL, "every so many days or weeks"),
    TEXT("until", 0, NULL, "TIME", "the last window begins before; default: 366 days after start"),
    TEXT("end-policy", 0, "end_policy", "WHAT", "its work then: requeue (default), on_demand or stop"),
    FLAG("lend", 0, "is_lent", "others may use what is unused of an open window"),
    FLAG("request", 0, "is_request", "only ask for it; nothing is kept until it is confirmed"),
    FLAG("force", 0, "is_forced", "accept it beyond what there is, and mark it (operators)"),
};
static const struct cli_option reservation_list_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant (default: one's own; operators: all)"),
    QUERY("project", 'p', NULL, "PATH", "with all that is below it"),
    QUERY("state", 's', NULL, "STATE", "requested, confirmed, active, degraded, completed, released or cancelled"),
};
static const struct cli_option reservation_confirm_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant"),
    FLAG("force", 0, "is_forced", "accept it beyond what there is, and mark it (operators)"),
};
static const struct cli_option reservation_end_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant"),
    TEXT("reason", 'r', NULL, "TEXT", "for people, kept in the audit"),
    DRY_RUN,
};
static const struct cli_option slot_options[] = {
    QUERY("class", 'c', NULL, "NAME", "of the devices"),
    { "gpus", 'g', OPTION_MILLI, OPTION_QUERY, "gpu_milli", "N", "how many devices; default 1" },
    { "for", 0, OPTION_SECONDS, OPTION_QUERY, "duration_s", "TIME", "how long; default 1h" },
    { "after", 0, OPTION_SECONDS, OPTION_QUERY, "after_s", "TIME", "not before so long from now" },
    LOCAL("limit", 0, "N", "so many answers; default 3"),
};
static const struct cli_option import_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "whose it becomes (operators: everybody's unless given)"),
};
static const struct cli_option image_options[] = {
    TEXT("source", 0, NULL, "REFERENCE", "REGISTRY/NAME:TAG or ...@sha256:..."),
    TEXT("manifest", 0, NULL, "SHA256", "of its manifest"),
    TEXT("tenant", 0, NULL, "NAME", "default: one's own; operators: for all"),
};
static const struct cli_option credential_options[] = {
    TEXT("username", 0, NULL, "NAME", "at the registry"),
    TEXT("tenant", 0, NULL, "NAME", "default: one's own"),
    LOCAL("password-file", 0, "FILE", "`-` for standard input (the default)"),
};
static const struct cli_option hook_options[] = {
    TEXT("project", 'p', NULL, "PATH", "of its work, and of that below it; a tenant: of all"),
    TEXT("url", 0, NULL, "URL", "https://HOST/PATH, or mailto:ADDRESS"),
    LOCAL("secret-file", 0, "FILE", "what signs; `-` for standard input"),
};
static const struct cli_option usage_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant"),
    QUERY("project", 'p', NULL, "PATH", "with all below it"),
    QUERY("class", 'c', NULL, "NAME", "only of this class"),
};
static const struct cli_option segment_options[] = {
    QUERY("tenant", 0, NULL, "NAME", "of this tenant"),
    QUERY("project", 'p', NULL, "PATH", "of this project"),
    { "workload", 0, OPTION_WORKLOAD, OPTION_QUERY, NULL, "WORKLOAD", "of this workload, by name or id" },
};
static const struct cli_option device_list_options[] = {
    QUERY("node", 0, NULL, "NAME", "of this node"), QUERY("class", 'c', NULL, "NAME", "of this class"),
};
static const struct cli_option node_list_options[] = {
    QUERY("pool", 0, NULL, "NAME", "of this pool"),
    QUERY("contact", 0, NULL, "STATE", "never, ok, unknown or lost"),
};
static const struct cli_option node_set_options[] = {
    TEXT("rack", 0, NULL, "NAME", "the rack it is in; none: not known"),
    TEXT("block", 0, NULL, "NAME", "the block its rack is in; none: not known"),
};
static const struct cli_option settings_options[] = {
    SETTINGS(""),
};
static const struct cli_option apply_options[] = {
    LOCAL("file", 'f', "FILE", "manifests, several documents a file; `-` for standard input"),
    LOCAL_FLAG("dry-run", 0, "show what would change; only the controller knows whether it may"),
};
static const struct cli_option import_file_options[] = {
    LOCAL("class", 'c', "NAME=CLASS", "what they call NAME is of this class; may be repeated"),
    LOCAL_FLAG("apply", 0, "apply the manifest instead of printing it"),
    LOCAL_FLAG("dry-run", 0, "with --apply: show what would change"),
    LOCAL_FLAG("force", 0, "accept more than there is, and mark it"),
};
static const struct cli_option event_options[] = {
    LOCAL("after", 0, "SEQUENCE", "resume behind this one"),
    { "workload", 0, OPTION_WORKLOAD, OPTION_LOCAL, NULL, "WORKLOAD", "only of this workload, by name or id" },
    LOCAL("count", 'n', "N", "end after so many"),
    LOCAL_FLAG("until-end", 0, "end when the workload has ended"),
};

/* ---- commands -------------------------------------------------------------------------------- */

#define COMMAND static const struct cli_command

COMMAND submit = { NULL, "submit", .arguments = "[--] [COMMAND...]", .arguments_max = CLI_ARGUMENTS_MAX,
    .summary = "submit work; prints its id", OPTIONS(submit_options), .run = run_submit,
    .examples = "  berth submit -p amber -i debian-12 -g 1 -- python3 train.py\n"
                "  berth submit -p amber -i debian-12 -g 0.5 --upload . --follow -- ./run.sh\n"
                "  berth submit -p amber -i debian-12 --members 4 -g 8 -- torchrun main.py" };
COMMAND list = { NULL, "list", .summary = "workloads, the newest first", OPTIONS(list_options),
    .method = "GET", .path = "/v1/workloads", ROWS(workload_columns),
    .examples = "  berth list --state queued,running\n  berth list -p amber -o json" };
COMMAND show = { NULL, "show", ARGUMENTS("WORKLOAD..."), .summary = "everything about a workload",
    .method = "GET", .path = "/v1/workloads/{}", .examples = "  berth show train" };
COMMAND logs = { NULL, "logs", ARGUMENT("WORKLOAD"), .summary = "what a workload wrote",
    OPTIONS(log_options), .run = run_logs, .examples = "  berth logs --follow train" };
COMMAND wait_for = { NULL, "wait", ARGUMENTS("WORKLOAD..."),
    .summary = "wait until they end; exit 0 only if all succeeded", OPTIONS(wait_options),
    .run = run_wait, .examples = "  berth wait $(berth submit ... )" };
COMMAND cancel = { NULL, "cancel", ARGUMENTS("WORKLOAD..."), .summary = "end work, in any state",
    OPTIONS(stop_options), .method = "POST", .path = "/v1/workloads/{}/cancel", COLUMNS(workload_columns), LOOK("/v1/workloads/{}", "be cancelled"),
    .examples = "  berth cancel train\n"
                "  berth cancel $(berth list -q --label sweep=7)\n"
                "  berth cancel train --dry-run" };
COMMAND hold = { NULL, "hold", ARGUMENTS("WORKLOAD..."), .summary = "keep waiting work from starting",
    OPTIONS(reason_options), .method = "POST", .path = "/v1/workloads/{}/hold", COLUMNS(workload_columns),
    .examples = "  berth hold train --reason 'data is not there yet'" };
COMMAND release = { NULL, "release", ARGUMENTS("WORKLOAD..."), .summary = "let held work start",
    OPTIONS(reason_options), .method = "POST", .path = "/v1/workloads/{}/release", COLUMNS(workload_columns),
    .examples = "  berth release train" };
COMMAND requeue = { NULL, "requeue", ARGUMENTS("WORKLOAD..."), .summary = "stop work and let it start again",
    OPTIONS(stop_options), .method = "POST", .path = "/v1/workloads/{}/requeue", COLUMNS(workload_columns), LOOK("/v1/workloads/{}", "be stopped and queued again"),
    .examples = "  berth requeue train --reason 'the data set was wrong'" };
COMMAND explain = { NULL, "explain", ARGUMENT("WORKLOAD"), .summary = "why it waits, with numbers",
    .method = "GET", .path = "/v1/workloads/{}/explain", COLUMNS(explain_columns),
    .examples = "  berth explain train" };
COMMAND decisions = { NULL, "decisions", .summary = "what the scheduler decided, by which rule and why; the newest first",
    OPTIONS(decision_options), .method = "GET", .path = "/v1/decisions", ROWS(decision_columns),
    .examples = "  berth decisions --since 1h\n"
                "  berth decisions -p amber --rule reclaim --limit 20\n"
                "  berth decisions --workload train -o json" };
COMMAND exec = { NULL, "exec", .arguments = "WORKLOAD -- COMMAND...", .arguments_min = 2,
    .arguments_max = CLI_ARGUMENTS_MAX, .summary = "run a command inside running work", OPTIONS(exec_options),
    .run = run_exec, .examples = "  berth exec train -- nvidia-smi\n  berth exec -t train -- bash" };
COMMAND cp = { NULL, "cp", .arguments = "FROM TO", .arguments_min = 2, .arguments_max = 2,
    .summary = "copy files to or from running work (WORKLOAD:PATH), as cp -r does", OPTIONS(copy_options), .run = run_cp,
    .examples = "  berth cp train:/workspace/model.pt .\n"
                "  berth cp data train:/tmp\n"
                "  berth cp data/. train:/tmp/there --verbose" };
COMMAND top = { NULL, "top", .summary = "use of each project and class", .run = run_top,
    .examples = "  berth top\n"
                "  berth top -o json" };
COMMAND status = { NULL, "status", .summary = "the installation in numbers", .method = "GET", .path = "/v1/status",
    .examples = "  berth status" };
COMMAND whoami = { NULL, "whoami", .summary = "whom the controller takes you for", .method = "GET", .path = "/v1/whoami",
    .examples = "  berth whoami -o json" };
COMMAND apply = { NULL, "apply", .summary = "make things as a file says", OPTIONS(apply_options), .run = run_apply,
    .examples = "  berth apply -f tenants.yaml --dry-run\n  berth apply -f tenants.yaml" };
COMMAND import = { NULL, "import", .arguments = "SYSTEM FILE", .arguments_min = 2, .arguments_max = 2,
    .summary = "tenants and quotas of slurm, kueue or kai as a manifest", OPTIONS(import_file_options), .run = run_import,
    .examples = "  berth import slurm tux.cfg --class a100=a100-80g --class cpu=cpu-x86 >tenants.yaml\n"
                "  berth import kueue queues.yaml --class a100-flavor=a100-80g --apply --dry-run\n"
                "  berth import kai queues.yaml --class gpu=h100-80g --apply" };
COMMAND events = { NULL, "events", .summary = "the change feed, as lines of JSON", OPTIONS(event_options), .run = run_events,
    .examples = "  berth events --after 1200 --workload wl_7rk... --until-end" };
COMMAND doctor = { NULL, "doctor", .summary = "check this installation", .run = run_doctor,
    .examples = "  berth doctor && echo in order" };
COMMAND completion = { NULL, "completion", ARGUMENT("SHELL"), .summary = "completion for bash or zsh", .run = run_completion,
    .examples = "  berth completion bash >/etc/bash_completion.d/berth" };

COMMAND tenant_create = { "tenant", "create", ARGUMENT("NAME"), .summary = "create a tenant", OPTIONS(quota_options),
    .method = "POST", .path = "/v1/tenants", .argument_field = "path", COLUMNS(project_columns),
    .examples = "  berth tenant create amber --quota h100-80g=8 --limit h100-80g=16" };
COMMAND tenant_list = { "tenant", "list", .summary = "tenants", .method = "GET", .path = "/v1/tenants", ROWS(project_columns),
    .examples = "  berth tenant list" };
COMMAND tenant_show = { "tenant", "show", ARGUMENTS("NAME..."), .summary = "a tenant, with quotas and use", .method = "GET", .path = "/v1/tenants/{}",
    .examples = "  berth tenant show amber -o yaml" };
COMMAND tenant_remove = { "tenant", "remove", ARGUMENTS("NAME..."), .summary = "remove an empty tenant", OPTIONS(confirm_options), .run = run_remove, .path = "/v1/tenants/{}", LOOK("/v1/tenants/{}", "be removed"),
    .examples = "  berth tenant remove amber" };
COMMAND project_create = { "project", "create", ARGUMENT("PATH"), .summary = "create a project; its parents must exist", OPTIONS(quota_options),
    .method = "POST", .path = "/v1/projects", .argument_field = "path", COLUMNS(project_columns),
    .examples = "  berth project create amber/vision --quota h100-80g=4" };
COMMAND project_list = { "project", "list", .summary = "projects, parents first", OPTIONS(tenant_query), .method = "GET", .path = "/v1/projects", ROWS(project_columns),
    .examples = "  berth project list --tenant amber" };
COMMAND project_show = { "project", "show", ARGUMENTS("PATH..."), .summary = "a project, with quotas and use", .method = "GET", .path = "/v1/projects/{}",
    .examples = "  berth project show amber/vision" };
COMMAND project_remove = { "project", "remove", ARGUMENTS("PATH..."), .summary = "remove an empty project", OPTIONS(confirm_options), .run = run_remove, .path = "/v1/projects/{}", LOOK("/v1/projects/{}", "be removed"),
    .examples = "  berth project remove amber/vision/old --yes" };
COMMAND quota_set = { "quota", "set", ARGUMENT("PATH"), .summary = "change quotas of a tenant or project, for good or for a time; what is not named stays", OPTIONS(quota_change_options),
    .run = run_change, COLUMNS(change_columns),
    .examples = "  berth quota set amber --quota h100-80g=8 --limit h100-80g=none\n"
                "  berth quota set amber --quota h100-80g=2 --for 12h --dry-run" };
COMMAND quota_show = { "quota", "show", .arguments = "[PATH...]", .arguments_max = CLI_ARGUMENTS_MAX, .summary = "quotas of tenants and projects, with use; all unless named", .run = run_quota_show,
    .examples = "  berth quota show\n  berth quota show amber amber/vision" };
COMMAND quota_changes = { "quota", "changes", .summary = "changes that hold, are to come, or ended lately", OPTIONS(change_list_options), .method = "GET", .path = "/v1/changes", ROWS(change_columns),
    .examples = "  berth quota changes -p amber --state active" };
COMMAND quota_revert = { "quota", "revert", ARGUMENTS("CHANGE..."), .summary = "take a change back; a project's path means its newest", OPTIONS(revert_options), .method = "POST", .path = "/v1/changes/{}/revert", COLUMNS(change_columns), LOOK("/v1/changes/{}", "be taken back"),
    .examples = "  berth quota revert amber" };
COMMAND policy_set = { "policy", "set", .arguments = "[PATH]", .arguments_max = 1, .summary = "change settings of the scheduler, or a project's priority, for good or for a time", OPTIONS(policy_options),
    .run = run_change, COLUMNS(change_columns),
    .examples = "  berth policy set --placement spread --for 2h --dry-run\n"
                "  berth policy set amber --priority 80 --from 2026-03-27T22:00 --until 2026-03-28T06:00 --every day --zone Europe/Berlin" };
COMMAND whatif_submit = { "whatif", "submit", .arguments = "[--] [COMMAND...]", .arguments_max = CLI_ARGUMENTS_MAX, .summary = "what would follow if this work were submitted", OPTIONS(whatif_submit_options), .run = run_whatif_submit,
    .examples = "  berth whatif submit -p amber -i debian-12 -g 8 -t 2h\n  berth whatif submit -f job.yaml" };
COMMAND whatif_quota = { "whatif", "quota", ARGUMENT("PATH"), .summary = "what would follow if these quotas were set", OPTIONS(whatif_quota_options), .run = run_whatif_change,
    .examples = "  berth whatif quota amber --quota h100-80g=8" };
COMMAND whatif_policy = { "whatif", "policy", .summary = "what would follow if these settings were set", OPTIONS(whatif_policy_options), .run = run_whatif_change,
    .examples = "  berth whatif policy --reclaim-to fair_share" };
COMMAND whatif_lose = { "whatif", "lose", ARGUMENT("NODE"), .summary = "what would follow if this node were lost", OPTIONS(whatif_node_options), .run = run_whatif_lose,
    .examples = "  berth whatif lose node-7 --horizon 6h" };
COMMAND export = { NULL, "export", .summary = "the state, for berth-sim", OPTIONS(export_options), .run = run_export,
    .examples = "  berth export --snapshot today.jsonl" };
COMMAND policy_show = { "policy", "show", .arguments = "[CHANGE...]", .arguments_max = CLI_ARGUMENTS_MAX, .summary = "the settings that hold now, or a change", .run = run_policy_show,
    .examples = "  berth policy show\n  berth policy show night" };
COMMAND policy_changes = { "policy", "changes", .summary = "changes that hold, are to come, or ended lately", OPTIONS(change_list_options), .method = "GET", .path = "/v1/changes", ROWS(change_columns),
    .examples = "  berth policy changes --state scheduled" };
COMMAND policy_revert = { "policy", "revert", ARGUMENTS("CHANGE..."), .summary = "take a change back; `settings` means the newest of the settings", OPTIONS(revert_options), .method = "POST", .path = "/v1/changes/{}/revert", COLUMNS(change_columns), LOOK("/v1/changes/{}", "be taken back"),
    .examples = "  berth policy revert settings" };
COMMAND class_list = { "class", "list", .summary = "resource classes, with capacity", .method = "GET", .path = "/v1/classes", ROWS(class_columns),
    .examples = "  berth class list" };
COMMAND class_show = { "class", "show", ARGUMENTS("NAME..."), .summary = "a class", .method = "GET", .path = "/v1/classes/{}",
    .examples = "  berth class show h100-80g" };
COMMAND class_set = { "class", "set", ARGUMENT("NAME"), .summary = "create or change a class", OPTIONS(class_options),
    .method = "PUT", .path = "/v1/classes/{}", COLUMNS(class_columns), .examples = "  berth class set h100-80g --price-micros 2500000" };
COMMAND class_remove = { "class", "remove", ARGUMENTS("NAME..."), .summary = "remove a class that nothing uses", OPTIONS(confirm_options), .run = run_remove, .path = "/v1/classes/{}", LOOK("/v1/classes/{}", "be removed"),
    .examples = "  berth class remove k80" };
COMMAND pool_list = { "pool", "list", .summary = "pools of nodes", .method = "GET", .path = "/v1/pools", ROWS(pool_columns),
    .examples = "  berth pool list" };
COMMAND pool_show = { "pool", "show", ARGUMENTS("NAME..."), .summary = "a pool", .method = "GET", .path = "/v1/pools/{}",
    .examples = "  berth pool show hall-2" };
COMMAND pool_set = { "pool", "set", ARGUMENT("NAME"), .summary = "create or change a pool", OPTIONS(pool_options), .method = "PUT", .path = "/v1/pools/{}", COLUMNS(pool_columns),
    .examples = "  berth pool set hall-2 --class h100-80g" };
COMMAND pool_remove = { "pool", "remove", ARGUMENTS("NAME..."), .summary = "remove an empty pool", OPTIONS(confirm_options), .run = run_remove, .path = "/v1/pools/{}", LOOK("/v1/pools/{}", "be removed"),
    .examples = "  berth pool remove hall-1" };
COMMAND profile_list = { "profile", "list", .summary = "shapes that users pick", .method = "GET", .path = "/v1/profiles", ROWS(profile_columns),
    .examples = "  berth profile list" };
COMMAND profile_show = { "profile", "show", ARGUMENTS("NAME..."), .summary = "a profile", .method = "GET", .path = "/v1/profiles/{}",
    .examples = "  berth profile show gpu-4" };
COMMAND profile_set = { "profile", "set", ARGUMENT("NAME"), .summary = "create or change a profile", OPTIONS(profile_options), .method = "PUT", .path = "/v1/profiles/{}", COLUMNS(profile_columns),
    .examples = "  berth profile set gpu-4 --gpus 4 --cpus 32 --memory 256G --class h100-80g" };
COMMAND profile_remove = { "profile", "remove", ARGUMENTS("NAME..."), .summary = "remove a profile", OPTIONS(confirm_options), .run = run_remove, .path = "/v1/profiles/{}", LOOK("/v1/profiles/{}", "be removed"),
    .examples = "  berth profile remove gpu-4 --yes" };
COMMAND node_list = { "node", "list", .summary = "nodes, with devices and use", OPTIONS(node_list_options), .method = "GET", .path = "/v1/nodes", ROWS(node_columns),
    .examples = "  berth node list --contact lost\n"
                "  berth node list --pool hall-2 -o json" };
COMMAND node_show = { "node", "show", ARGUMENTS("NODE..."), .summary = "a node", .method = "GET", .path = "/v1/nodes/{}",
    .examples = "  berth node show n1" };
COMMAND node_join_token = { "node", "join-token", .summary = "a token with which one machine can become a node", OPTIONS(join_token_options), .run = run_token_create, .path = "/v1/join-tokens",
    .examples = "  berth node join-token -q | ssh n1 berth-agent join --server ctl --token-file - --ca ca.pem" };
COMMAND node_set = { "node", "set", ARGUMENTS("NODE"), .summary = "say where a node stands; what is not named stays", OPTIONS(node_set_options), .method = "PATCH", .path = "/v1/nodes/{}", COLUMNS(node_columns),
    .examples = "  berth node set n1 --rack r7 --block hall-2\n"
                "  berth node set n1 --rack none" };
COMMAND node_cordon = { "node", "cordon", ARGUMENTS("NODE..."), .summary = "no new work on a node", OPTIONS(reason_options), .method = "POST", .path = "/v1/nodes/{}/cordon", COLUMNS(node_columns),
    .examples = "  berth node cordon n1 --reason 'a fan is loud'" };
COMMAND node_uncordon = { "node", "uncordon", ARGUMENTS("NODE..."), .summary = "new work again", OPTIONS(reason_options), .method = "POST", .path = "/v1/nodes/{}/uncordon", COLUMNS(node_columns),
    .examples = "  berth node uncordon n1" };
COMMAND node_drain = { "node", "drain", ARGUMENTS("NODE..."), .summary = "empty a node for maintenance", OPTIONS(drain_options), .run = run_node_drain, .method = "POST", .path = "/v1/nodes/{}/drain", COLUMNS(node_columns), LOOK("/v1/nodes/{}", "get no new work, and be emptied"),
    .examples = "  berth node drain n1 --deadline 2h --reason 'new driver'\n"
                "  berth node drain n1 --deadline 2h --dry-run" };
COMMAND node_undrain = { "node", "undrain", ARGUMENTS("NODE..."), .summary = "end a drain", OPTIONS(reason_options), .method = "POST", .path = "/v1/nodes/{}/undrain", COLUMNS(node_columns),
    .examples = "  berth node undrain n1" };
COMMAND node_confirm = { "node", "confirm-lost", ARGUMENTS("NODE..."), .summary = "say that nothing of a lost node can still run", OPTIONS(stop_options), .method = "POST", .path = "/v1/nodes/{}/confirm-lost", COLUMNS(node_columns), LOOK("/v1/nodes/{}", "be declared lost"),
    .examples = "  berth node confirm-lost n1 --reason 'it was switched off'" };
COMMAND node_remove = { "node", "remove", ARGUMENTS("NODE..."), .summary = "remove a node; it has to join again", OPTIONS(node_remove_options), .run = run_remove, .path = "/v1/nodes/{}", LOOK("/v1/nodes/{}", "be removed"),
    .examples = "  berth node remove n1\n"
                "  berth node remove n1 --force --yes" };
COMMAND device_list = { "device", "list", .summary = "devices of all nodes", OPTIONS(device_list_options), .method = "GET", .path = "/v1/devices", ROWS(device_columns),
    .examples = "  berth device list --node n1" };
COMMAND device_hold = { "device", "hold", .arguments = "NODE INDEX", .arguments_min = 2, .arguments_max = 2, .summary = "keep a device out of use", OPTIONS(reason_options), .run = run_device_hold, COLUMNS(device_columns),
    .examples = "  berth device hold n1 3 --reason 'errors of its memory'" };
COMMAND device_release = { "device", "release", .arguments = "NODE INDEX", .arguments_min = 2, .arguments_max = 2, .summary = "put a device back into use", OPTIONS(reason_options), .run = run_device_hold, COLUMNS(device_columns),
    .examples = "  berth device release n1 3" };
COMMAND allocation_list = { "allocation", "list", .summary = "what the nodes hold now", .method = "GET", .path = "/v1/allocations", ROWS(allocation_columns),
    .examples = "  berth allocation list" };
COMMAND token_create = { "token", "create", .summary = "make a token; its secret is shown once", OPTIONS(token_options), .run = run_token_create, .path = "/v1/tokens",
    .examples = "  export BERTH_TOKEN=$(berth token create --tenant amber --user ada -q)" };
COMMAND token_list = { "token", "list", .summary = "tokens, never their secrets", OPTIONS(tenant_query), .method = "GET", .path = "/v1/tokens", ROWS(token_columns),
    .examples = "  berth token list --tenant amber" };
COMMAND token_show = { "token", "show", ARGUMENTS("ID..."), .summary = "a token, without its secret", .method = "GET", .path = "/v1/tokens/{}",
    .examples = "  berth token show tok_7rk..." };
COMMAND token_revoke = { "token", "revoke", ARGUMENTS("ID..."), .summary = "revoke tokens, at once", OPTIONS(dry_options), .method = "DELETE", .path = "/v1/tokens/{}", LOOK("/v1/tokens/{}", "be revoked"),
    .examples = "  berth token revoke tok_7rk..." };
COMMAND volume_create = { "volume", "create", ARGUMENT("NAME"), .summary = "create a volume", OPTIONS(volume_options), .method = "POST", .path = "/v1/volumes", .argument_field = "name", COLUMNS(volume_columns),
    .examples = "  berth volume create data --tenant amber --quota 500G" };
COMMAND volume_list = { "volume", "list", .summary = "volumes", OPTIONS(tenant_query), .method = "GET", .path = "/v1/volumes", ROWS(volume_columns),
    .examples = "  berth volume list" };
COMMAND volume_show = { "volume", "show", ARGUMENTS("NAME..."), .summary = "a volume", OPTIONS(tenant_of), .method = "GET", .path = "/v1/volumes/{}",
    .examples = "  berth volume show data --tenant amber" };
COMMAND volume_put = { "volume", "put", .arguments = "NAME FROM [PATH]", .arguments_min = 2, .arguments_max = 3, .summary = "copy a file or directory into a volume; PATH is / unless given", OPTIONS(volume_copy_options), .run = run_volume_put,
    .examples = "  berth volume put data ./images\n"
                "  berth volume put data ./images/. sets/train" };
COMMAND volume_get = { "volume", "get", .arguments = "NAME PATH TO", .arguments_min = 3, .arguments_max = 3, .summary = "copy a file or directory out of a volume; / is all of it", OPTIONS(volume_copy_options), .run = run_volume_get,
    .examples = "  berth volume get data results ./results\n"
                "  berth volume get data / ./everything" };
COMMAND volume_remove = { "volume", "remove", ARGUMENTS("NAME..."), .summary = "remove a volume and what is in it", OPTIONS(tenant_remove_options), .run = run_remove, .path = "/v1/volumes/{}", LOOK("/v1/volumes/{}", "be removed"),
    .examples = "  berth volume remove scratch --yes\n"
                "  berth volume remove scratch --dry-run" };
COMMAND reservation_create = { "reservation", "create", ARGUMENT("NAME"), .summary = "reserve devices in windows of time", OPTIONS(reservation_options), .method = "POST", .path = "/v1/reservations", .argument_field = "name", COLUMNS(reservation_columns),
    .examples = "  berth reservation create evening -p amber -c h100-80g -g 16 --start 2026-03-27T18:00 --end 2026-03-27T20:00 --zone Europe/Berlin --every weekday" };
COMMAND reservation_list = { "reservation", "list", .summary = "reservations", OPTIONS(reservation_list_options), .method = "GET", .path = "/v1/reservations", ROWS(reservation_columns),
    .examples = "  berth reservation list --state active" };
COMMAND reservation_show = { "reservation", "show", ARGUMENTS("NAME..."), .summary = "a reservation", OPTIONS(tenant_of), .method = "GET", .path = "/v1/reservations/{}",
    .examples = "  berth reservation show evening" };
COMMAND reservation_confirm = { "reservation", "confirm", ARGUMENTS("NAME..."), .summary = "keep free what was only asked for", OPTIONS(reservation_confirm_options), .method = "POST", .path = "/v1/reservations/{}/confirm", COLUMNS(reservation_columns),
    .examples = "  berth reservation confirm evening" };
COMMAND reservation_release = { "reservation", "release", ARGUMENTS("NAME..."), .summary = "give back what is left of a reservation", OPTIONS(reservation_end_options), .method = "POST", .path = "/v1/reservations/{}/release", COLUMNS(reservation_columns), LOOK("/v1/reservations/{}", "be released"),
    .examples = "  berth reservation release evening" };
COMMAND reservation_cancel = { "reservation", "cancel", ARGUMENTS("NAME..."), .summary = "cancel a reservation", OPTIONS(reservation_end_options), .method = "POST", .path = "/v1/reservations/{}/cancel", COLUMNS(reservation_columns), LOOK("/v1/reservations/{}", "be cancelled"),
    .examples = "  berth reservation cancel evening --dry-run" };
COMMAND reservation_availability = { "reservation", "availability", .summary = "the earliest times when devices could be reserved", OPTIONS(slot_options), .method = "GET", .path = "/v1/slots", ROWS(slot_columns),
    .examples = "  berth reservation availability -c h100-80g -g 16 --for 2h" };
COMMAND image_import = { "image", "import", .arguments = "NAME PATH", .arguments_min = 2, .arguments_max = 2, .summary = "upload a directory, a tarball, an OCI layout or archive as an image", OPTIONS(import_options), .run = run_image_import, COLUMNS(image_columns),
    .examples = "  berth image import debian-12 debian-12.tar" };
COMMAND image_set = { "image", "set", ARGUMENT("NAME"), .summary = "name an image of a registry", OPTIONS(image_options), .method = "POST", .path = "/v1/images", .argument_field = "name", COLUMNS(image_columns),
    .examples = "  berth image set torch --source registry.example.org/torch:2.4" };
COMMAND image_list = { "image", "list", .summary = "images, one's own and those offered to all", OPTIONS(tenant_query), .method = "GET", .path = "/v1/images", ROWS(image_columns),
    .examples = "  berth image list" };
COMMAND image_show = { "image", "show", ARGUMENTS("NAME..."), .summary = "an image", OPTIONS(tenant_of), .method = "GET", .path = "/v1/images/{}",
    .examples = "  berth image show debian-12" };
COMMAND image_remove = { "image", "remove", ARGUMENTS("NAME..."), .summary = "remove an image; running work is not touched", OPTIONS(tenant_remove_options), .run = run_remove, .path = "/v1/images/{}", LOOK("/v1/images/{}", "be removed"),
    .examples = "  berth image remove torch --yes" };
COMMAND credential_set = { "credential", "set", ARGUMENT("REGISTRY"), .summary = "set the login at a private registry", OPTIONS(credential_options), .run = run_credential_set, COLUMNS(credential_columns),
    .examples = "  berth credential set registry.example.org --username ci <password.txt" };
COMMAND credential_list = { "credential", "list", .summary = "logins, never their passwords", OPTIONS(tenant_query), .method = "GET", .path = "/v1/credentials", ROWS(credential_columns),
    .examples = "  berth credential list" };
COMMAND credential_show = { "credential", "show", ARGUMENTS("ID..."), .summary = "a login, without its password", .method = "GET", .path = "/v1/credentials/{}",
    .examples = "  berth credential show crd_7rk..." };
COMMAND credential_remove = { "credential", "remove", ARGUMENTS("ID..."), .summary = "remove a login", OPTIONS(confirm_options), .run = run_remove, .path = "/v1/credentials/{}", LOOK("/v1/credentials/{}", "be removed"),
    .examples = "  berth credential remove crd_7rk..." };
COMMAND hook_set = { "hook", "set", ARGUMENT("NAME"), .summary = "say where it is told what becomes of work", OPTIONS(hook_options), .run = run_hook_set, COLUMNS(hook_columns),
    .examples = "  berth hook set ops --project amber --url https://example.org/berth --secret-file hook.secret\n  berth hook set mail --project amber/vision --url mailto:vision@example.org" };
COMMAND hook_list = { "hook", "list", .summary = "hooks, and whether they are reached; never their secrets", OPTIONS(tenant_query), .method = "GET", .path = "/v1/hooks", ROWS(hook_columns),
    .examples = "  berth hook list" };
COMMAND hook_show = { "hook", "show", ARGUMENTS("ID..."), .summary = "a hook, without its secret", .method = "GET", .path = "/v1/hooks/{}",
    .examples = "  berth hook show hok_7rk..." };
COMMAND hook_test = { "hook", "test", ARGUMENTS("ID..."), .summary = "send a notice there that says it is a test", .method = "POST", .path = "/v1/hooks/{}/test", COLUMNS(hook_columns),
    .examples = "  berth hook test hok_7rk..." };
COMMAND hook_remove = { "hook", "remove", ARGUMENTS("ID..."), .summary = "remove a hook; nothing more is sent there", OPTIONS(confirm_options), .run = run_remove, .path = "/v1/hooks/{}", LOOK("/v1/hooks/{}", "be removed"),
    .examples = "  berth hook remove hok_7rk..." };
COMMAND usage_report = { "usage", "report", .summary = "use by project and class, up to now", OPTIONS(usage_options), .run = run_usage_report, .method = "GET", .path = "/v1/usage", ROWS(usage_columns),
    .examples = "  berth usage report --project amber/vision" };
COMMAND usage_segments = { "usage", "segments", .summary = "ended uses, one a line: what is billed", OPTIONS(segment_options), .method = "GET", .path = "/v1/usage/segments", ROWS(segment_columns),
    .examples = "  berth usage segments --workload wl_7rk... -o json" };
COMMAND invoice_show = { "invoice", "show", .arguments = "[TENANT]", .arguments_max = 1, .summary = "what a tenant's use costs so far", .run = run_invoice,
    .examples = "  berth invoice show amber" };
COMMAND audit_list = { "audit", "list", .summary = "who did what, the newest first", OPTIONS(audit_options), .method = "GET", .path = "/v1/audit", ROWS(audit_columns),
    .examples = "  berth audit list --tenant amber --limit 20" };
COMMAND settings_show = { "settings", "show", .summary = "settings of the installation", .method = "GET", .path = "/v1/settings",
    .examples = "  berth settings show -o yaml" };
COMMAND settings_set = { "settings", "set", .summary = "change settings; what is not named stays", OPTIONS(settings_options), .method = "PATCH", .path = "/v1/settings",
    .examples = "  berth settings set --lost-after 5m --reclaim-to fair_share\n"
                "  berth settings set --ended-keep 2h --ended-keep-count 50000" };
/* clang-format on */

const struct cli_command *const cli_commands[] = {
    &submit,
    &list,
    &show,
    &logs,
    &wait_for,
    &cancel,
    &hold,
    &release,
    &requeue,
    &explain,
    &decisions,
    &exec,
    &cp,
    &top,
    &status,
    &whoami,
    &apply,
    &import,
    &events,
    &doctor,
    &completion,
    &tenant_create,
    &tenant_list,
    &tenant_show,
    &tenant_remove,
    &project_create,
    &project_list,
    &project_show,
    &project_remove,
    &quota_set,
    &quota_show,
    &quota_changes,
    &quota_revert,
    &policy_set,
    &policy_show,
    &policy_changes,
    &policy_revert,
    &whatif_submit,
    &whatif_quota,
    &whatif_policy,
    &whatif_lose,
    &export,
    &class_list,
    &class_show,
    &class_set,
    &class_remove,
    &pool_list,
    &pool_show,
    &pool_set,
    &pool_remove,
    &profile_list,
    &profile_show,
    &profile_set,
    &profile_remove,
    &node_list,
    &node_show,
    &node_join_token,
    &node_set,
    &node_cordon,
    &node_uncordon,
    &node_drain,
    &node_undrain,
    &node_confirm,
    &node_remove,
    &device_list,
    &device_hold,
    &device_release,
    &allocation_list,
    &token_create,
    &token_list,
    &token_show,
    &token_revoke,
    &volume_create,
    &volume_list,
    &volume_show,
    &volume_put,
    &volume_get,
    &volume_remove,
    &reservation_create,
    &reservation_list,
    &reservation_show,
    &reservation_confirm,
    &reservation_release,
    &reservation_cancel,
    &reservation_availability,
    &image_import,
    &image_set,
    &image_list,
    &image_show,
    &image_remove,
    &credential_set,
    &credential_list,
    &credential_show,
    &credential_remove,
    &hook_set,
    &hook_list,
    &hook_show,
    &hook_test,
    &hook_remove,
    &usage_report,
    &usage_segments,
    &invoice_show,
    &audit_list,
    &settings_show,
    &settings_set,
    NULL,
};
