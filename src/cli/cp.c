/* cp.c - trees to and from running work and volumes. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/special.h"
#include "cli/stream.h"
#include "cli/tree.h"

/* "WORKLOAD:PATH"; false: a path of ours. */
static bool remote_split(struct cli *cli, const char *word, const char **name, const char **path)
{
    const char *colon = strchr(word, ':');
    if (colon == NULL || colon == word || word[0] == '/' || word[0] == '.')
        return false;
    *name = str_c(&cli->arena, (struct str){ word, (size_t)(colon - word) });
    *path = colon[1] != '\0' ? colon + 1 : "/";
    return true;
}

/* What a copy of `path` is called: its last part; "dir/" and "dir/." mean what is inside. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? "" : name;
}

static enum err outcome(const struct stream_exit *exited, struct error *e)
{
    bool is_good = !exited->is_signal && exited->number == 0;
    return is_good ? ERR_OK : err_set(e, ERR_IO, "the node could not copy all files");
}

/* Out of the remote tree into a directory of ours. */
static enum err tree_get(struct cli *cli, struct stream_header *header, const char *to,
                         struct error *e)
{
    struct tree_child child = { .fd = -1 };
    struct stream_exit exited = { 0 };
    struct stat info;
    if (stat(to, &info) != 0 && mkdir(to, 0777) != 0)
        return err_errno(e, "%s", to);
    enum err rc = tree_spawn_read(to, &child, e);
    if (rc != ERR_OK)
        return rc;
    header->kind = STREAM_TREE_GET;
    struct stream_run run = {
        .header = *header, .input_fd = -1, .output_fd = child.fd, .error_fd = -1
    };
    rc = stream_run(cli, &run, &exited, e);
    enum err waited = tree_wait(&child, rc == ERR_OK ? e : NULL);
    if (rc == ERR_OK)
        rc = outcome(&exited, e);
    return rc != ERR_OK ? rc : waited;
}

static enum err tree_put(struct cli *cli, struct stream_header *header, const char *from,
                         struct error *e)
{
    struct tree_child child = { .fd = -1 };
    struct stream_exit exited = { 0 };
    struct stat info;
    if (stat(from, &info) != 0)
        return err_errno(e, "%s", from);
    enum err rc = tree_spawn_write(from, base_name(from), &child, e);
    if (rc != ERR_OK)
        return rc;
    header->kind = STREAM_TREE_PUT;
    struct stream_run run = {
        .header = *header, .input_fd = child.fd, .output_fd = -1, .error_fd = -1
    };
    rc = stream_run(cli, &run, &exited, e);
    enum err waited = tree_wait(&child, rc == ERR_OK ? e : NULL);
    if (rc == ERR_OK)
        rc = outcome(&exited, e);
    return rc != ERR_OK ? rc : waited;
}

enum cli_exit run_cp(struct cli *cli)
{
    struct error e = { 0 };
    struct stream_header header = { 0 };
    struct str text = { 0 };
    const char *name = NULL;
    const char *path = NULL;
    const char *member = cli_get(cli, "member");
    bool is_get = remote_split(cli, cli->arguments[0], &name, &path);
    bool is_put = !is_get && remote_split(cli, cli->arguments[1], &name, &path);
    if (!is_get && !is_put)
        return cli_usage(cli, "one of FROM and TO has to be WORKLOAD:PATH");
    if (member != NULL && !str_to_i64(str_of(member), 0, INT32_MAX, &header.member))
        return cli_usage(cli, "--member: \"%s\" is not a rank", member);
    enum err rc = cli_workload_id(cli, name, &text, &e);
    if (rc == ERR_OK && !id_parse(ID_WORKLOAD, text, &header.workload))
        rc = err_set(&e, ERR_INVALID, "%s is an array: name one of its elements", name);
    header.path = str_of(path);
    if (rc == ERR_OK)
        rc = is_get ? tree_get(cli, &header, cli->arguments[1], &e)
                    : tree_put(cli, &header, cli->arguments[0], &e);
    return rc == ERR_OK ? CLI_OK : cli_fail(&e);
}

static enum err volume_of(struct cli *cli, const char *name, struct id *out, struct error *e)
{
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    AUTO(buf) struct buf target = { 0 };
    buf_add_text(&target, "/v1/volumes/");
    cli_encode_part(&target, str_of(name));
    AUTO(buf) struct buf query = { 0 };
    enum err rc = cli_query(cli, &query, e);
    buf_add_str(&target, buf_str(&query));
    if (rc == ERR_OK)
        rc = cli_request(cli, "GET", target.data, NULL, &answer, e);
    if (rc != ERR_OK)
        return rc;
    const char *id = json_string_value(json_object_get(answer.json, "id"));
    return id_parse(ID_VOLUME, str_of(id), out)
               ? ERR_OK
               : err_set(e, ERR_INVALID, "the controller's answer has no volume id");
}

enum cli_exit run_volume_put(struct cli *cli)
{
    struct error e = { 0 };
    struct stream_header header = { 0 };
    header.path = str_of(cli->argument_count > 2 ? cli->arguments[2] : "/");
    enum err rc = volume_of(cli, cli->arguments[0], &header.volume, &e);
    if (rc == ERR_OK)
        rc = tree_put(cli, &header, cli->arguments[1], &e);
    return rc == ERR_OK ? CLI_OK : cli_fail(&e);
}

enum cli_exit run_volume_get(struct cli *cli)
{
    struct error e = { 0 };
    struct stream_header header = { .path = str_of(cli->arguments[1]) };
    enum err rc = volume_of(cli, cli->arguments[0], &header.volume, &e);
    if (rc == ERR_OK)
        rc = tree_get(cli, &header, cli->arguments[2], &e);
    return rc == ERR_OK ? CLI_OK : cli_fail(&e);
}
