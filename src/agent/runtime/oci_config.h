/*
 * oci_config.h - the OCI configuration of an attempt: the one place that says what a workload may.
 *
 * Written from the signed grant and its payload, never from anything an image or a user said beyond
 * these. Always: a user namespace of the tenant's own ids, no capability, no_new_privs, a system
 * call filter, own pid, mount, ipc, uts, cgroup and network namespaces, every device denied but the
 * harmless ones and those granted, no hooks but those a device needs and an operator allows, no
 * /sys. (With a user namespace the runtime cannot mount a sysfs of the workload's own and silently
 * shows the host's, with its network devices: so there is none.)
 */
#ifndef AGENT_RUNTIME_OCI_CONFIG_H
#define AGENT_RUNTIME_OCI_CONFIG_H

#include "base/str.h"
#include "wire/grant.h"

/* A device of the host that the workload gets. */
struct oci_device {
    const char *path;
    unsigned major;
    unsigned minor;
    bool is_block;
    bool is_bound;      /* its file comes by a bind: only the permission is needed */
    const char *access; /* NULL: "rw" */
};

/* A directory of the host, whose ids are shifted to the workload's when it is `is_idmapped`. */
struct oci_bind {
    const char *source;
    struct str target;
    bool is_read_only;
    bool is_idmapped;
    bool is_device; /* the one kind of mount in which a device file is one */
};

/* A program of the host's that the runtime starts: only what an operator has allowed. */
struct oci_hook {
    const char *stage; /* "createContainer" */
    const char *path;
    const char *const *args;
    size_t arg_count;
    const char *const *env;
    size_t env_count;
    int64_t timeout_s; /* 0: none */
};

struct oci_config {
    const struct grant *grant; /* all borrowed */
    const struct grant_payload *payload;
    const char *rootfs;
    bool is_rootfs_read_only;
    const char *cgroup;
    const char
        *init; /* berth-init on the host: it is the first process, and starts the payload's */
    bool has_swap_limit;
    unsigned nofile_max; /* the host's hard limit: more is refused by the kernel */
    const struct oci_device *devices;
    size_t device_count;
    const struct oci_bind *binds;
    size_t bind_count;
    const struct oci_hook *hooks;
    size_t hook_count;
    const struct str *device_env; /* "CUDA_VISIBLE_DEVICES=...": each wins over the user's */
    size_t device_env_count;
};

/* Appends config.json. */
void oci_config_write(const struct oci_config *config, struct buf *out);

/* Appends process.json for a further command in the same container, with the same limits on it. */
void oci_process_write(const struct oci_config *config, const struct grant_payload *command,
                       bool is_tty, struct buf *out);

/*
 * Appends /etc/hosts: the workload's own name and, where it is the only member, every name that it
 * was told of lead to the loopback. Names of other members are for the tenant's network to resolve.
 */
void oci_hosts_write(const struct oci_config *config, struct buf *out);

/* True for names that a workload's own environment cannot set. */
bool oci_is_reserved_env(struct str name);

#endif
