/*
 * place.h - where the files of a stream go, as with `cp -r`.
 *
 * A stream has one file or directory with a name of its own, or - when it begins with "." - what
 * is inside a directory. A name goes into a directory that is there, and else becomes the last
 * part of the path. It changes the working directory: names are relative to where the process
 * then is, so it has to be one of its own.
 */
#ifndef OS_PLACE_H
#define OS_PLACE_H

#include <limits.h>

#include "base/error.h"

struct place {
    char path[PATH_MAX];
    char name[PATH_MAX]; /* of the latest entry, where it got another */
    const char *base;    /* the last part of `path`; NULL: that is a directory and we are in it */
    bool wants_dir;      /* it was given with a slash at its end */
    bool is_file;        /* something that is no directory is there */
    bool is_begun;       /* the first entry has been looked at */
};

/* The length of a path without the slashes and "/." at its end, but for "/" itself. */
size_t place_trim(const char *path);

/* Goes to where `path` is, or will be. ERR_INVALID for what is empty or too long to be a path. */
enum err place_find(const char *path, struct place *out, struct error *e) MUST_CHECK;

/*
 * The name that an entry called `given` is written under, borrowed from `place` or from `given`.
 * One that begins at the root or has a part ".." is ERR_INVALID, one that does not fit what is
 * there ERR_CONFLICT.
 */
enum err place_name(struct place *place, const char *given, bool is_dir, const char **out,
                    struct error *e) MUST_CHECK;

#endif
