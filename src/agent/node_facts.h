/*
 * node_facts.h - what a node can do: for the inventory message and for `berth doctor`.
 *
 * Features are found by trying or by asking the kernel, never by its version number.
 */
#ifndef AGENT_NODE_FACTS_H
#define AGENT_NODE_FACTS_H

#include "base/base.h"
#include "base/error.h"

enum cgroup_mode {
    CGROUP_MODE_NONE,
    CGROUP_MODE_V1,
    CGROUP_MODE_HYBRID, /* v1 controllers, and a v2 tree beside them */
    CGROUP_MODE_V2,
    CGROUP_MODE_COUNT
};
extern const char *const cgroup_mode_name[CGROUP_MODE_COUNT]; /* "none", "v1", "hybrid", "v2" */

struct node_facts {
    char hostname[65];
    char kernel[65];
    char machine[65];   /* "x86_64" */
    unsigned cpu_count; /* usable ones */
    int64_t memory_mib;
    int64_t swap_mib;
    unsigned numa_nodes;
    char boot_id[40];
    enum cgroup_mode cgroup_mode;
    bool has_userns;
    bool has_idmap; /* id-mapped overlays below the directory given */
    bool has_overlay;
    bool has_seccomp;
    bool has_pidfd;
    bool has_cgroup_kill;
    int landlock_abi;      /* 0: none */
    char crun_version[32]; /* "" when there is none */
    char skopeo_version[32];
};

struct node_facts_options {
    const char *data_dir; /* where images will lie: has_idmap is tried there; NULL: not tried */
    const char *crun;     /* NULL: found in PATH; "": not asked */
    const char *skopeo;
};

/* Cannot fail: what is unknown stays 0, "" or false. Starts crun and skopeo for their versions: for
 * a program's start, not for a loop. */
void node_facts_read(struct node_facts *out, const struct node_facts_options *options);

/* One line for each fact that keeps this node from running tenants' work; true when there are none.
 * `is_fatal`: also the agent itself could do nothing. */
typedef void node_facts_problem(void *context, const char *text, bool is_fatal);
bool node_facts_check(const struct node_facts *facts, node_facts_problem *each, void *context);

#endif
