#include "cli/config.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "os/file.h"
#include "wire/schema.h"
#include "wire/yaml.h"

enum { CONFIG_BYTES_MAX = 64 * 1024 };
static const char default_server[] = "unix:/run/berth/berthd.sock";

struct file_config {
    struct str server, ca, token;
};

static const struct field fields[] = {
    { .name = "server",
      .kind = FIELD_STR,
      .offset = offsetof(struct file_config, server),
      .size = sizeof(struct str),
      .max = 512 },
    { .name = "ca",
      .kind = FIELD_STR,
      .offset = offsetof(struct file_config, ca),
      .size = sizeof(struct str),
      .max = 4096 },
    { .name = "token",
      .kind = FIELD_STR,
      .offset = offsetof(struct file_config, token),
      .size = sizeof(struct str),
      .max = 256 },
};
static const struct schema file_schema = { .name = "CliConfig",
                                           .size = sizeof(struct file_config),
                                           .fields = fields,
                                           .count = COUNT_OF(fields) };

static const char *environment(const char *name)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): one thread */
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static const char *config_path(struct cli *cli)
{
    const char *dir = environment("XDG_CONFIG_HOME");
    const char *home = environment("HOME");
    if (dir != NULL)
        return arena_format(&cli->arena, "%s/berth/config.yaml", dir);
    return home != NULL ? arena_format(&cli->arena, "%s/.config/berth/config.yaml", home) : NULL;
}

static enum err file_load(struct cli *cli, const char *path, struct file_config *out,
                          struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    AUTO(json) json_t *documents = NULL;
    struct stat info;
    if (path == NULL || stat(path, &info) != 0)
        return ERR_OK;
    enum err rc = file_read(path, CONFIG_BYTES_MAX, &text, e);
    if (rc == ERR_OK)
        rc = yaml_read(buf_str(&text), &documents, e);
    if (rc == ERR_OK && json_array_size(documents) > 0)
        rc = schema_decode(&file_schema, json_array_get(documents, 0), UNKNOWN_REFUSED, &cli->arena,
                           out, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", path);
    if (out->token.size > 0 && (info.st_mode & 077) != 0)
        return err_set(e, ERR_DENIED, "%s holds a token and others can read it: chmod 600 it first",
                       path);
    return ERR_OK;
}

/* The first that is given. */
static const char *first_of(const char *a, const char *b, const char *c, const char *d)
{
    return a != NULL ? a : b != NULL ? b : c != NULL ? c : d;
}

static const char *text_of(struct cli *cli, struct str s)
{
    return s.size > 0 ? str_c(&cli->arena, s) : NULL;
}

enum err cli_config_load(struct cli *cli, struct error *e)
{
    struct file_config file = { 0 };
    enum err rc = file_load(cli, config_path(cli), &file, e);
    if (rc != ERR_OK)
        return rc;
    cli->server = first_of(cli_get(cli, "server"), environment("BERTH_SERVER"),
                           text_of(cli, file.server), default_server);
    cli->ca_file =
        first_of(cli_get(cli, "ca"), environment("BERTH_CA"), text_of(cli, file.ca), NULL);
    const char *token = environment("BERTH_TOKEN");
    if (token != NULL)
        buf_add_text(&cli->token, token);
    else
        buf_add_str(&cli->token, file.token);
    return ERR_OK;
}
