#include "model/kinds.h"

#define NAMES(variable, meaning, list)                                                             \
    const struct enum_names variable = { meaning, list, COUNT_OF(list) }

static const char *const workload_states[WL_STATE_COUNT] = {
    [WL_HELD] = "held",           [WL_QUEUED] = "queued",   [WL_PROVISIONING] = "provisioning",
    [WL_STARTING] = "starting",   [WL_RUNNING] = "running", [WL_STOPPING] = "stopping",
    [WL_SUCCEEDED] = "succeeded", [WL_FAILED] = "failed",   [WL_CANCELLED] = "cancelled",
    [WL_TIMED_OUT] = "timed_out",
};
NAMES(workload_state_names, "workload state", workload_states);

static const char *const allocation_states[AL_STATE_COUNT] = {
    [AL_STARTING] = "starting", [AL_RUNNING] = "running",         [AL_STOPPING] = "stopping",
    [AL_CLEANING] = "cleaning", [AL_QUARANTINED] = "quarantined", [AL_LOST] = "lost",
    [AL_ENDED] = "ended",
};
NAMES(allocation_state_names, "allocation state", allocation_states);

static const char *const workload_kinds[WORKLOAD_KIND_COUNT] = {
    [KIND_JOB] = "job",
    [KIND_SESSION] = "session",
    [KIND_SERVICE] = "service",
    [KIND_CLUSTER] = "cluster",
};
NAMES(workload_kind_names, "workload kind", workload_kinds);

static const char *const reservation_states[RSV_STATE_COUNT] = {
    [RSV_REQUESTED] = "requested", [RSV_CONFIRMED] = "confirmed", [RSV_ACTIVE] = "active",
    [RSV_DEGRADED] = "degraded",   [RSV_COMPLETED] = "completed", [RSV_RELEASED] = "released",
    [RSV_CANCELLED] = "cancelled",
};
NAMES(reservation_state_names, "reservation state", reservation_states);

static const char *const change_states[CHG_STATE_COUNT] = {
    [CHG_SCHEDULED] = "scheduled", [CHG_ACTIVE] = "active",   [CHG_EXPIRED] = "expired",
    [CHG_REVERTED] = "reverted",   [CHG_SETTLED] = "settled", [CHG_FAILED] = "failed",
};
NAMES(change_state_names, "change state", change_states);

static const char *const repeats[REPEAT_COUNT] = {
    [REPEAT_DAY] = "day",
    [REPEAT_WEEKDAY] = "weekday",
    [REPEAT_WEEK] = "week",
};
NAMES(repeat_names, "recurrence", repeats);

static const char *const end_policies[END_POLICY_COUNT] = {
    [END_REQUEUE] = "requeue",
    [END_ON_DEMAND] = "on_demand",
    [END_STOP] = "stop",
};
NAMES(end_policy_names, "end policy", end_policies);

static const char *const class_kinds[CLASS_KIND_COUNT] = {
    [CLASS_GPU] = "gpu",
    [CLASS_CPU] = "cpu",
};
NAMES(class_kind_names, "class kind", class_kinds);

static const char *const slicings[SLICING_COUNT] = {
    [SLICING_POLICED] = "policed",
    [SLICING_MIG] = "mig",
    [SLICING_COOPERATIVE] = "cooperative",
};
NAMES(slicing_names, "slicing", slicings);

static const char *const mig_tables[MIG_TABLE_COUNT] = {
    [MIG_TABLE_A100_40G] = "a100-40g", [MIG_TABLE_A100_80G] = "a100-80g",
    [MIG_TABLE_H100_80G] = "h100-80g", [MIG_TABLE_H100_94G] = "h100-94g",
    [MIG_TABLE_H100_96G] = "h100-96g", [MIG_TABLE_H200_141G] = "h200-141g",
};
NAMES(mig_table_names, "MIG table", mig_tables);

static const char *const mig_profiles[MIG_NAME_COUNT] = {
    [MIG_1G_5GB] = "1g.5gb",   [MIG_1G_10GB] = "1g.10gb",   [MIG_2G_10GB] = "2g.10gb",
    [MIG_3G_20GB] = "3g.20gb", [MIG_4G_20GB] = "4g.20gb",   [MIG_7G_40GB] = "7g.40gb",
    [MIG_1G_20GB] = "1g.20gb", [MIG_2G_20GB] = "2g.20gb",   [MIG_3G_40GB] = "3g.40gb",
    [MIG_4G_40GB] = "4g.40gb", [MIG_7G_80GB] = "7g.80gb",   [MIG_1G_12GB] = "1g.12gb",
    [MIG_1G_24GB] = "1g.24gb", [MIG_2G_24GB] = "2g.24gb",   [MIG_3G_47GB] = "3g.47gb",
    [MIG_4G_47GB] = "4g.47gb", [MIG_7G_94GB] = "7g.94gb",   [MIG_3G_48GB] = "3g.48gb",
    [MIG_4G_48GB] = "4g.48gb", [MIG_7G_96GB] = "7g.96gb",   [MIG_1G_18GB] = "1g.18gb",
    [MIG_1G_35GB] = "1g.35gb", [MIG_2G_35GB] = "2g.35gb",   [MIG_3G_71GB] = "3g.71gb",
    [MIG_4G_71GB] = "4g.71gb", [MIG_7G_141GB] = "7g.141gb",
};
NAMES(mig_names, "MIG profile", mig_profiles);

