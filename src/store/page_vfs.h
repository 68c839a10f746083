/*
 * page_vfs.h - a layer under SQLite that signs every page of the database file and checks it on the
 * way back, so that a flipped bit, a page in the wrong place or a page of another store is refused
 * instead of served. The write-ahead log has checksums of its own; journal rows are
 * chained as well.
 *
 * A page ends with 16 reserved bytes: 8 that name the file (the same on every page, random at its
 * creation) and a SipHash of page number and content. SQLite leaves reserved bytes alone,
 * so any tool can read such a file; one written to by another program fails its checks,
 * which is what we want.
 *
 * It also gathers what SQLite writes to the log, two small writes a page, and passes it on
 * as one when the log is forced to disk: a commit then costs two system calls instead of
 * dozens. Nobody else looks at those frames before: with synchronous=FULL they are
 * published after they are forced.
 */
#ifndef STORE_PAGE_VFS_H
#define STORE_PAGE_VFS_H

#include <sqlite3.h>

#include "base/error.h"

#define PAGE_VFS_NAME "berth-pages"

/* On top of the VFS that is the default when first called. Any thread, any number of times. */
MUST_CHECK enum err page_vfs_register(struct error *e);

/* For a connection to a file that does not exist yet: makes room on its pages. */
MUST_CHECK enum err page_vfs_reserve(sqlite3 *db, struct error *e);
/* The file has that room: its pages are all checked. */
bool page_vfs_is_reserved(sqlite3 *db);

/* Number of the page that failed its check last; 0: none did. */
int64_t page_vfs_bad_page(sqlite3 *db);

#endif
