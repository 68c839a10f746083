/* setup.h - what berthd does besides serving: init, rebuild, backup, restore. Each prints
 * what it did. */
#ifndef CONTROLLER_SETUP_H
#define CONTROLLER_SETUP_H

#include "controller/config.h"

/* Makes the state directory, keys, CA, server certificate and an empty store.
 * ERR_CONFLICT: there. */
enum err setup_init(const struct config *config, struct error *e) MUST_CHECK;
/* Makes all projections again from the journal. The controller must be stopped. */
enum err setup_rebuild(const struct config *config, struct error *e) MUST_CHECK;
/* A consistent copy of the store, while the controller runs. Keys are to be copied once,
 * by hand. */
enum err setup_backup(const struct config *config, const char *to, struct error *e) MUST_CHECK;
/* Puts a backup in place; the store must be absent. Raises the epoch, so that nodes refuse whoever
 * still runs on the old store, and lets the next starts overtake what nodes have obeyed
 * since (epoch.h). */
enum err setup_restore(const struct config *config, const char *from, struct error *e) MUST_CHECK;

#endif
