/* tree.h - file trees as tar streams, through libarchive. */
#ifndef CLI_TREE_H
#define CLI_TREE_H

#include "base/error.h"
#include "base/str.h"

enum tree_ignore { TREE_ALL, TREE_GITIGNORE };

/*
 * Writes `path` (a file or directory) as a tar to `fd`, names sorted, under `name`; "" (directories
 * only): its content without a name of its own, "." the same with "./" before each. With
 * TREE_GITIGNORE what .gitignore files name is left out and times and owners are blank, so that
 * equal trees give equal bytes.
 */
enum err tree_write(int fd, const char *path, const char *name, enum tree_ignore ignore,
                    struct error *e) MUST_CHECK;

/* What is said of links and devices, which are skipped: nothing, how many there were, or
 * each by its name. */
enum tree_words { TREE_QUIET, TREE_BRIEF, TREE_VERBOSE };

/* Runs one of both in a child process: its end of the pipe is *fd. tree_wait gives its outcome. */
struct tree_child {
    int fd;
    int pid;
};
enum err tree_spawn_write(const char *path, const char *name, struct tree_child *out,
                          struct error *e) MUST_CHECK;
enum err tree_spawn_read(const char *path, enum tree_words words, struct tree_child *out,
                         struct error *e) MUST_CHECK;
enum err tree_wait(struct tree_child *child, struct error *e) MUST_CHECK;

#endif
