/* submit.c - work into a request: options, a YAML file under them, code to upload. */
#include <stdio.h>
#include <string.h>

#include "cli/guess.h"
#include "cli/safe.h"
#include "cli/special.h"
#include "os/file.h"
#include "wire/yaml.h"

enum { SPEC_BYTES_MAX = 1024 * 1024 };

/* The file's fields come first; options replace them. */
static enum err file_read_spec(const char *path, json_t **out, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    AUTO(json) json_t *documents = NULL;
    enum err rc = file_read(path, SPEC_BYTES_MAX, &text, e);
    if (rc == ERR_OK)
        rc = yaml_read(buf_str(&text), &documents, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", path);
    const json_t *spec = json_array_get(documents, 0);
    if (json_array_size(documents) != 1 || !json_is_object(spec))
        return err_set(e, ERR_INVALID, "%s: one document with fields is wanted", path);
    const json_t *inner = json_object_get(spec, "spec"); /* a whole manifest is fine as well */
    *out = json_deep_copy(json_is_object(inner) ? inner : spec);
    return ERR_OK;
}

/* A tenant's own user need not say which project: the tenant's root. */
static enum err project_default(struct cli *cli, json_t *body, struct error *e)
{
    if (json_object_get(body, "project") != NULL)
        return ERR_OK;
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = cli_request(cli, "GET", "/v1/whoami", NULL, &answer, e);
    if (rc != ERR_OK)
        return rc;
    const json_t *tenant = json_object_get(answer.json, "tenant");
    if (!json_is_string(tenant) || json_string_length(tenant) == 0)
        return err_set(e, ERR_INVALID, "--project: which project is this for?");
    (void)json_object_set(body, "project", (json_t *)(uintptr_t)tenant);
    return ERR_OK;
}

/* Other work may be called by its name; the controller knows it by its id. */
static enum err dependencies_resolve(struct cli *cli, json_t *body, struct error *e)
{
    json_t *rows = json_object_get(body, "depends_on");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        const char *word = json_string_value(json_object_get(row, "workload"));
        struct str id = { 0 };
        if (word == NULL)
            continue; /* the controller says what is wrong with it */
        enum err rc = cli_workload_id(cli, word, &id, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "--after");
        (void)json_object_set_new(row, "workload", json_stringn(id.data, id.size));
    }
    return ERR_OK;
}

/* Without a command the image's own is run, which not everybody expects. */
static void tell_own_command(struct cli *cli, const json_t *body)
{
    const char *image = json_string_value(json_object_get(body, "image"));
    struct str project = str_of(json_string_value(json_object_get(body, "project")));
    AUTO(buf) struct buf target = { 0 };
    AUTO(buf) struct buf line = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    if (cli->is_quiet || image == NULL || json_array_size(json_object_get(body, "command")) > 0)
        return;
    buf_add_text(&target, "/v1/images/");
    cli_encode_part(&target, str_of(image));
    buf_add_text(&target, "?tenant=");
    cli_encode(&target, str_cut(&project, '/'));
    if (cli_request(cli, "GET", target.data, NULL, &answer, NULL) != ERR_OK)
        return; /* what is wrong with it is said when the work is submitted */
    const json_t *words = json_object_get(answer.json, "command");
    for (size_t i = 0; i < json_array_size(words); i++) {
        buf_add_char(&line, ' ');
        safe_line(str_of(json_string_value(json_array_get(words, i))), &line);
    }
    if (line.size > 0)
        (void)fprintf(stderr, "berth: no command is given; the image's own is run:%.*s\n",
                      STR_ARG(buf_str(&line)));
}

/* Output of one workload can be followed. */
static enum err check_follow(const struct cli *cli, const json_t *body, struct error *e)
{
    if (!cli_has(cli, "follow") || json_integer_value(json_object_get(body, "count")) <= 1)
        return ERR_OK;
    return err_set(
        e, ERR_INVALID,
        "--follow prints what one workload writes, and --count makes several: use --wait, then "
        "`berth logs`");
}

enum err submit_body(struct cli *cli, json_t **out, struct error *e)
{
    AUTO(json) json_t *body = json_object();
    AUTO(json) json_t *given = json_object();
    const char *file = cli_get(cli, "file");
    const char *dir = cli_get(cli, "upload");
    enum err rc = ERR_OK;
    if (file != NULL) {
        json_decref(TAKE(body));
        rc = file_read_spec(file, &body, e);
    }
    if (rc == ERR_OK)
        rc = cli_body(cli, given, e);
    if (rc != ERR_OK)
        return rc;
    (void)json_object_update(body, given);
    if (cli->argument_count > 0) {
        json_t *command = json_array();
        (void)json_object_set_new(body, "command", command);
        for (int i = 0; i < cli->argument_count; i++) {
            if (json_array_append_new(command, json_string(cli->arguments[i])) != 0)
                return err_set(e, ERR_INVALID, "argument %d is not text in UTF-8", i + 1);
        }
    }
    rc = check_follow(cli, body, e);
    if (rc == ERR_OK)
        rc = project_default(cli, body, e);
    if (rc == ERR_OK)
        rc = dependencies_resolve(cli, body, e);
    if (rc == ERR_OK && dir != NULL) {
        struct str digest = { 0 };
        const char *project = json_string_value(json_object_get(body, "project"));
        rc = upload_dir(cli, dir, str_of(project), &digest, e);
        if (rc == ERR_OK)
            (void)json_object_set_new(body, "upload", json_stringn(digest.data, digest.size));
    }
    if (rc == ERR_OK)
        *out = TAKE(body);
    return rc;
}

/* Only the id goes to stdout, so that `$(berth submit ...)` works. */
static void submitted_print(const struct cli *cli, const json_t *answer, struct str id)
{
    if (cli->format != CLI_TABLE) {
        cli_print(cli, answer, NULL, 0);
        return;
    }
    (void)printf("%.*s\n", STR_ARG(id));
    (void)fflush(stdout);
}

static enum cli_exit submitted_watch(struct cli *cli, struct str id)
{
    struct error e = { 0 };
    size_t failed = 0;
    enum err rc = ERR_OK;
    if (cli_has(cli, "follow"))
        rc = logs_follow(cli, id, true, &e);
    if (rc == ERR_OK)
        rc = wait_for_ends(cli, &id, 1, 0, &failed, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    return failed == 0 ? CLI_OK : CLI_FAILED;
}

enum cli_exit run_submit(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(json) json_t *body = NULL;
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = submit_body(cli, &body, &e);
    if (rc == ERR_OK) {
        tell_own_command(cli, body);
        rc = cli_request(cli, "POST", "/v1/workloads", body, &answer, &e);
    }
    if (rc != ERR_OK)
        return cli_refused(cli, &e);
    const json_t *array = json_object_get(answer.json, "array");
    const json_t *id = json_string_length(array) > 0 ? array : json_object_get(answer.json, "id");
    struct str text = str_copy(&cli->arena, str_of(json_string_value(id)));
    submitted_print(cli, answer.json, text);
    bool is_watched = cli_has(cli, "wait") || cli_has(cli, "follow");
    return is_watched ? submitted_watch(cli, text) : CLI_OK;
}
