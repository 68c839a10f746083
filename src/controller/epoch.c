#include "controller/epoch.h"

#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

uint64_t epoch_above(struct epoch_claims *claims, uint64_t obeyed)
{
    if (!claims->is_restored || obeyed < claims->first || obeyed - claims->first >= EPOCH_REACH)
        return 0;
    uint64_t doubled = claims->first + (UINT64_C(1) << MIN_OF(claims->count, 20U));
    claims->count++;
    return MAX_OF(obeyed + 1, doubled);
}

static const char *mark_path(const struct config *config, struct arena *arena)
{
    return arena_format(arena, "%.*s/restored", STR_ARG(config->state_dir));
}

enum err epoch_mark_restored(const struct config *config, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    return file_write_atomic(mark_path(config, &arena),
                             STR("nodes may know a higher epoch than this store\n"), 0600, e);
}

bool epoch_is_restored(const struct config *config)
{
    AUTO(arena) struct arena arena = { 0 };
    struct stat info;
    return stat(mark_path(config, &arena), &info) == 0;
}

void epoch_unmark(const struct config *config)
{
    AUTO(arena) struct arena arena = { 0 };
    (void)unlink(mark_path(config, &arena));
}
