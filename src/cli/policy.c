/* policy.c - quotas and policies: shown with what is changed for a time, previewed before they are
 * changed. */
#include <stdio.h>
#include <string.h>

#include "cli/guess.h"
#include "cli/special.h"

static const struct cli_column level_columns[] = {
    { "PROJECT", "project", COLUMN_TEXT },
    { "CLASS", "class", COLUMN_TEXT },
    { "QUOTA", "quota_milli", COLUMN_MILLI },
    { "NEW_QUOTA", "new_quota_milli", COLUMN_MILLI },
    { "LIMIT", "limit_milli", COLUMN_MILLI },
    { "NEW_LIMIT", "new_limit_milli", COLUMN_MILLI },
    { "ALLOCATED", "allocated_milli", COLUMN_MILLI },
    { "PENDING", "pending_milli", COLUMN_MILLI },
    { "BORROWED", "borrowed_milli", COLUMN_MILLI },
    { "NEW_BORROWED", "new_borrowed_milli", COLUMN_MILLI },
    { "OVER_LIMIT", "is_over_limit", COLUMN_FLAG },
};
static const struct cli_column work_columns[] = {
    { "WORKLOAD", "workload", COLUMN_TEXT }, { "NAME", "name", COLUMN_TEXT },
    { "PROJECT", "project", COLUMN_TEXT },   { "USER", "user", COLUMN_TEXT },
    { "CLASS", "class", COLUMN_TEXT },       { "CHARGE", "charge_milli", COLUMN_MILLI },
    { "EFFECT", "effect", COLUMN_TEXT },     { "PREEMPTIBLE", "is_preemptible", COLUMN_TEXT },
};

/* ---- what a change would do ------------------------------------------------------------------ */

static void preview_print(const struct cli *cli, const json_t *preview)
{
    const json_t *levels = json_object_get(preview, "levels");
    const json_t *work = json_object_get(preview, "work");
    json_int_t all = json_integer_value(json_object_get(preview, "work_count"));
    if (cli->format != CLI_TABLE) {
        cli_print(cli, preview, NULL, 0);
        return;
    }
    cli_print(cli, json_object_get(preview, "change"), cli->command->columns,
              cli->command->column_count);
    if (json_array_size(levels) > 0) {
        (void)puts("");
        cli_print(cli, levels, level_columns, COUNT_OF(level_columns));
    }
    if (json_array_size(work) > 0) {
        (void)puts("");
        cli_print(cli, work, work_columns, COUNT_OF(work_columns));
    }
    if (all > (json_int_t)json_array_size(work))
        (void)printf("... %lld workloads in all\n", (long long)all);
    if (json_is_true(json_object_get(preview, "is_overcommitted")))
        (void)fputs("berth: this is more than there is: it is accepted by --force only\n", stderr);
    (void)fputs("berth: nothing was changed\n", stderr);
}

enum cli_exit run_change(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *body = json_object();
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    bool is_dry = cli_has(cli, "dry-run");
    enum err rc = cli_body(cli, body, &e);
    if (rc == ERR_OK && cli->argument_count > 0)
        (void)json_object_set_new(body, "project", json_string(cli->arguments[0]));
    if (rc == ERR_OK)
        rc = cli_request(cli, "POST", is_dry ? "/v1/changes/preview" : "/v1/changes", body, &answer,
                         &e);
    if (rc != ERR_OK)
        return cli_refused(cli, &e);
    if (is_dry)
        preview_print(cli, answer.json);
    else
        cli_print(cli, answer.json, cli->command->columns, cli->command->column_count);
    return CLI_OK;
}

/* The settings, or the changes that are named. */
enum cli_exit run_policy_show(struct cli *cli)
{
    struct cli_command *show = arena_new(&cli->arena, 1, sizeof(*show));
    *show = *cli->command;
    show->method = "GET";
    show->path = cli->argument_count > 0 ? "/v1/changes/{}" : "/v1/settings";
    cli->command = show;
    return cli_run_request(cli);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static const struct cli_column quota_columns[] = {
    { "PATH", "path", COLUMN_TEXT },
    { "PRIORITY", "priority", COLUMN_TEXT },
    { "CLASS", "class", COLUMN_TEXT },
    { "QUOTA", "quota_milli", COLUMN_MILLI },
    { "LIMIT", "limit_milli", COLUMN_MILLI },
    { "LEND", "lend_limit_milli", COLUMN_MILLI },
    { "WEIGHT", "over_quota_weight", COLUMN_TEXT },
    { "ALLOCATED", "allocated_milli", COLUMN_MILLI },
    { "BORROWED", "borrowed_milli", COLUMN_MILLI },
    { "PENDING", "pending_milli", COLUMN_MILLI },
    { "UNTIL", "until", COLUMN_TIME },
    { "FLAGS", "flags", COLUMN_LIST },
};

static bool names_class(const json_t *change, const json_t *class_name)
{
    const json_t *rows = json_object_get(change, "quotas");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (json_equal(json_object_get(json_array_get(rows, i), "class"), class_name))
            return true;
    }
    return false;
}

