/*
 * scenario.h - one scenario as it stands in a file: a cluster, who may use it, what happens when,
 * and what must be true. Instants are seconds since the start of the scenario, amounts thousandths.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "model/record.h"
#include "model/spec.h"
#include "sim/doc.h"

/* A span without end: of work that runs for ever, of a process that does not die. */
#define SIM_NEVER INT64_MAX

struct amount {
    struct str class_name;
    int64_t value;
};

struct amount_list {
    struct amount *items;
    size_t count;
};

struct sim_class {
    const struct doc *at;
    struct str name;
    int64_t memory_mib;
    int64_t slicing; /* UNSET: policed */
    int64_t mig;     /* UNSET: by the name */
};

struct sim_pool {
    const struct doc *at;
    struct str name, class_name;
    int64_t nodes, gpus, cpu_milli, memory_mib; /* UNSET: unbounded */
    int64_t nodes_per_rack, racks_per_block;    /* UNSET: all are in one */
    int64_t slicing, mig;
};

struct sim_tenant {
    const struct doc *at;
    struct str path;
    struct amount_list quota, limit, lend_limit, weight;
    int64_t priority; /* UNSET: as it is */
    int64_t for_s;    /* of set_quota: then what was before holds again; UNSET: for good */
    bool is_forced;
};

struct sim_job {
    struct str name, project, user;
    struct str_list classes;
    int64_t count; /* UNSET: one, plainly named */
    int64_t gpu_milli, gpu_memory_mib, devices, share_milli, cpu_milli, memory_mib, mig_profile;
    int64_t members, members_min, priority, preemptible, retries;
    int64_t duration_s, fails_after_s, stop_s, checkpoint_s, time_limit_s;
    struct topology_spec topology;
    struct str reservation;
};

/* Instants are local times of the zone, or scenario times. */
struct sim_reservation {
    struct str name, project, class_name, zone, start, end, until;
    struct str zone_rule;
    int64_t gpu_milli, every, interval, end_policy;
    bool is_lent, is_forced, is_request;
};

enum sim_event_type {
    SIM_SUBMIT,
    SIM_CANCEL,
    SIM_HOLD,
    SIM_RELEASE,
    SIM_SET_QUOTA,
    SIM_SET,
    SIM_FAIL_NODE,
    SIM_RETURN_NODE,
    SIM_FAIL_DEVICE,
    SIM_RETURN_DEVICE,
    SIM_DRAIN,
    SIM_UNDRAIN,
    SIM_PARTITION,
    SIM_HEAL,
    SIM_RESTART_CONTROLLER,
    SIM_RESERVE,
    SIM_RELEASE_RESERVATION,
    SIM_CANCEL_RESERVATION,
    SIM_CONFIRM_RESERVATION,
};

struct sim_event {
    const struct doc *at;
    int64_t at_s;
    enum sim_event_type type;
    struct str name;                    /* of jobs, or of a node */
    int64_t index;                      /* of a device */
    int64_t deadline_s;                 /* of a drain; UNSET: none */
    struct sim_job job;                 /* SIM_SUBMIT */
    struct sim_tenant quota;            /* SIM_SET_QUOTA */
    struct sim_reservation reservation; /* SIM_RESERVE */
    struct settings_record settings;    /* names not given are their COUNT: they stay */
    struct str expect_error;            /* name of a cause; empty: it has to succeed */
};

struct path_amounts {
    struct str path;
    struct amount_list amounts;
};

struct path_amounts_list {
    struct path_amounts *items;
    size_t count;
};

/* All that is given must hold at that instant, or at every instant of a span. */
struct sim_expect {
    const struct doc *at;
    int64_t from_s, to_s; /* equal for `at`; UNSET: `end` */
    struct str job;       /* "" or a name; ends in '*': all that begin so */
    struct str reservation;
    struct str state, cause, node, pool, same_node_as, different_device_from, path;
    int64_t count_in_state, evictions, evictions_max, attempts, error_count;
    int64_t started_before_s, started_after_s, promised_before_s, quiet_after_s;
    struct path_amounts_list running, running_max, running_min;
    struct amount_list pending, free;
};

struct scenario {
    struct str name;
    int64_t seed;
    struct wall start;
    struct settings_record settings; /* UNSET: the default */
    struct sim_class *classes;
    size_t class_count;
    struct sim_pool *pools;
    size_t pool_count;
    struct sim_tenant *tenants;
    size_t tenant_count;
    struct sim_event *events; /* by time, in file order */
    size_t event_count;
    struct sim_expect *expects; /* in file order */
    size_t expect_count;
    int64_t until_s; /* UNSET: until nothing changes */
};

/* One document. Borrows from it. ERR_INVALID: "LINE:COLUMN: what was expected there". */
enum err scenario_read(const struct doc *doc, struct arena *arena, struct scenario *out,
                       struct error *e) MUST_CHECK;

/* "2026-03-28T00:00:00Z", or as traces have it, "2026-03-28 00:00:00". */
bool scenario_instant(struct str text, struct wall *out);

#endif
