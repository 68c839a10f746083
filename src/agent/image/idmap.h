/* idmap.h - shows a directory with other owners than it has on disk. */
#ifndef AGENT_IMAGE_IDMAP_H
#define AGENT_IMAGE_IDMAP_H

#include "base/error.h"

/* A user namespace in which disk ids from `disk_base` are tenant ids from `tenant_base`. */
MUST_CHECK enum err idmap_namespace(uint32_t disk_base, uint32_t tenant_base, int *userns_fd,
                                    struct error *e);

/* Mounts `source` at `target`, id-mapped, read-only, nosuid, nodev, seen by nobody else. */
MUST_CHECK enum err idmap_mount(int userns_fd, const char *source, const char *target,
                                struct error *e);

#endif
