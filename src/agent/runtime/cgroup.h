/*
 * cgroup.h - the cgroup of an attempt, on v1, hybrid and v2 machines alike.
 *
 * A path such as "/berth/alc_....1" is the same in every hierarchy. The runtime makes it and sets
 * the limits but that of the CPU; this file sets that, reads what happened there, kills and
 * removes. `root` is CGROUP_ROOT but in tests.
 */
#ifndef AGENT_RUNTIME_CGROUP_H
#define AGENT_RUNTIME_CGROUP_H

#include "agent/node_facts.h"
#include "base/error.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

enum cgroup_mode cgroup_detect(const char *root);

/*
 * A mount namespace of our own, which still receives the host's mounts. On hybrid machines crun 1.8
 * refuses to work as long as the v2 tree has controllers, so an empty file is put over their list,
 * in this namespace only; v1 limits and membership in the v2 tree both work then.
 */
MUST_CHECK enum err cgroup_enter_mounts(enum cgroup_mode mode, struct error *e);

/* Processes killed for memory below `path` since it was made; 0 when that cannot be told. */
int64_t cgroup_oom_kills(const char *root, enum cgroup_mode mode, const char *path);

/* True when limits on memory can include swap. */
bool cgroup_has_swap_limit(const char *root, enum cgroup_mode mode);

/* Shares of the CPUs, and a quota that is never exceeded: 1000 is one core. */
MUST_CHECK enum err cgroup_limit_cpu(const char *root, enum cgroup_mode mode, const char *path,
                                     uint32_t cpu_milli, struct error *e);

/* SIGKILL to everything below `path`. */
void cgroup_kill(const char *root, enum cgroup_mode mode, const char *path);

/* Removes it from every hierarchy. False: something is still in it. */
bool cgroup_remove(const char *root, enum cgroup_mode mode, const char *path);

#endif
