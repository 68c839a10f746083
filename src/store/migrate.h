/*
 * migrate.h - brings a database file to the schema of this program: numbered SQL files, applied in
 * order, each in a transaction of its own with its number (user_version) and its checksum.
 */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include "store/sql.h"
#include "store/upgrade.h"

struct migration {
    int64_t number;
    const char *name;
    const char *sql;
};

/* Made from src/store/migrations at build time; 1, 2, 3, ... */
extern const struct migration store_migrations[];
extern const size_t store_migration_count;

enum { STORE_APPLICATION_ID = 0x42727468 }; /* "Brth" */

/* Runs after the SQL of a migration, in its transaction. */
typedef enum err migration_step_fn(struct sql *sql, int64_t number, struct error *e);

struct migration_list {
    const struct migration *items;
    size_t count;
    migration_step_fn *step; /* may be NULL */
};

/*
 * ERR_CONFLICT: the file was made by a newer program, or by a migration that differs from ours.
 * A file that is not a store (application_id) is ERR_CORRUPT; a new one gets it.
 */
MUST_CHECK enum err migrate(struct sql *sql, const struct migration_list *list, struct error *e);
/* The same checks on a file that may not be written. */
MUST_CHECK enum err migrate_check(struct sql *sql, const struct migration_list *list,
                                  struct error *e);

static inline struct migration_list store_migration_list(void)
{
    return (struct migration_list){ store_migrations, store_migration_count, store_upgrade };
}

#endif
