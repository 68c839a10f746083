/* import_run.c - `berth import`: a file of another system into a manifest, or applied at once; what
 * could not be carried over is said on standard error. */
#include <stdio.h>
#include <string.h>

#include "cli/import.h"
#include "cli/special.h"

static const struct {
    const char *name;
    import_reader *read;
} systems[] = {
    { "slurm", import_slurm },
    { "kueue", import_kueue },
    { "kai", import_kai },
};

static import_reader *reader_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(systems); i++) {
        if (strcmp(systems[i].name, name) == 0)
            return systems[i].read;
    }
    return NULL;
}

static enum err read_aliases(const struct cli *cli, struct import *import, struct error *e)
{
    enum err rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < cli->value_count; i++) {
        if (strcmp(cli->values[i].option->name, "class") == 0)
            rc = import_alias_add(import, cli->values[i].text, e);
    }
    return rc;
}

static enum err read_file(struct import *import, import_reader *read, const char *path,
                          struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    enum err rc = manifest_read(path, &text, e);
    if (rc != ERR_OK)
        return rc;
    rc = read(import, buf_str(&text), e);
    if (rc == ERR_OK)
        rc = import_link(import, e);
    if (rc == ERR_OK && import->nodes.count == 0)
        rc = err_set(e, ERR_INVALID, "there are no queues or accounts in it");
    return rc == ERR_OK ? rc : err_wrap(e, rc, "%s", path);
}

enum cli_exit run_import(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(import) struct import import = { 0 };
    AUTO(buf) struct buf manifest = { 0 };
    AUTO(buf) struct buf report = { 0 };
    const char *path = cli->arguments[1];
    import_reader *read = reader_of(cli->arguments[0]);
    bool is_applied = cli_has(cli, "apply");
    if (read == NULL)
        return cli_usage(cli, "\"%s\" is not slurm, kueue or kai", cli->arguments[0]);
    if (cli_has(cli, "dry-run") && !is_applied)
        return cli_usage(cli, "--dry-run goes with --apply: without it nothing is changed anyway");
    enum err rc = read_aliases(cli, &import, &e);
    if (rc == ERR_OK)
        rc = read_file(&import, read, path, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    import_manifest(&import, cli_has(cli, "force"), &manifest);
    import_report(&import, path, &report);
    (void)fputs(report.data, stderr);
    if (is_applied)
        return apply_text(cli, path, buf_str(&manifest), cli_has(cli, "dry-run"));
    (void)fputs(manifest.data, stdout);
    return CLI_OK;
}