static const char *const site_kinds[SITE_KIND_COUNT] = {
    [SITE_NATIVE] = "native",         [SITE_SLURM] = "slurm", [SITE_PBS] = "pbs",
    [SITE_KUBERNETES] = "kubernetes", [SITE_CLOUD] = "cloud", [SITE_SIM] = "sim",
};
NAMES(site_kind_names, "site", site_kinds);

static const char *const on_contact_losses[ON_CONTACT_LOSS_COUNT] = {
    [LOSS_RESTART] = "restart",
    [LOSS_FENCE] = "fence",
    [LOSS_KEEP] = "keep",
};
NAMES(on_contact_loss_names, "on_contact_loss", on_contact_losses);

static const char *const restart_policies[RESTART_POLICY_COUNT] = {
    [RESTART_ON_FAILURE] = "on_failure",
    [RESTART_NEVER] = "never",
};
NAMES(restart_policy_names, "restart policy", restart_policies);

static const char *const preemptibles[PREEMPTIBLE_COUNT] = {
    [PREEMPTIBLE_ALWAYS] = "always",
    [PREEMPTIBLE_NEVER] = "never",
};
NAMES(preemptible_names, "preemptible", preemptibles);

static const char *const dependency_whens[DEPENDENCY_WHEN_COUNT] = {
    [AFTER_OK] = "ok",
    [AFTER_ANY] = "any",
    [AFTER_FAILED] = "failed",
};
NAMES(dependency_when_names, "dependency condition", dependency_whens);

static const char *const roles[ROLE_COUNT] = {
    [ROLE_ADMIN] = "admin", [ROLE_MEMBER] = "member", [ROLE_NODE_JOIN] = "node_join",
    [ROLE_NODE] = "node",   [ROLE_SYSTEM] = "system",
};
NAMES(role_names, "role", roles);

static const char *const node_contacts[NODE_CONTACT_COUNT] = {
    [CONTACT_NEVER] = "never",
    [CONTACT_OK] = "ok",
    [CONTACT_UNKNOWN] = "unknown",
    [CONTACT_LOST] = "lost",
};
NAMES(node_contact_names, "node contact", node_contacts);

static const char *const hold_kinds[HOLD_KIND_COUNT] = {
    [HOLD_PERSON] = "person",
    [HOLD_CHECK] = "check",
    [HOLD_DRAIN] = "drain",
};
NAMES(hold_kind_names, "hold", hold_kinds);

static const char *const device_healths[DEVICE_HEALTH_COUNT] = {
    [DEVICE_OK] = "ok",
    [DEVICE_FAILED] = "failed",
    [DEVICE_GONE] = "gone",
};
NAMES(device_health_names, "device health", device_healths);

static const char *const reclaim_tos[RECLAIM_TO_COUNT] = {
    [RECLAIM_TO_QUOTA] = "quota",
    [RECLAIM_TO_FAIR_SHARE] = "fair_share",
};
NAMES(reclaim_to_names, "reclaim_to", reclaim_tos);

static const char *const consolidates[CONSOLIDATE_COUNT] = {
    [CONSOLIDATE_OFF] = "off",
    [CONSOLIDATE_ON] = "on",
};
NAMES(consolidate_names, "consolidate", consolidates);

static const char *const user_fairnesses[USER_FAIRNESS_COUNT] = {
    [USER_FAIRNESS_OFF] = "off",
    [USER_FAIRNESS_USAGE] = "usage",
};
NAMES(user_fairness_names, "user_fairness", user_fairnesses);

static const char *const placements[PLACEMENT_COUNT] = {
    [PLACE_FIRST_FIT] = "first_fit", [PLACE_BEST_FIT] = "best_fit", [PLACE_PACK] = "pack",
    [PLACE_SPREAD] = "spread",       [PLACE_FGD] = "fgd",           [PLACE_ADAPTIVE] = "adaptive",
};
NAMES(placement_names, "placement", placements);

static const char *const topologies[TOPOLOGY_COUNT] = {
    [TOPOLOGY_NODE] = "node",
    [TOPOLOGY_RACK] = "rack",
    [TOPOLOGY_BLOCK] = "block",
};
NAMES(topology_names, "topology", topologies);

const char *enum_name(const struct enum_names *names, unsigned value)
{
    return value < names->count && names->names[value] != NULL ? names->names[value] : "";
}

bool enum_parse(const struct enum_names *names, struct str text, unsigned *out)
{
    for (unsigned value = 0; value < names->count; value++) {
        if (names->names[value] != NULL && str_is(text, names->names[value])) {
            *out = value;
            return true;
        }
    }
    return false;
}
