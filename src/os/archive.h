/*
 * archive.h - libarchive's objects and errors in our idiom. All of it is here, so that only
 * programs that read archives are linked with that library.
 */
#ifndef OS_ARCHIVE_H
#define OS_ARCHIVE_H

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"
#include "os/place.h"

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

/* The entry is written under the name that it has in that place. */
static inline enum err archive_place(struct place *place, struct archive_entry *entry,
                                     struct error *e)
{
    const char *name = NULL;
    const char *given = archive_entry_pathname(entry);
    enum err rc = place_name(place, given, archive_entry_filetype(entry) == AE_IFDIR, &name, e);
    if (rc == ERR_OK && name != given)
        archive_entry_copy_pathname(entry, name);
    return rc;
}

#endif
