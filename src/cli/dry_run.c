/*
 * dry_run.c - what a command that destroys something would do: the object is read, so that
 * what is absent, foreign or misspelt shows; of what is removed the controller is asked what it
 * would say to that.
 */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "cli/guess.h"
#include "cli/special.h"

static const struct cli_column dry_columns[] = {
    { "OBJECT", "object", COLUMN_TEXT },
    { "WOULD", "would", COLUMN_TEXT },
    { "DETAIL", "detail", COLUMN_TEXT },
};

static void row_add(json_t *rows, const char *object, const char *would, struct str detail)
{
    json_t *row = json_object();
    (void)json_object_set_new(row, "object", json_string(object));
    (void)json_object_set_new(row, "would", json_string(would));
    (void)json_object_set_new(row, "detail", json_stringn(detail.data, detail.size));
    (void)json_array_append_new(rows, row);
}

/* What tells a person that it is the right one. */
static void detail_add(struct buf *out, const json_t *object)
{
    static const char *const fields[] = { "id",   "state",      "tenant",         "role",
                                          "user", "registry",   "source",         "class",
                                          "node", "size_bytes", "contact",        "quota_mib",
                                          "site", "node_count", "live_workloads", "members" };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        const json_t *value = json_object_get(object, fields[i]);
        if (!json_is_string(value) && !json_is_integer(value))
            continue;
        buf_add_text(out, out->size > 0 ? ", " : "");
        buf_format(out, "%s ", fields[i]);
        if (json_is_string(value))
            buf_add_text(out, json_string_value(value));
        else
            buf_format(out, "%lld", (long long)json_integer_value(value));
    }
}

/* ---- work ----------------------------------------------------------------------------------- */

static bool has_ended(const json_t *workload)
{
    const char *state = cli_text(workload, "state");
    return cli_state_is_final(state);
}

static enum err plan_array(struct cli *cli, struct str id, json_t *rows, struct error *e)
{
    AUTO(json) json_t *items = NULL;
    AUTO(buf) struct buf detail = { 0 };
    size_t live = 0;
    const char *target =
        arena_format(&cli->arena, "/v1/workloads?limit=1000&array=%.*s", STR_ARG(id));
    enum err rc = cli_list(cli, target, &items, e);
    if (rc != ERR_OK)
        return rc;
    if (json_array_size(items) == 0)
        return err_set(e, ERR_NOT_FOUND, "no element of %.*s is in memory", STR_ARG(id));
    for (size_t i = 0; i < json_array_size(items); i++)
        live += !has_ended(json_array_get(items, i));
    buf_format(&detail, "%zu of %zu elements; the others have ended", live, json_array_size(items));
    row_add(rows, str_c(&cli->arena, id), live > 0 ? cli->command->would : "stay as it is",
            buf_str(&detail));
    return ERR_OK;
}

static enum err plan_workload(struct cli *cli, const char *word, json_t *rows, struct error *e)
{
    struct str id = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    AUTO(buf) struct buf detail = { 0 };
    enum err rc = cli_workload_id(cli, word, &id, e);
    if (rc == ERR_OK && id_is_kind(ID_ARRAY, id))
        return plan_array(cli, id, rows, e);
    if (rc == ERR_OK)
        rc = cli_request(cli, "GET", arena_format(&cli->arena, "/v1/workloads/%.*s", STR_ARG(id)),
                         NULL, &answer, e);
    if (rc != ERR_OK)
        return rc;
    detail_add(&detail, answer.json);
    row_add(rows, word, has_ended(answer.json) ? "stay as it is" : cli->command->would,
            buf_str(&detail));
    return ERR_OK;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* What becomes of the work on a node, in words. */
static const char *work_would(struct cli *cli)
{
    const char *deadline = cli_get(cli, "deadline");
    if (strcmp(cli->command->verb, "drain") != 0)
        return "be taken for gone from this node";
    if (deadline == NULL)
        return "go on until it ends: no --deadline is given";
    return arena_format(&cli->arena, "be stopped after %s and queued again", deadline);
}

static enum err plan_work_on(struct cli *cli, const char *node, json_t *rows, struct error *e)
{
    AUTO(json) json_t *items = NULL;
    AUTO(buf) struct buf target = { 0 };
    buf_add_text(&target, "/v1/allocations?limit=1000&node=");
    cli_encode(&target, str_of(node));
    enum err rc = cli_list(cli, target.data, &items, e);
    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *allocation = json_array_get(items, i);
        const char *workload = cli_text(allocation, "workload");
        const char *project = cli_text(allocation, "project");
        json_int_t rank = json_integer_value(json_object_get(allocation, "rank"));
        const char *detail =
            arena_format(&cli->arena, "member %lld, of %s", (long long)rank, project);
        row_add(rows, workload, work_would(cli), str_of(detail));
    }
    return ERR_OK;
}