/* When what a row shows ends by itself: the first end of the changes that made it. */
static const json_t *row_until(const json_t *changes, const json_t *path, const json_t *class_name)
{
    const json_t *until = NULL;
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);
        const json_t *end = json_object_get(change, "window_end");
        if (end == NULL || !json_equal(json_object_get(change, "project"), path) ||
            !names_class(change, class_name))
            continue;
        if (until == NULL || strcmp(json_string_value(end), json_string_value(until)) < 0)
            until = end;
    }
    return until;
}

/* One row a project and class. */
static void quota_rows(const json_t *project, const json_t *changes, json_t *rows)
{
    static const char *const flags[] = { "is_overcommitted", "is_over_limit" };
    const json_t *quotas = json_object_get(project, "quotas");
    for (size_t i = 0; i < json_array_size(quotas); i++) {
        json_t *row = json_copy(json_array_get(quotas, i));
        json_t *list = json_array();
        const json_t *path = json_object_get(project, "path");
        const json_t *until = row_until(changes, path, json_object_get(row, "class"));
        (void)json_object_set(row, "path", (json_t *)(uintptr_t)path); /* shared, not changed */
        (void)json_object_set(row, "priority", json_object_get(project, "priority"));
        (void)json_object_set(row, "is_overcommitted",
                              json_object_get(project, "is_overcommitted"));
        if (until != NULL)
            (void)json_object_set(row, "until", (json_t *)(uintptr_t)until);
        for (size_t k = 0; k < COUNT_OF(flags); k++) {
            if (json_is_true(json_object_get(row, flags[k])))
                (void)json_array_append_new(list, json_string(flags[k] + 3)); /* without "is_" */
        }
        (void)json_object_set_new(row, "flags", list);
        (void)json_array_append_new(rows, row);
    }
}

static void rows_print(const struct cli *cli, const json_t *rows)
{
    cli_print(cli, rows, quota_columns, COUNT_OF(quota_columns));
    if (cli->format == CLI_TABLE && !cli->is_quiet)
        (void)fputs("berth: ALLOCATED, BORROWED and PENDING of a project include the projects below"
                    " it\n",
                    stderr);
}

/* All projects that one may see, parents before children. */
static enum cli_exit show_tree(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *projects = NULL;
    AUTO(json) json_t *changes = NULL;
    AUTO(json) json_t *rows = json_array();
    enum err rc = cli_list(cli, "/v1/projects?limit=1000", &projects, &e);
    if (rc == ERR_OK)
        rc = cli_list(cli, "/v1/changes?limit=1000&state=active", &changes, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    for (size_t i = 0; i < json_array_size(projects); i++)
        quota_rows(json_array_get(projects, i), changes, rows);
    rows_print(cli, rows);
    return CLI_OK;
}

enum cli_exit run_top(struct cli *cli)
{
    return show_tree(cli);
}

enum cli_exit run_quota_show(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *rows = json_array();
    AUTO(json) json_t *changes = NULL;
    enum cli_exit worst = CLI_OK;
    if (cli->argument_count == 0)
        return show_tree(cli);
    if (cli_list(cli, "/v1/changes?limit=1000&state=active", &changes, &e) != ERR_OK)
        return cli_fail(&e);
    for (int i = 0; i < cli->argument_count; i++) {
        AUTO(cli_answer) struct cli_answer answer = { 0 };
        AUTO(buf) struct buf target = { 0 };
        buf_add_text(&target, "/v1/projects/");
        cli_encode_part(&target, str_of(cli->arguments[i]));
        if (cli_request(cli, "GET", target.data, NULL, &answer, &e) != ERR_OK) {
            enum cli_exit status = cli_refused(cli, &e); /* prints: not inside of the macro */
            worst = MAX_OF(worst, status);
        } else {
            quota_rows(answer.json, changes, rows);
        }
    }
    if (worst == CLI_OK || json_array_size(rows) > 0)
        rows_print(cli, rows);
    return worst;
}
