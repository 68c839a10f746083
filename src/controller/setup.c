#include "controller/setup.h"

#include <stdio.h>
#include <unistd.h>

#include "controller/epoch.h"
#include "controller/keys.h"
#include "controller/state_load.h"
#include "os/file.h"

static const char *store_path(const struct config *config, struct arena *arena)
{
    return arena_format(arena, "%.*s/berth.db", STR_ARG(config->state_dir));
}

enum err setup_init(const struct config *config, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    enum err rc = file_make_dirs(str_c(&arena, config->state_dir), 0700, e);
    if (rc == ERR_OK)
        rc = keys_create(config, e);
    if (rc == ERR_OK)
        rc = store_sqlite_create(store_path(config, &arena), e);
    if (rc != ERR_OK)
        return rc;
    (void)printf("made keys, a certificate authority and an empty store in %.*s\n"
                 "next: berthd run; then, as root here: berth tenant create, berth token create\n",
                 STR_ARG(config->state_dir));
    return ERR_OK;
}

static enum err store_open(const struct config *config, struct arena *arena, struct store **out,
                           struct error *e)
{
    const struct store_retention retention = { .workload_days = config->workload_days,
                                               .usage_days = config->usage_days,
                                               .audit_days = config->audit_days,
                                               .journal_days = config->journal_days };
    return store_sqlite_open(store_path(config, arena), &retention, out, e);
}

enum err setup_rebuild(const struct config *config, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(store) struct store *store = NULL;
    enum err rc = store_open(config, &arena, &store, e);
    if (rc != ERR_OK)
        return rc;
    rc = store->vtable->rebuild(store, state_decode_row, NULL, e);
    if (rc == ERR_OK)
        (void)puts("all projections were made again from the journal");
    return rc;
}

enum err setup_backup(const struct config *config, const char *to, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    enum err rc = store_sqlite_backup(store_path(config, &arena), to, e);
    if (rc == ERR_OK)
        (void)printf(
            "%s is a complete copy of the store; keep it with a copy of the *.key and *.pem "
            "files of %.*s\n",
            to, STR_ARG(config->state_dir));
    return rc;
}

enum err setup_restore(const struct config *config, const char *from, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    bool was_restored = epoch_is_restored(config);
    enum err rc =
        epoch_mark_restored(config, e); /* first: a store without it is refused by nodes */
    if (rc == ERR_OK)
        rc = store_sqlite_restore(from, store_path(config, &arena), 0, e);
    if (rc != ERR_OK && !was_restored)
        epoch_unmark(config);
    if (rc == ERR_OK)
        (void)printf("%s is in place under a new epoch; start berthd\n", from);
    return rc;
}
