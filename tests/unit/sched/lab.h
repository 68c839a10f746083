/*
 * lab.h - the whole core in a small world: commands go through decide, evolve and sched_note, plans
 * through decide_plan; simulated agents carry out what the state wants of their node. Time moves
 * only when a test says so. After every command and every plan the invariants are asserted.
 */
#ifndef TESTS_UNIT_SCHED_LAB_H
#define TESTS_UNIT_SCHED_LAB_H

#include "core/core.h"

/* One process of an agent. */
struct lab_process {
    struct id allocation;
    int64_t attempt;
    bool is_stopping;
    struct mono dies_at; /* while stopping */
    bool has_exited;
    struct exit_status exit;
    enum cause cause;
    bool has_failed; /* to start */
};

struct lab_agent {
    struct id node;
    const char *boot_id;
    bool is_up;     /* its machine runs and is reachable */
    bool is_stuck;  /* its processes do not die */
    bool is_slow;   /* it starts nothing, it only prepares */
    bool is_silent; /* it works but is not heard: a cut link */
    struct mono seen;
    VEC(struct lab_process) processes;
};

enum { LAB_AGENTS_MAX = 64 };

struct lab {
    struct state *state;
    struct sched *sched;
    struct arena arena;
    struct mono now;
    struct wall wall;
    uint64_t next_id;
    struct error e; /* of the last command that was refused */
    struct lab_agent agents[LAB_AGENTS_MAX];
    size_t agent_count;
    int64_t stop_s;         /* how long a process takes to stop */
    bool is_unchecked;      /* big worlds: no invariants after each step */
    bool is_paused;         /* nothing is scheduled */
    bool may_be_over_limit; /* a limit was lowered below its use, or lost work came back */
    size_t starts;          /* in plans so far */
    size_t evictions;
    size_t growths, shrinks, moves;
    size_t steps;
    VEC(struct id) claims; /* workloads for which evictions were made, until they leave the queue */
    uint64_t trace;        /* hash of all events */
};

void lab_init(struct lab *lab);
void lab_done(struct lab *lab);
DEFINE_CLEANUP_AT(lab, struct lab, lab_done)

struct id lab_id(struct lab *lab);
/* Decides and applies; then schedules. The actor is an admin unless one is set. */
enum err lab_do(struct lab *lab, struct command *command);
/* The same, where a refusal fails the test. */
void lab_must(struct lab *lab, struct command *command);
void lab_schedule(struct lab *lab);
/* One step alone, at most `budget` workloads looked at. `judge`, if any, sees the plan before it is
 * carried out. Returns whether more is left. */
typedef void lab_judge(void *arg, const struct plan *plan);
bool lab_step(struct lab *lab, size_t budget, lab_judge *judge, void *arg);
/* Asserts all that must hold in any state. */
void lab_check(const struct lab *lab);
/* Agents act and report, deadlines and silence are noticed; a second at a time. */
void lab_run(struct lab *lab, int64_t seconds);
/* The same without time going by: until nothing changes. */
void lab_settle(struct lab *lab);
/* A new state and scheduler as after a restart of the controller, and its start. */
void lab_restart(struct lab *lab);

/* ---- builders ------------------------------------------------------------------------------ */

struct lab_quota {
    const char *class_name;
    int64_t quota_milli, lend_milli, limit_milli, weight; /* 0: the default */
};
struct id lab_project(struct lab *lab, const char *path, struct lab_quota quota);
void lab_set_quota(struct lab *lab, const char *path, struct lab_quota quota);

struct lab_node {
    const char *name;
    const char *class_name; /* NULL: no devices */
    size_t devices;
    int64_t memory_mib; /* of one device; 0: 80 GiB */
    int64_t cpu_milli;  /* 0: 64 cores */
    int64_t node_memory_mib;
    const char *rack, *block; /* NULL: not known */
};
struct lab_agent *lab_add_node(struct lab *lab, struct lab_node node);
struct lab_agent *lab_agent_of(struct lab *lab, const char *node);

struct lab_job {
    const char *project;
    int64_t gpu_milli, gpu_memory_mib, devices, share_milli, cpu_milli, memory_mib;
    enum mig_name mig_profile;
    int64_t members, members_min, count, priority, retries, time_limit_s;
    bool is_fixed; /* never preempted */
    bool is_held, never_restarts;
    enum on_contact_loss on_contact_loss;
    int64_t fence_after_s;
    const char *class_name, *other_class_name, *volume, *reservation;
    struct id after;
    enum dependency_when when;
    struct actor actor;
    struct topology_spec topology;
};
/* How parts of a class's devices are kept apart; refused while some are held. */
enum err lab_slice(struct lab *lab, const char *class_name, enum slicing slicing,
                   enum mig_table_name table);
/* The command alone; lists in it live until the next step. */
struct command lab_submission(struct lab *lab, struct lab_job job);
/* The id of the new workload or array; none when it was refused. */
struct id lab_submit(struct lab *lab, struct lab_job job);
struct id lab_element(const struct lab *lab, struct id array, int64_t index);

/* ---- acting and asking --------------------------------------------------------------------- */

enum err lab_act(struct lab *lab, enum command_type type, struct id id); /* on a workload */
enum err lab_node_act(struct lab *lab, enum command_type type, const char *node);
void lab_set(struct lab *lab, struct settings_record settings);
struct settings_record lab_no_settings(void); /* all UNSET */

const struct workload_record *lab_record(const struct lab *lab, struct id id);
bool lab_is(const struct lab *lab, struct id id, enum workload_state state);
size_t lab_count(const struct lab *lab, enum workload_state state);
/* A process of the workload ends by itself with that code. */
void lab_exit(struct lab *lab, struct id workload, int64_t rank, int64_t code);
void lab_exit_with(struct lab *lab, struct id workload, int64_t rank, struct exit_status exit,
                   enum cause cause);
const struct node *lab_where(const struct lab *lab, struct id workload); /* of its first member */
struct explanation lab_why(struct lab *lab, struct id workload);
int64_t lab_used(const struct lab *lab, const char *path, const char *class_name);

#endif
