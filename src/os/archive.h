/*
 * archive.h - libarchive's objects and errors in our idiom. All of it is here, so that only
 * programs that read archives are linked with that library.
 */
#ifndef OS_ARCHIVE_H
#define OS_ARCHIVE_H

#include <archive.h>

#include "base/error.h"

/* One that is read; NULL is a no-op. */
static inline void archive_release(struct archive *archive)
{
    if (archive != NULL)
        (void)archive_read_free(archive);
}
DEFINE_CLEANUP(archive, struct archive *, archive_release)

/* Returns `code`, with `what` and the library's reason as its text. */
static inline enum err archive_failed(struct archive *archive, enum err code, const char *what,
                                      struct error *e)
{
    const char *why = archive_error_string(archive);
    return err_set(e, code, "%s: %s", what, why != NULL ? why : "it broke off");
}

#endif
