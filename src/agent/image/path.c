#include "agent/image/path.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>

enum { OPEN_MAX_FDS = 64 };

enum err path_format(char out[PATH_MAX], struct error *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(out, PATH_MAX, fmt, args);
    va_end(args);
    if (size < 0 || size >= PATH_MAX)
        return err_set(e, ERR_LIMIT, "a path is longer than %d bytes", PATH_MAX - 1);
    return ERR_OK;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)remove(path); /* the next clean-up tries again */
    return 0;
}

void remove_tree(const char *path)
{
    /* Its callback has no state: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    (void)nftw(path, remove_one, OPEN_MAX_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
