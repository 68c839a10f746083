/*
 * sandbox.h - locks the unpacker in before it reads a byte from strangers.
 *
 * Afterwards the process is nobody the host knows: root of a user namespace whose ids are its own,
 * in a root directory that holds only what it unpacks, without network, without the means to gain
 * anything, and with the system calls it needs and no other.
 */
#ifndef AGENT_IMAGE_SANDBOX_H
#define AGENT_IMAGE_SANDBOX_H

#include "base/error.h"

/* Own user, mount, network, ipc and uts namespaces; ids are still unmapped. */
MUST_CHECK enum err sandbox_unshare(struct error *e);

/* Once the ids are mapped: enter `dir_fd` as root directory, shed capabilities, limit,
 * filter. Files larger than `file_bytes` cannot be written. Every descriptor but 0, 3 and
 * 4 must be closed. */
MUST_CHECK enum err sandbox_enter(int dir_fd, int64_t file_bytes, struct error *e);

/* Only these calls from now on; any other ends the process. Nothing under the sanitizers, which
 * need more. no_new_privs must be set. */
MUST_CHECK enum err sandbox_filter(const int *calls, size_t count, struct error *e);

#endif
