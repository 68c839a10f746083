/*
 * tree.h - makes files below one directory, by paths that come from strangers.
 *
 * A path is taken component by component; one that leaves the directory, or passes through a
 * symbolic link of the archive, is refused, also where following it would be harmless.
 * Owners are ids inside the sandbox. Whiteouts are written the way overlayfs reads them: a
 * character device 0/0 for a name that is gone, the attribute user.overlay.opaque for a
 * directory that hides what is below it.
 */
#ifndef AGENT_IMAGE_TREE_H
#define AGENT_IMAGE_TREE_H

#include <sys/types.h>
#include <time.h>

#include "base/error.h"

enum { TREE_PATH_MAX = 4096, TREE_NAME_MAX = 256 };

struct tree {
    int root_fd;    /* borrowed */
    bool is_opaque; /* out: the root itself hides all layers below */
};

struct tree_meta {
    uid_t uid;
    gid_t gid;
    mode_t mode; /* permission bits with setuid, setgid and sticky */
    struct timespec modified;
};

/* A checked path: the directory that holds it, opened, and its last component. */
struct tree_place {
    int dir_fd; /* owned */
    bool is_root;
    char name[TREE_NAME_MAX];
};

/* Makes missing directories on the way (root's, 0755). */
MUST_CHECK enum err tree_place(struct tree *tree, const char *path, struct tree_place *out,
                               struct error *e);
void tree_place_done(struct tree_place *place);
DEFINE_CLEANUP_AT(tree_place, struct tree_place, tree_place_done)

MUST_CHECK enum err tree_add_dir(struct tree *tree, const struct tree_place *place,
                                 const struct tree_meta *meta, struct error *e);
/* Opens for writing; tree_end_file sets owner, mode and time. */
MUST_CHECK enum err tree_add_file(const struct tree_place *place, int *fd, struct error *e);
MUST_CHECK enum err tree_end_file(int fd, const struct tree_meta *meta, struct error *e);
MUST_CHECK enum err tree_add_symlink(const struct tree_place *place, const char *target,
                                     const struct tree_meta *meta, struct error *e);
MUST_CHECK enum err tree_add_fifo(const struct tree_place *place, const struct tree_meta *meta,
                                  struct error *e);
/* `target` is a path in the archive and must be there already. */
MUST_CHECK enum err tree_add_hardlink(struct tree *tree, const struct tree_place *place,
                                      const char *target, struct error *e);
/* For an entry whose name begins with ".wh.". */
MUST_CHECK enum err tree_add_whiteout(struct tree *tree, const struct tree_place *place,
                                      struct error *e);

#endif
