/* sqlite_files.h - checks that opening, restoring and querying a store file share. */
#ifndef STORE_SQLITE_FILES_H
#define STORE_SQLITE_FILES_H

#include "store/sql.h"

/* A file of whole pages is there. ERR_NOT_FOUND, ERR_CORRUPT. */
MUST_CHECK enum err store_file_check(const char *path, struct error *e);
/* An open database is a Berth store with checked pages. */
MUST_CHECK enum err store_identity_check(struct sql *sql, struct error *e);

#endif
