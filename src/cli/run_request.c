/* run_request.c - commands that are one request an argument. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Puts the argument in place of {} and adds the query. */
static enum err target_make(struct cli *cli, const char *argument, struct buf *out, struct error *e)
{
    const char *path = cli->command->path;
    const char *hole = strstr(path, "{}");
    AUTO(buf) struct buf query = { 0 };
    enum err rc = cli_query(cli, &query, e);
    if (rc != ERR_OK)
        return rc;
    if (hole == NULL || argument == NULL) {
        buf_add_text(out, path);
    } else {
        buf_add(out, path, (size_t)(hole - path));
        cli_encode_part(out, str_of(argument));
        buf_add_text(out, hole + 2);
    }
    buf_add_str(out, buf_str(&query));
    return ERR_OK;
}

/* Workloads may be named by people: their ids are looked up. */
static enum err argument_resolve(struct cli *cli, const char *argument, const char **out,
                                 struct error *e)
{
    *out = argument;
    if (argument == NULL || strncmp(cli->command->path, "/v1/workloads/{}", 16) != 0)
        return ERR_OK;
    struct str id;
    enum err rc = cli_workload_id(cli, argument, &id, e);
    if (rc == ERR_OK)
        *out = str_c(&cli->arena, id);
    return rc;
}

static enum err request_one(struct cli *cli, const char *argument, json_t *results, struct error *e)
{
    const struct cli_command *command = cli->command;
    AUTO(buf) struct buf target = { 0 };
    AUTO(json) json_t *body = json_object();
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    const char *word = NULL;
    bool has_body = strcmp(command->method, "GET") != 0 && strcmp(command->method, "DELETE") != 0;
    enum err rc = argument_resolve(cli, argument, &word, e);
    if (rc == ERR_OK)
        rc = target_make(cli, word, &target, e);
    if (rc == ERR_OK && has_body)
        rc = cli_body(cli, body, e);
    if (rc != ERR_OK)
        return rc;
    if (command->argument_field != NULL && argument != NULL)
        (void)json_object_set_new(body, command->argument_field, json_string(argument));
    rc = cli_request(cli, command->method, target.data, has_body ? body : NULL, &answer, e);
    if (rc == ERR_OK && answer.json != NULL)
        (void)json_array_append(results, answer.json);
    return rc;
}

static bool is_list(const struct cli_command *command)
{
    return strcmp(command->verb, "list") == 0 || strcmp(command->verb, "report") == 0 ||
           strcmp(command->verb, "segments") == 0 || strcmp(command->verb, "show-all") == 0;
}

static enum cli_exit run_list(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(buf) struct buf target = { 0 };
    AUTO(json) json_t *items = NULL;
    enum err rc = target_make(cli, cli->argument_count > 0 ? cli->arguments[0] : NULL, &target, &e);
    if (rc == ERR_OK)
        rc = cli_list(cli, target.data, &items, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    cli_print(cli, items, cli->command->columns, cli->command->column_count);
    return CLI_OK;
}

/* Every argument is tried; the worst exit status is the command's. */
enum cli_exit cli_run_request(struct cli *cli)
{
    const struct cli_command *command = cli->command;
    AUTO(json) json_t *results = json_array();
    enum cli_exit worst = CLI_OK;
    int count = MAX_OF(cli->argument_count, 1);
    if (is_list(command))
        return run_list(cli);
    for (int i = 0; i < count; i++) {
        struct error e = { 0 };
        const char *argument = cli->argument_count > 0 ? cli->arguments[i] : NULL;
        if (request_one(cli, argument, results, &e) != ERR_OK) {
            enum cli_exit status = cli_fail(&e); /* prints: not inside of the macro */
            worst = MAX_OF(worst, status);
        }
    }
    bool is_one = count == 1 && json_array_size(results) == 1;
    if (json_array_size(results) > 0)
        cli_print(cli, is_one ? json_array_get(results, 0) : results, command->columns,
                  command->column_count);
    return worst;
}
