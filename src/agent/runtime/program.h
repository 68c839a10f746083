/*
 * program.h - the runtime's program as a sealed copy in memory.
 *
 * crun guards itself against what it runs (CVE-2019-5736) by running from such a copy, and makes
 * one at every start: it loads, copies itself, executes the copy. Started from a sealed copy it
 * sees that this is done already, which saves a fifth of a start and guards the same: nobody can
 * write to the one copy that serves all starts.
 */
#ifndef AGENT_RUNTIME_PROGRAM_H
#define AGENT_RUNTIME_PROGRAM_H

#include <stdbool.h>
#include <sys/stat.h>

struct sealed_program {
    int fd;           /* owned; -1: there is none, the program is to be run by its path */
    struct stat file; /* what was copied, to see when another one is there */
};

#define SEALED_PROGRAM_NONE ((struct sealed_program){ .fd = -1 })

/*
 * Copies the file at `path` unless that is what the copy was made of. Scripts are not
 * copied, for their interpreter would look for them by name. Cannot fail: without a copy
 * all works, only slower.
 */
void sealed_program_refresh(struct sealed_program *program, const char *path);
void sealed_program_done(struct sealed_program *program);

/* True for a descriptor that was made here, perhaps by another process. */
bool sealed_program_is(int fd);

#endif
