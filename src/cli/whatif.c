/* whatif.c - what would follow, as a table of the work to which something else would happen; and
 * the state itself, for berth-sim. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/guess.h"
#include "cli/special.h"
#include "os/fd.h"

static const struct cli_column work_columns[] = {
    { "WORKLOAD", "workload", COLUMN_TEXT },
    { "NAME", "name", COLUMN_TEXT },
    { "PROJECT", "project", COLUMN_TEXT },
    { "EFFECT", "effect", COLUMN_TEXT },
    { "STARTS_NOW", "started_before", COLUMN_TIME },
    { "STARTS_THEN", "started_after", COLUMN_TIME },
    { "DELAY", "delay_s", COLUMN_TEXT },
    { "EVICTED_NOW", "evictions_before", COLUMN_TEXT },
    { "EVICTED_THEN", "evictions_after", COLUMN_TEXT },
    { "CAUSE", "cause", COLUMN_TEXT },
};

static const struct cli_column total_columns[] = {
    { "", "which", COLUMN_TEXT },
    { "STARTS", "starts", COLUMN_TEXT },
    { "EVICTIONS", "evictions", COLUMN_TEXT },
    { "WAITING", "waiting", COLUMN_TEXT },
};

static void total_add(json_t *rows, const json_t *answer, const char *which)
{
    static const char *const fields[] = { "starts", "evictions", "waiting" };
    json_t *row = json_object();
    (void)json_object_set_new(row, "which", json_string(which));
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%s_%s", fields[i],
                       strcmp(which, "as it is") == 0 ? "before" : "after");
        json_t *value = json_object_get(answer, name);
        if (value != NULL)
            (void)json_object_set(row, fields[i], value);
    }
    (void)json_array_append_new(rows, row);
}

static void answer_print(const struct cli *cli, const json_t *answer)
{
    AUTO(json) json_t *totals = json_array();
    const json_t *work = json_object_get(answer, "work");
    if (cli->format != CLI_TABLE) {
        cli_print(cli, answer, NULL, 0);
        return;
    }
    total_add(totals, answer, "as it is");
    total_add(totals, answer, "then");
    cli_print(cli, totals, total_columns, COUNT_OF(total_columns));
    if (json_array_size(work) > 0) {
        (void)puts("");
        cli_print(cli, work, work_columns, COUNT_OF(work_columns));
    }
    if (cli->is_quiet)
        return;
    (void)fprintf(stderr, "berth: until %s; work is taken to run as long as its time limit\n",
                  cli_text(answer, "until"));
    if (json_is_true(json_object_get(answer, "is_cut")))
        (void)fputs("berth: there was too much to look at all of it: later starts are missing\n",
                    stderr);
}

/* Sends what is supposed, which it takes over, in the field `what`. */
static enum cli_exit ask(struct cli *cli, const char *what, json_t *value)
{
    struct error e = { 0 };
    int64_t horizon_s = 0;
    const char *horizon = cli_get(cli, "horizon");
    AUTO(json) json_t *body = json_object();
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    (void)json_object_set_new(body, what, value);
    if (horizon != NULL && !str_to_seconds(str_of(horizon), INT32_MAX, &horizon_s))
        return cli_usage(cli, "--horizon: \"%s\" is not a time such as 90, 5m or 1h30m", horizon);
    if (horizon != NULL)
        (void)json_object_set_new(body, "horizon_s", json_integer(horizon_s));
    if (cli_request(cli, "POST", "/v1/whatif", body, &answer, &e) != ERR_OK)
        return cli_refused(cli, &e);
    answer_print(cli, answer.json);
    return CLI_OK;
}

enum cli_exit run_whatif_submit(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *body = NULL;
    if (submit_body(cli, &body, &e) != ERR_OK)
        return cli_refused(cli, &e);
    if (json_object_get(body, "command") == NULL) /* what it runs does not matter */
        (void)json_object_set_new(body, "command", json_pack("[s]", "true"));
    return ask(cli, "submit", TAKE(body));
}

enum cli_exit run_whatif_change(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *body = json_object();
    if (cli_body(cli, body, &e) != ERR_OK)
        return cli_refused(cli, &e);
    if (cli->argument_count > 0)
        (void)json_object_set_new(body, "project", json_string(cli->arguments[0]));
    return ask(cli, "change", TAKE(body));
}

enum cli_exit run_whatif_lose(struct cli *cli)
{
    return ask(cli, "lose_node", json_string(cli->arguments[0]));
}

/* ---- the state ------------------------------------------------------------------------------- */

static enum err write_file(const char *path, struct str bytes, struct error *e)
{
    AUTO(fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "%s", path);
    enum err rc = fd_write_full(fd, bytes.data, bytes.size, e);
    return rc == ERR_OK ? rc : err_wrap(e, rc, "%s", path);
}

enum cli_exit run_export(struct cli *cli)
{
    struct error e = { 0 };
    const char *path = cli_get(cli, "snapshot");
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    if (path == NULL)
        return cli_usage(cli, "--snapshot is missing: name the file that it goes to");
    enum err rc = cli_request(cli, "GET", "/v1/snapshot", NULL, &answer, &e);
    if (rc == ERR_OK)
        rc = write_file(path, buf_str(&answer.body), &e);
    return rc == ERR_OK ? CLI_OK : cli_refused(cli, &e);
}
