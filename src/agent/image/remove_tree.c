#include "agent/image/remove_tree.h"

#include <ftw.h>
#include <stdio.h>

enum { OPEN_MAX_FDS = 64 };

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
    (void)nftw(path, remove_one, OPEN_MAX_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
