/* upgrade.h - what a migration does that SQL cannot say. */
#ifndef STORE_UPGRADE_H
#define STORE_UPGRADE_H

#include "store/sql.h"

/* After the SQL of a migration, in its transaction. Knows the tables as that migration left them:
 * what this program makes of them later is not there yet. */
MUST_CHECK enum err store_upgrade(struct sql *sql, int64_t migration, struct error *e);

#endif
