/* blob.h - files on their way to the controller: temporary files, digests, streamed uploads. */
#ifndef CLI_BLOB_H
#define CLI_BLOB_H

#include "cli/cli.h"

enum { BLOB_HEX_MAX = 65 };

/* An unlinked temporary file; *fd is yours. */
enum err blob_temporary(int *fd, struct error *e) MUST_CHECK;
/* SHA-256 of the whole file, in hexadecimal, and its size. */
enum err blob_digest(int fd, char hex[BLOB_HEX_MAX], int64_t *size_bytes, struct error *e)
    MUST_CHECK;
void blob_digest_of(struct str bytes, char hex[BLOB_HEX_MAX]);
/* PUTs the file's bytes, with progress on a terminal. */
enum err blob_put(struct cli *cli, const char *target, int fd, int64_t size_bytes,
                  struct cli_answer *answer, struct error *e) MUST_CHECK;

#endif