/* A node takes the bytes of its volumes along. */
static enum err plan_volumes_on(struct cli *cli, const char *node, json_t *rows, struct error *e)
{
    AUTO(json) json_t *items = NULL;
    if (strcmp(cli->command->verb, "remove") != 0)
        return ERR_OK;
    enum err rc = cli_list(cli, "/v1/volumes?limit=1000", &items, e);
    for (size_t i = 0; i < json_array_size(items) && rc == ERR_OK; i++) {
        const json_t *volume = json_array_get(items, i);
        const char *where = cli_text(volume, "node");
        const char *name = cli_text(volume, "name");
        const char *tenant = cli_text(volume, "tenant");
        if (strcmp(where, node) != 0)
            continue;
        row_add(rows, arena_format(&cli->arena, "volume %s", name),
                cli_has(cli, "force") ? "begin empty elsewhere"
                                      : "be in the way: --force is needed",
                str_of(arena_format(&cli->arena, "of %s", tenant)));
    }
    return rc;
}

/* ---- all ------------------------------------------------------------------------------------ */

/* What the command itself would be refused for. */
static enum err ask_removal(struct cli *cli, const char *name, struct error *e)
{
    const char *path = cli->command->path;
    const char *hole = strstr(path, "{}");
    AUTO(buf) struct buf target = { 0 };
    AUTO(buf) struct buf query = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    bool is_removal =
        strcmp(cli->command->verb, "remove") == 0 || strcmp(cli->command->verb, "revoke") == 0;
    if (!is_removal)
        return ERR_OK;
    enum err rc = cli_query(cli, &query, e);
    if (rc != ERR_OK)
        return rc;
    buf_add(&target, path, (size_t)(hole - path));
    cli_encode_part(&target, str_of(name));
    buf_add_str(&target, buf_str(&query));
    buf_add_text(&target, query.size > 0 ? "&dry_run=true" : "?dry_run=true");
    return cli_request(cli, "DELETE", target.data, NULL, &answer, e);
}

static enum err plan_object(struct cli *cli, const char *name, json_t *rows, struct error *e)
{
    const char *look = cli->command->look;
    const char *hole = strstr(look, "{}");
    const char *tenant = cli_get(cli, "tenant");
    AUTO(buf) struct buf target = { 0 };
    AUTO(buf) struct buf detail = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    buf_add(&target, look, (size_t)(hole - look));
    cli_encode_part(&target, str_of(name));
    buf_add_text(&target, tenant != NULL ? "?tenant=" : "");
    cli_encode(&target, str_of(tenant));
    enum err rc = cli_request(cli, "GET", target.data, NULL, &answer, e);
    if (rc != ERR_OK)
        return rc;
    detail_add(&detail, answer.json);
    struct error refusal = { 0 };
    enum err asked = ask_removal(cli, name, &refusal);
    row_add(rows, arena_format(&cli->arena, "%s %s", cli->command->noun, name),
            asked == ERR_OK ? cli->command->would : "be refused", buf_str(&detail));
    bool is_node = strcmp(cli->command->noun, "node") == 0;
    rc = is_node ? plan_work_on(cli, name, rows, e) : ERR_OK;
    if (is_node && rc == ERR_OK)
        rc = plan_volumes_on(cli, name, rows, e);
    if (rc != ERR_OK || asked == ERR_OK)
        return rc;
    *e = refusal;
    return asked;
}

/* Every argument is tried, as by the command itself. */
enum cli_exit run_dry(struct cli *cli)
{
    AUTO(json) json_t *rows = json_array();
    enum cli_exit worst = CLI_OK;
    for (int i = 0; i < cli->argument_count; i++) {
        struct error e = { 0 };
        const char *word = cli->arguments[i];
        enum err rc = cli->command->noun == NULL ? plan_workload(cli, word, rows, &e)
                                                 : plan_object(cli, word, rows, &e);
        if (rc != ERR_OK) {
            enum cli_exit status = cli_refused(cli, &e); /* prints: not inside of the macro */
            worst = MAX_OF(worst, status);
        }
    }
    if (json_array_size(rows) > 0)
        cli_print(cli, rows, dry_columns, COUNT_OF(dry_columns));
    return worst;
}
