/* file.h - whole files and directories by path: bounded reads, durable atomic writes. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include <sys/types.h>

#include "base/str.h"

/*
 * Appends the file's bytes to `out`, which stays as it was on failure. ERR_NOT_FOUND: no such file.
 * ERR_LIMIT: more than `max` bytes. ERR_INVALID: a directory.
 */
MUST_CHECK enum err file_read(const char *path, size_t max, struct buf *out, struct error *e);

/*
 * Replaces the file's content so that a crash leaves the old or the new one, and returns only when
 * the new one is on disk. Keeps no owner; `mode` is exact, whatever the umask.
 */
MUST_CHECK enum err file_write_atomic(const char *path, struct str bytes, mode_t mode,
                                      struct error *e);

/* Makes a directory and the missing ones above it. ERR_CONFLICT: something else has the name. */
MUST_CHECK enum err file_make_dirs(const char *path, mode_t mode, struct error *e);

/* Puts a rename or an unlink in the directory of `path` on disk. */
MUST_CHECK enum err file_sync_parent(const char *path, struct error *e);

#endif
