/* upload.c - code of a directory, by content: what the controller has already is not sent again. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/blob.h"
#include "cli/special.h"
#include "cli/tree.h"
#include "os/fd.h"

enum { UPLOAD_MIB_MAX = 2048 };

static enum err is_stored(struct cli *cli, const char *hex, bool *out, struct error *e)
{
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc =
        cli_request(cli, "GET", arena_format(&cli->arena, "/v1/uploads/%s", hex), NULL, &answer, e);
    *out = rc == ERR_OK;
    return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

enum err upload_dir(struct cli *cli, const char *dir, struct str *digest, struct error *e)
{
    AUTO(fd) int fd = -1;
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    char hex[BLOB_HEX_MAX];
    int64_t size_bytes = 0;
    bool has_it = false;
    struct stat info;
    if (stat(dir, &info) != 0)
        return err_errno(e, "--upload %s", dir);
    if (!S_ISDIR(info.st_mode))
        return err_set(e, ERR_INVALID, "--upload: %s is not a directory", dir);
    enum err rc = blob_temporary(&fd, e);
    if (rc == ERR_OK)
        rc = tree_write(fd, dir, "", TREE_GITIGNORE, e);
    if (rc == ERR_OK)
        rc = blob_digest(fd, hex, &size_bytes, e);
    if (rc == ERR_OK && size_bytes > (int64_t)UPLOAD_MIB_MAX << 20)
        rc = err_set(e, ERR_LIMIT,
                     "%s has %lld MiB; at most %d can be uploaded: name data in .gitignore and put "
                     "it into a volume",
                     dir, (long long)(size_bytes >> 20), UPLOAD_MIB_MAX);
    if (rc == ERR_OK)
        rc = is_stored(cli, hex, &has_it, e);
    if (rc == ERR_OK && !has_it)
        rc = blob_put(cli, arena_format(&cli->arena, "/v1/uploads/%s", hex), fd, size_bytes,
                      &answer, e);
    if (rc == ERR_OK)
        *digest = str_copy(&cli->arena, str_of(hex));
    return rc;
}
