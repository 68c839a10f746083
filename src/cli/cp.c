/* cp.c - trees to and from running work and volumes. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/guess.h"
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

/* The path without slashes at its end: "dir/" is "dir", as for `cp -r`. */
static const char *trimmed(struct cli *cli, const char *path)
{
    struct str text = str_of(path);
    while (text.size > 1 && text.data[text.size - 1] == '/')
        text.size--;
    return str_c(&cli->arena, text);
}

/* What a copy of it is called: its last part; of "dir/." and "/" what is inside is meant,
 * which is ".". */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return name[0] == '\0' || strcmp(name, "..") == 0 ? "." : name;
}

static enum tree_words words_of(const struct cli *cli)
{
    return cli->is_quiet ? TREE_QUIET : cli_has(cli, "verbose") ? TREE_VERBOSE : TREE_BRIEF;
}

static enum err outcome(const struct stream_exit *exited, struct error *e)
{
    bool is_good = !exited->is_signal && exited->number == 0;
    return is_good ? ERR_OK : err_set(e, ERR_IO, "the node could not copy all files");
}

/* Out of the remote tree to a place of ours. */
static enum err tree_get(struct cli *cli, struct stream_header *header, const char *to,
                         struct error *e)
{
    struct tree_child child = { .fd = -1 };
    struct stream_exit exited = { 0 };
    enum err rc = tree_spawn_read(to, words_of(cli), &child, e);
    if (rc != ERR_OK)
        return rc;
    header->kind = STREAM_TREE_GET;
    struct stream_run run = {
        .header = *header, .input_fd = -1, .output_fd = child.fd, .error_fd = -1
    };
    rc = stream_run(cli, &run, &exited, e);
    /* A pipe that breaks is our own end's trouble, and it has said what that is. */
    bool is_ours = rc == ERR_OK || rc == ERR_IO;
    enum err waited = tree_wait(&child, is_ours ? e : NULL);
    if (waited != ERR_OK && is_ours)
        return waited;
    if (rc == ERR_OK)
        rc = outcome(&exited, e);
    return rc != ERR_OK ? rc : waited;
}

static enum err tree_put(struct cli *cli, struct stream_header *header, const char *path,
                         struct error *e)
{
    const char *from = trimmed(cli, path);
    struct tree_child child = { .fd = -1 };
    struct stream_exit exited = { 0 };
    struct stat info;
    if (stat(path, &info) != 0)
        return err_errno(e, "%s", path);
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
    if (rc == ERR_OK)
        rc = wait_for_running(cli, text, &e);
    header.path = str_of(is_get ? trimmed(cli, path) : path);
    if (rc == ERR_OK)
        rc = is_get ? tree_get(cli, &header, cli->arguments[1], &e)
                    : tree_put(cli, &header, cli->arguments[0], &e);
    return rc == ERR_OK ? CLI_OK : cli_refused(cli, &e);
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
               : err_set(e, ERR_CORRUPT, "the controller's answer has no volume id");
}

enum cli_exit run_volume_put(struct cli *cli)
{
    struct error e = { 0 };
    struct stream_header header = { 0 };
    header.path = str_of(cli->argument_count > 2 ? cli->arguments[2] : "/");
    enum err rc = volume_of(cli, cli->arguments[0], &header.volume, &e);
    if (rc == ERR_OK)
        rc = tree_put(cli, &header, cli->arguments[1], &e);
    return rc == ERR_OK ? CLI_OK : cli_refused(cli, &e);
}

enum cli_exit run_volume_get(struct cli *cli)
{
    struct error e = { 0 };
    struct stream_header header = { .path = str_of(trimmed(cli, cli->arguments[1])) };
    enum err rc = volume_of(cli, cli->arguments[0], &header.volume, &e);
    if (rc == ERR_OK)
        rc = tree_get(cli, &header, cli->arguments[2], &e);
    return rc == ERR_OK ? CLI_OK : cli_refused(cli, &e);
}
