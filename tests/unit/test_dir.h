/* test_dir.h - a private directory for one test, removed with all that is in it. */
#ifndef TESTS_UNIT_TEST_DIR_H
#define TESTS_UNIT_TEST_DIR_H

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/test.h"

struct test_dir {
    char path[64];
};

static inline struct test_dir test_dir_new(void)
{
    struct test_dir dir = { "/tmp/berth-test.XXXXXX" };
    if (mkdtemp(dir.path) == NULL)
        test_fail(dir.path, "cannot be made", __FILE__, __LINE__);
    return dir;
}

static inline int test_dir_remove_one(const char *path, const struct stat *found, int kind,
                                      struct FTW *walk)
{
    (void)found;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline void test_dir_remove(struct test_dir *dir)
{
    if (dir->path[0] != '\0')
        (void)nftw(dir->path, test_dir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    dir->path[0] = '\0';
}
DEFINE_CLEANUP_AT(test_dir, struct test_dir, test_dir_remove)

/* "DIR/name" in a buffer of the caller; returns it. */
static inline char *test_dir_path(const struct test_dir *dir, const char *name, char out[256])
{
    (void)snprintf(out, 256, "%s/%s", dir->path, name);
    return out;
}

#endif
