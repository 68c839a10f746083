/*
 * cdi.h - Container Device Interface: what a vendor says a container needs to use a device.
 *
 * Specs are JSON files in /etc/cdi and /run/cdi, written by root on the node. Their edits
 * are merged into a struct that the writer of the OCI configuration takes over. Hooks run
 * as root on the host, so only programs on the caller's list are let through, and a
 * spec's other hooks are counted.
 */
#ifndef AGENT_GPU_CDI_H
#define AGENT_GPU_CDI_H

#include "agent/gpu/edits.h"

struct cdi_options {
    const char *const *directories; /* later ones win; NULL: /etc/cdi, /run/cdi */
    size_t directory_count;
    const char *const *allowed_hooks; /* absolute paths of programs */
    size_t allowed_hook_count;
};

struct cdi; /* opaque: all specs of the node */

/* Missing directories are no error. A file that cannot be read or is wrong is skipped, its reason
 * kept (cdi_problem): one vendor's broken file must not take away another's devices. */
MUST_CHECK enum err cdi_open(struct cdi **out, const struct cdi_options *options, struct error *e);
void cdi_free(struct cdi *cdi); /* NULL is a no-op */
DEFINE_CLEANUP(cdi, struct cdi *, cdi_free)

size_t cdi_problem_count(const struct cdi *cdi);
const char *cdi_problem(const struct cdi *cdi, size_t index); /* "FILE: what is wrong" */

bool cdi_has(const struct cdi *cdi, const char *name); /* "nvidia.com/gpu=0" */

/* Adds the edits of the device, and once those of its spec. On failure `edits` is as before. */
MUST_CHECK enum err cdi_apply(const struct cdi *cdi, const char *const *names, size_t count,
                              struct arena *arena, struct container_edits *edits, struct error *e);

#endif
