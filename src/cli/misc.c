/* misc.c - small commands that need a little more than their row says. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/guess.h"
#include "cli/special.h"
#include "os/fd.h"
#include "os/file.h"

enum { SECRET_MAX = 4096 };

/* Removing cannot be undone: a person is asked, a script says --yes. */
static enum cli_exit confirm(struct cli *cli)
{
    char answer[16] = "";
    if (cli_has(cli, "yes"))
        return CLI_OK;
    if (isatty(STDIN_FILENO) != 1)
        return cli_usage(cli, "this cannot be undone: say --yes");
    (void)fprintf(stderr, "remove %s%s? [y/N] ", cli->arguments[0],
                  cli->argument_count > 1 ? " and others" : "");
    bool is_yes =
        fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
    return is_yes ? CLI_OK : CLI_FAILED;
}

enum cli_exit run_remove(struct cli *cli)
{
    enum cli_exit status = confirm(cli);
    if (status != CLI_OK)
        return status;
    struct cli_command *remove = arena_new(&cli->arena, 1, sizeof(*remove));
    *remove = *cli->command;
    remove->method = "DELETE";
    cli->command = remove;
    return cli_run_request(cli);
}

enum cli_exit run_token_create(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *body = json_object();
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = cli_body(cli, body, &e);
    if (rc == ERR_OK)
        rc = cli_request(cli, "POST", cli->command->path, body, &answer, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    const char *secret = json_string_value(json_object_get(answer.json, "secret"));
    if (cli->format != CLI_TABLE) {
        cli_print(cli, answer.json, NULL, 0);
    } else {
        (void)printf("%s\n", secret != NULL ? secret : "");
        if (!cli->is_quiet)
            (void)fputs("berth: this is the only time the token is shown\n", stderr);
    }
    return CLI_OK;
}

enum cli_exit run_device_hold(struct cli *cli)
{
    struct cli_command *action = arena_new(&cli->arena, 1, sizeof(*action));
    AUTO(buf) struct buf path = { 0 };
    buf_add_text(&path, "/v1/nodes/");
    cli_encode_part(&path, str_of(cli->arguments[0]));
    buf_add_text(&path, "/devices/{}/");
    buf_add_text(&path, cli->command->verb);
    *action = *cli->command;
    action->method = "POST";
    action->path = str_c(&cli->arena, buf_str(&path));
    cli->command = action;
    cli->arguments++;
    cli->argument_count--;
    return cli_run_request(cli);
}

/* For people, beside a table; programs find it in the documentation. */
static void note(const struct cli *cli, const char *text)
{
    if (cli->format == CLI_TABLE && !cli->is_quiet)
        (void)fprintf(stderr, "berth: %s\n", text);
}

enum cli_exit run_node_drain(struct cli *cli)
{
    enum cli_exit status = cli_run_request(cli);
    if (status == CLI_OK && cli_get(cli, "deadline") == NULL)
        note(cli,
             "no deadline is set: nothing new starts there, and what runs goes on until it ends; "
             "drain it again with --deadline 1h to stop what is left then and queue it again");
    return status;
}

enum cli_exit run_usage_report(struct cli *cli)
{
    enum cli_exit status = cli_run_request(cli);
    if (status == CLI_OK)
        note(cli, "what a project used includes the projects below it; do not add them up");
    return status;
}

static const struct cli_column invoice_columns[] = {
    { "PROJECT", "project", COLUMN_TEXT },
    { "CLASS", "class", COLUMN_TEXT },
    { "DEVICE_S", "milli_ms", COLUMN_DEVICE_S },
    { "PRICE/H", "price_micros_per_hour", COLUMN_MICROS },
    { "AMOUNT", "amount_micros", COLUMN_MICROS },
};

enum cli_exit run_invoice(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(buf) struct buf target = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    buf_add_text(&target, "/v1/invoice");
    if (cli->argument_count > 0) {
        buf_add_text(&target, "?tenant=");
        cli_encode(&target, str_of(cli->arguments[0]));
    }
    enum err rc = cli_request(cli, "GET", target.data, NULL, &answer, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    if (cli->format != CLI_TABLE) {
        cli_print(cli, answer.json, NULL, 0);
        return CLI_OK;
    }
    static const struct cli_column total[] = { { "TENANT", "tenant", COLUMN_TEXT },
                                               { "UNTIL", "until", COLUMN_TIME },
                                               { "TOTAL", "total_micros", COLUMN_MICROS } };
    cli_print(cli, json_object_get(answer.json, "lines"), invoice_columns,
              COUNT_OF(invoice_columns));
    (void)puts("");
    cli_print(cli, answer.json, total, COUNT_OF(total));
    return CLI_OK;
}

static enum err password_read(const char *path, struct buf *out, struct error *e)
{
    char bytes[SECRET_MAX];
    size_t got = 0;
    enum err rc = ERR_OK;
    if (path == NULL || strcmp(path, "-") == 0) {
        rc = fd_read_full(STDIN_FILENO, bytes, sizeof(bytes), &got, e);
        buf_add(out, bytes, got);
        explicit_bzero(bytes, sizeof(bytes));
    } else {
        rc = file_read(path, SECRET_MAX, out, e);
    }
    while (out->size > 0 && out->data[out->size - 1] == '\n')
        out->data[--out->size] = '\0';
    if (rc == ERR_OK && out->size == 0)
        return err_set(e, ERR_INVALID, "what was given as the secret is empty");
    return rc;
}

enum cli_exit run_credential_set(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *body = json_object();
    AUTO(buf) struct buf password = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = cli_body(cli, body, &e);
    if (rc == ERR_OK)
        rc = password_read(cli_get(cli, "password-file"), &password, &e);
    if (rc == ERR_OK) {
        (void)json_object_set_new(body, "registry", json_string(cli->arguments[0]));
        (void)json_object_set_new(body, "password", json_stringn(password.data, password.size));
        rc = cli_request(cli, "POST", "/v1/credentials", body, &answer, &e);
    }
    if (password.size > 0)
        explicit_bzero(password.data, password.size);
    if (rc != ERR_OK)
        return cli_fail(&e);
    cli_print(cli, answer.json, cli->command->columns, cli->command->column_count);
    return CLI_OK;
}

/* Mail is not signed; what is set again keeps its secret unless another is given. */
static enum err hook_secret(struct cli *cli, json_t *body, struct buf *secret, struct error *e)
{
    const char *file = cli_get(cli, "secret-file");
    if (file == NULL)
        return ERR_OK;
    enum err rc = password_read(file, secret, e);
    if (rc == ERR_OK)
        (void)json_object_set_new(body, "secret", json_stringn(secret->data, secret->size));
    return rc;
}

enum cli_exit run_hook_set(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *body = json_object();
    AUTO(buf) struct buf secret = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = cli_body(cli, body, &e);
    if (rc == ERR_OK)
        rc = hook_secret(cli, body, &secret, &e);
    if (rc == ERR_OK) {
        (void)json_object_set_new(body, "name", json_string(cli->arguments[0]));
        rc = cli_request(cli, "POST", "/v1/hooks", body, &answer, &e);
    }
    if (secret.size > 0)
        explicit_bzero(secret.data, secret.size);
    if (rc != ERR_OK)
        return cli_fail(&e);
    cli_print(cli, answer.json, cli->command->columns, cli->command->column_count);
    return CLI_OK;
}
