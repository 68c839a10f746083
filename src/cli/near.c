/* near.c - of `berth`: what needs TLS or tar streams is berth-full's, with the same words. */
#include <assert.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/full.h"
#include "cli/special.h"

/* Beside us, as in a build directory, or where it was installed. Returns only on failure. */
static enum err become_full(struct cli *cli, struct error *e)
{
    static const char name[] = "berth-full";
    char path[PATH_MAX + sizeof(name)];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length > 0) {
        memcpy(path + length, name, sizeof(name));
        (void)execv(path, cli->argv);
    }
    (void)execv(BERTH_FULL, cli->argv);
    return err_errno(e, "%s", BERTH_FULL);
}

enum err cli_program_choose(struct cli *cli, struct error *e)
{
    bool is_near = str_starts(str_of(cli->server), STR("unix:"));
    return is_near && !cli_has(cli, "upload") ? ERR_OK : become_full(cli, e);
}

const struct http_transport *cli_transport(void)
{
    return NULL; /* cli_program_choose has seen that the server is a socket */
}

enum err upload_dir(struct cli *cli, const char *dir, struct str project, struct str *digest,
                    struct error *e)
{
    (void)cli, (void)dir, (void)project, (void)digest, (void)e;
    assert(!"cli_program_choose leaves uploads to berth-full");
    return ERR_INVALID;
}

static enum cli_exit run_full(struct cli *cli)
{
    struct error e = { 0 };
    (void)become_full(cli, &e);
    return cli_fail(&e);
}

enum cli_exit run_exec(struct cli *cli)
{
    return run_full(cli);
}

enum cli_exit run_cp(struct cli *cli)
{
    return run_full(cli);
}

enum cli_exit run_volume_put(struct cli *cli)
{
    return run_full(cli);
}

enum cli_exit run_volume_get(struct cli *cli)
{
    return run_full(cli);
}

enum cli_exit run_image_import(struct cli *cli)
{
    return run_full(cli);
}
