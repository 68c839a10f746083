/*
 * ignore.h - .gitignore files: comments, negation, `dir/`, anchored and floating patterns, `**`.
 * Rules of deeper directories and of later lines win, as gitignore(5) says.
 */
#ifndef CLI_IGNORE_H
#define CLI_IGNORE_H

#include "base/mem.h"
#include "base/str.h"

struct ignore_rule;

struct ignore {
    struct arena arena;
    struct ignore_rule *last; /* newest first */
};

void ignore_done(struct ignore *ignore);
DEFINE_CLEANUP_AT(ignore, struct ignore, ignore_done)

/* Adds the lines of a .gitignore that lies in directory `dir` (relative to the root, "" for it). */
void ignore_add(struct ignore *ignore, struct str dir, struct str lines);
/* `path` is relative to the root. */
bool ignore_matches(const struct ignore *ignore, struct str path, bool is_dir);

#endif
