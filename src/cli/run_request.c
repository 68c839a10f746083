/* run_request.c - commands that are one request an argument. */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "cli/array.h"
#include "cli/guess.h"

enum { PAGE_MAX = 1000 };

/* Puts the argument in place of {} and adds the query. */
static enum err target_make(struct cli *cli, const char *argument, struct buf *out, struct error *e)
{
    const char *path = cli->command->path;
    const char *hole = strstr(path, "{}");
    AUTO(buf) struct buf query = { 0 };
    enum err rc = cli_resolve_options(cli, e);
    if (rc == ERR_OK)
        rc = cli_query(cli, &query, e);
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

static enum err send_one(struct cli *cli, const char *argument, const char *word, json_t *results,
                         struct error *e)
{
    const struct cli_command *command = cli->command;
    AUTO(buf) struct buf target = { 0 };
    AUTO(json) json_t *body = json_object();
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    bool has_body = strcmp(command->method, "GET") != 0 && strcmp(command->method, "DELETE") != 0;
    enum err rc = target_make(cli, word, &target, e);
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

/* The controller acts on all elements and answers with one of them: the whole is shown instead. */
static enum err send_array(struct cli *cli, const char *argument, const char *word, json_t *results,
                           struct error *e)
{
    const char *verb = cli->command->verb;
    struct str id = str_of(word);
    AUTO(json) json_t *answers = json_array();
    json_int_t acted_on = 0;
    json_t *summary = NULL;
    bool is_action = strcmp(cli->command->method, "GET") != 0;
    if (strcmp(verb, "explain") == 0)
        return array_explain(cli, id, results, e);
    enum err rc = is_action ? array_count_for(cli, id, verb, &acted_on, e) : ERR_OK;
    if (rc == ERR_OK && is_action)
        rc = send_one(cli, argument, word, answers, e);
    if (rc == ERR_OK)
        rc = array_summary(cli, id, &summary, e);
    if (rc != ERR_OK)
        return rc;
    if (is_action)
        (void)json_object_set_new(summary, "acted_on", json_integer(acted_on));
    (void)json_array_append_new(results, summary);
    return ERR_OK;
}

static enum err request_one(struct cli *cli, const char *argument, json_t *results, struct error *e)
{
    const char *word = NULL;
    enum err rc = argument_resolve(cli, argument, &word, e);
    if (rc != ERR_OK)
        return rc;
    bool is_array = word != NULL && id_is_kind(ID_ARRAY, str_of(word)) &&
                    strncmp(cli->command->path, "/v1/workloads/{}", 16) == 0;
    return is_array ? send_array(cli, argument, word, results, e)
                    : send_one(cli, argument, word, results, e);
}

/* Tables have the columns of what is in them. */
static void results_print(const struct cli *cli, json_t *results)
{
    const struct cli_command *command = cli->command;
    AUTO(json) json_t *plain = json_array();
    AUTO(json) json_t *arrays = json_array();
    bool is_explain = strcmp(command->verb, "explain") == 0;
    bool is_table = cli->format == CLI_TABLE && command->column_count > 0 && !cli->is_quiet;
    for (size_t i = 0; i < json_array_size(results); i++) {
        json_t *item = json_array_get(results, i);
        bool is_array = is_table && json_object_get(item, "elements") != NULL;
        (void)json_array_append(is_array ? arrays : plain, item);
    }
    bool is_one = cli->argument_count <= 1 && json_array_size(plain) == 1;
    if (json_array_size(plain) > 0)
        cli_print(cli, is_one ? json_array_get(plain, 0) : plain, command->columns,
                  command->column_count);
    if (json_array_size(arrays) > 0)
        cli_print(cli, arrays, is_explain ? array_explain_columns : array_columns,
                  is_explain ? array_explain_column_count : array_column_count);
}

/* Pages are no larger than what is wanted; 0: as the controller makes them. */
static const char *list_target(struct cli *cli, const char *target, int64_t limit)
{
    if (limit == 0)
        return target;
    return arena_format(&cli->arena, "%s%slimit=%lld", target,
                        strchr(target, '?') != NULL ? "&" : "?",
                        (long long)MIN_OF(limit, PAGE_MAX));
}

static enum cli_exit run_list(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(buf) struct buf target = { 0 };
    AUTO(json) json_t *items = NULL;
    int64_t limit = INT32_MAX;
    const char *wanted = cli_get(cli, "limit");
    if (wanted != NULL && !str_to_i64(str_of(wanted), 1, INT32_MAX, &limit))
        return cli_usage(cli, "--limit: \"%s\" is not a number of lines", wanted);
    enum err rc = target_make(cli, cli->argument_count > 0 ? cli->arguments[0] : NULL, &target, &e);
    if (rc == ERR_OK)
        rc = cli_list_some(cli, list_target(cli, target.data, wanted != NULL ? limit : 0),
                           (size_t)limit, &items, &e);
    if (rc != ERR_OK)
        return cli_refused(cli, &e);
    cli_print(cli, items, cli->command->columns, cli->command->column_count);
    return CLI_OK;
}

/* Every argument is tried; the worst exit status is the command's. */
enum cli_exit cli_run_request(struct cli *cli)
{
    AUTO(json) json_t *results = json_array();
    enum cli_exit worst = CLI_OK;
    int count = MAX_OF(cli->argument_count, 1);
    if (cli->command->is_list)
        return run_list(cli);
    for (int i = 0; i < count; i++) {
        struct error e = { 0 };
        const char *argument = cli->argument_count > 0 ? cli->arguments[i] : NULL;
        if (request_one(cli, argument, results, &e) != ERR_OK) {
            enum cli_exit status = cli_refused(cli, &e); /* prints: not inside of the macro */
            worst = MAX_OF(worst, status);
        }
    }
    results_print(cli, results);
    return worst;
}
