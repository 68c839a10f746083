/* upload.c - code of a directory, by content: what the controller has already is not sent again. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "cli/blob.h"
#include "cli/special.h"
#include "cli/tree.h"
#include "os/fd.h"

enum { UPLOAD_MIB_MAX = 2048 };

static enum err is_stored(struct cli *cli, const char *target, bool *out, struct error *e)
{
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = cli_request(cli, "GET", target, NULL, &answer, e);
    *out = rc == ERR_OK;
    return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* A project's path begins with its tenant; an id says nothing, and one's own tenant is meant. */
static const char *target_of(struct cli *cli, struct str project, const char *hex)
{
    AUTO(buf) struct buf target = { 0 };
    struct str rest = project;
    buf_format(&target, "/v1/uploads/%s", hex);
    bool is_id = id_is_kind(ID_PROJECT, project) || id_is_kind(ID_TENANT, project);
    if (project.size > 0 && !is_id) {
        buf_add_text(&target, "?tenant=");
        cli_encode(&target, str_cut(&rest, '/'));
    }
    return str_c(&cli->arena, buf_str(&target));
}

enum err upload_dir(struct cli *cli, const char *dir, struct str project, struct str *digest,
                    struct error *e)
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
    const char *target = rc == ERR_OK ? target_of(cli, project, hex) : NULL;
    if (rc == ERR_OK)
        rc = is_stored(cli, target, &has_it, e);
    if (rc == ERR_OK && !has_it)
        rc = blob_put(cli, target, fd, size_bytes, &answer, e);
    if (rc == ERR_OK)
        *digest = str_copy(&cli->arena, str_of(hex));
    return rc;
}
