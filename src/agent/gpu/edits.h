/*
 * edits.h - what a device wants changed in a container's configuration, and the records by which
 * berth-cdi, who reads the vendors' JSON (cdi.h), hands it to berth-agentd, who reads none.
 *
 * Records follow each other: a struct edit_record, then its texts, each with its NUL.
 * DEVICE says whose the records behind it are; END is the last one. Numbers are the
 * machine's own: both ends run on it.
 */
#ifndef AGENT_GPU_EDITS_H
#define AGENT_GPU_EDITS_H

#include <sys/types.h>

#include "agent/gpu/gpu.h"
#include "base/mem.h"

struct edit_mount {
    const char *host_path;
    const char *container_path;
    const char *const *options; /* option_count of them */
    size_t option_count;
};

struct edit_device {
    const char *path; /* in the container */
    const char *host_path;
    char type; /* 'c' or 'b' */
    unsigned major;
    unsigned minor;
    const char *permissions; /* "rwm" or part of it */
    int64_t file_mode;       /* -1: as on the host */
    int64_t uid;             /* -1: not said; inside the container's user namespace */
    int64_t gid;
};

enum edit_hook_stage {
    EDIT_HOOK_CREATE_RUNTIME,
    EDIT_HOOK_CREATE_CONTAINER,
    EDIT_HOOK_START_CONTAINER,
    EDIT_HOOK_POSTSTART,
    EDIT_HOOK_POSTSTOP,
    EDIT_HOOK_STAGE_COUNT
};
extern const char *const edit_hook_stage_name[EDIT_HOOK_STAGE_COUNT]; /* OCI's: "createContainer" */

struct edit_hook {
    enum edit_hook_stage stage;
    const char *path;
    const char *const *args;
    size_t arg_count;
    const char *const *env;
    size_t env_count;
    int64_t timeout_s; /* 0: none */
};

/* Additions to an OCI configuration, in order. Strings are borrowed from an arena. */
struct container_edits {
    VEC(const char *) env; /* "NAME=value" */
    VEC(struct edit_mount) mounts;
    VEC(struct edit_device) devices; /* make the file and allow it in the device cgroup */
    VEC(struct edit_hook) hooks;
    VEC(uint32_t) additional_gids;
    size_t hooks_refused;
};
void container_edits_done(struct container_edits *edits);
DEFINE_CLEANUP_AT(container_edits, struct container_edits, container_edits_done)

/* Adds what `from` has and `edits` does not: two devices of one vendor ask for the same
 * libraries. */
void container_edits_merge(struct container_edits *edits, const struct container_edits *from);

/* Absolute, short enough, and without "..". */
bool edit_path_is_safe(const char *path);

enum { EDIT_NAMES_MAX = 2, EDIT_RECORDS_BYTES_MAX = 1 << 20 };

/* CDI names to try for a device, the best first: by UUID, then by number. Returns how many. */
size_t edit_names_of(const struct gpu_device *device, struct arena *arena,
                     const char *out[EDIT_NAMES_MAX]);

enum edit_kind {
    EDIT_DEVICE = 1, /* numbers: index */
    EDIT_ENV,        /* texts: NAME=value */
    EDIT_MOUNT,      /* texts: host path, container path, options */
    EDIT_NODE,       /* numbers: type, major, minor; texts: path, host path, permissions */
    EDIT_HOOK,       /* numbers: stage, timeout, arguments; texts: path, arguments, environment */
    EDIT_PROBLEM,    /* texts: what an operator should know */
    EDIT_END
};

struct edit_record {
    uint32_t kind; /* enum edit_kind */
    uint32_t text_count;
    uint32_t text_bytes; /* behind this */
    uint32_t unused;
    int64_t numbers[3];
};

/* The writer's side: all edits of a device, which are not those of groups (nothing is in
 * one there). */
void edit_records_device(struct buf *out, unsigned index, const struct container_edits *edits);
void edit_records_problem(struct buf *out, const char *text);
void edit_records_end(struct buf *out);

struct edit_set {
    struct container_edits *devices; /* one a device, from the arena, lists owned */
    size_t count;
    VEC(const char *) problems;
};
void edit_set_done(struct edit_set *set);
DEFINE_CLEANUP_AT(edit_set, struct edit_set, edit_set_done)

/* Nothing in the bytes is believed: ERR_INVALID for anything that edit_records_* do not write. */
MUST_CHECK enum err edit_records_read(struct str bytes, size_t device_count, struct arena *arena,
                                      struct edit_set *out, struct error *e);

#endif
