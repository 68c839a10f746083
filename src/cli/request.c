/* request.c - the connection to the controller, requests and their errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/full.h"
#include "cli/special.h"
#include "model/cause.h"
#include "os/file.h"
#include "os/random.h"

enum { ANSWER_MAX = 256 * 1024 * 1024, CA_MAX = 256 * 1024 };

void cli_answer_done(struct cli_answer *answer)
{
    buf_done(&answer->body);
    json_decref(answer->json);
    answer->json = NULL;
}

void cli_encode(struct buf *out, struct str text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c != '\0' && strchr(plain, c) != NULL)
            buf_add_char(out, (char)c);
        else
            buf_format(out, "%%%02X", c);
    }
}

void cli_encode_part(struct buf *out, struct str text)
{
    struct str rest = text;
    while (rest.size > 0) {
        cli_encode(out, str_cut(&rest, '/'));
        if (rest.size > 0)
            buf_add_char(out, ':');
    }
}

/* "https://host", "https://host:port", "https://[v6]:port" */
static enum err url_split(struct cli *cli, struct str rest, struct http_client_options *options,
                          struct error *e)
{
    struct str host = rest;
    int64_t port = 7878;
    if (rest.size > 0 && rest.data[rest.size - 1] == '/')
        host.size = --rest.size;
    if (rest.size > 0 && rest.data[0] == '[') {
        const char *end = memchr(rest.data, ']', rest.size);
        if (end == NULL)
            return err_set(e, ERR_INVALID, "server: a bracket is missing");
        host = (struct str){ rest.data + 1, (size_t)(end - rest.data) - 1 };
        rest = (struct str){ end + 1, rest.size - (size_t)(end - rest.data) - 1 };
    } else {
        const char *colon = memchr(rest.data, ':', rest.size);
        if (colon != NULL)
            host.size = (size_t)(colon - rest.data);
        rest = (struct str){ rest.data + host.size, rest.size - host.size };
    }
    if (host.size == 0 ||
        (rest.size > 0 &&
         !str_to_i64((struct str){ rest.data + 1, rest.size - 1 }, 1, 65535, &port)))
        return err_set(e, ERR_INVALID, "server: \"%s\" is not https://HOST:PORT", cli->server);
    options->host = str_c(&cli->arena, host);
    options->port = (uint16_t)port;
    return ERR_OK;
}

enum err cli_server_split(struct cli *cli, struct http_client_options *out, struct error *e)
{
    static const struct str https_prefix = { "https://", 8 };
    struct str server = str_of(cli->server);
    if (!str_starts(server, https_prefix))
        return err_set(e, ERR_INVALID, "server: \"%s\" is neither https://HOST:PORT nor unix:PATH",
                       cli->server);
    if (cli->ca_file == NULL)
        return err_set(e, ERR_INVALID,
                       "the controller's authority is needed for %s: --ca FILE or BERTH_CA (its "
                       "operator has it as ca.pem)",
                       cli->server);
    return url_split(
        cli, (struct str){ server.data + https_prefix.size, server.size - https_prefix.size }, out,
        e);
}

static enum err cli_connect(struct cli *cli, struct error *e)
{
    static const struct str unix_prefix = { "unix:", 5 };
    AUTO(buf) struct buf ca = { 0 };
    struct http_client_options options = { 0 };
    if (cli->client != NULL)
        return ERR_OK;
    if (str_starts(str_of(cli->server), unix_prefix)) {
        options.unix_path = cli->server + unix_prefix.size;
        return http_client_new(&options, &cli->client, e);
    }
    enum err rc = cli_server_split(cli, &options, e);
    if (rc == ERR_OK)
        rc = file_read(cli->ca_file, CA_MAX, &ca, e);
    if (rc != ERR_OK)
        return rc;
    options.ca_pem = buf_str(&ca);
    options.tls = cli_transport();
    return http_client_new(&options, &cli->client, e);
}

/* Names the server once, and what to look at where nothing listens. */
static enum err cli_away(const struct cli *cli, enum err rc, struct error *e)
{
    if (e == NULL)
        return rc;
    struct error inner = *e;
    struct str text = str_of(inner.text);
    struct str path = str_of(cli->server + MIN_OF(strlen("unix:"), strlen(cli->server)));
    if (path.size > 0 && str_starts(text, path)) /* the client has named the socket */
        text = (struct str){ text.data + path.size, text.size - path.size };
    while (text.size > 0 && (text.data[0] == ':' || text.data[0] == ' '))
        text = (struct str){ text.data + 1, text.size - 1 };
    if (!str_starts(text, STR("connect:")))
        return err_set(e, rc, "%s: %.*s", cli->server, STR_ARG(text));
    return err_set(e, ERR_UNAVAILABLE,
                   "%s: %.*s; is berthd running there? --server or BERTH_SERVER names another",
                   cli->server, STR_ARG(text));
}

enum err cli_open(struct cli *cli, const struct http_client_request *request,
                  struct http_client_response **out, struct error *e)
{
    enum err rc = cli_connect(cli, e);
    if (rc != ERR_OK)
        return rc;
    struct http_client_field fields[8];
    struct http_client_request full = *request;
    AUTO(buf) struct buf bearer = { 0 };
    if (request->field_count + 1 > COUNT_OF(fields))
        return err_set(e, ERR_LIMIT, "too many header fields");
    if (request->field_count > 0)
        memcpy(fields, request->fields, request->field_count * sizeof(fields[0]));
    if (cli->token.size > 0) {
        buf_add_text(&bearer, "Bearer ");
        buf_add_str(&bearer, buf_str(&cli->token));
        fields[full.field_count++] =
            (struct http_client_field){ STR("authorization"), buf_str(&bearer) };
    }
    full.fields = fields;
    rc = http_client_send(cli->client, &full, out, e);
    if (bearer.size > 0)
        explicit_bzero(bearer.data, bearer.size);
    return rc == ERR_OK ? rc : cli_away(cli, rc, e);
}

static enum err code_of(unsigned status)
{
    switch (status) {
    case 401:
        return ERR_UNAUTHENTICATED;
    case 403:
        return ERR_DENIED;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
    case 412:
        return ERR_CONFLICT;
    case 413:
    case 507:
        return ERR_LIMIT;
    case 429:
        return ERR_RATE;
    case 500:
    case 502:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INVALID;
    }
}

enum err cli_problem(unsigned status, const json_t *problem, struct error *e)
{
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *field = json_string_value(json_object_get(problem, "field"));
    const char *name = json_string_value(json_object_get(problem, "cause"));
    enum cause cause = CAUSE_NONE;
    if (name != NULL)
        (void)cause_parse(str_of(name), &cause); /* one of a newer server is told all the same */
    enum err code = code_of(status);
    if (detail == NULL)
        return err_set(e, code, "the controller answered with status %u", status);
    /* "mounts.volume" is named by a detail that begins with "mounts" as well. */
    bool is_prefixed = field != NULL && strncmp(detail, field, strcspn(field, ".[")) == 0;
    (void)err_cause(e, code, cause, "%s%s%s%s%s%s", field != NULL && !is_prefixed ? field : "",
                    field != NULL && !is_prefixed ? ": " : "", detail, name != NULL ? " (" : "",
                    name != NULL ? name : "", name != NULL ? ")" : "");
    return code;
}

/* The option of the command that fills the field: given, or such as could have been given. */
static const struct cli_option *option_of_field(const struct cli *cli, struct str stem)
{
    const struct cli_command *command = cli->command;
    for (size_t i = 0; command != NULL && i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        const char *field = option->field != NULL ? option->field : option->name;
        bool is_it = option->place != OPTION_LOCAL && str_is(stem, field);
        /* A file names its fields as the API does. */
        if (is_it && (cli_has(cli, option->name) || !cli_has(cli, "file")))
            return option;
    }
    return NULL;
}

/* Bounds of amounts come in thousandths; who typed "--gpus 0.5" did not. */
static void in_wholes(const char *text, struct buf *out)
{
    while (*text != '\0') {
        size_t digits = strspn(text, "0123456789");
        size_t step = MAX_OF(digits, (size_t)1);
        int64_t milli = 0;
        char amount[MILLI_TEXT_MAX];
        if (digits > 0 && str_to_i64((struct str){ text, digits }, 0, INT64_MAX, &milli))
            buf_add_text(out, milli_text(milli, amount));
        else
            buf_add(out, text, step);
        text += step;
    }
}

/* "gpu_milli: ..." and "depends_on[0].when: ..." as "--gpus: ..." and "--after: ...". */
static void name_option(const struct cli *cli, const json_t *problem, struct error *e)
{
    const char *field = json_string_value(json_object_get(problem, "field"));
    if (e == NULL || field == NULL)
        return;
    struct str stem = { field, strcspn(field, ".[") };
    const struct cli_option *option = option_of_field(cli, stem);
    struct error before = *e;
    if (option == NULL || !str_starts(str_of(before.text), stem))
        return;
    const char *rest = before.text + stem.size;
    rest += rest[0] == '[' || rest[0] == '.' ? strcspn(rest, ": ") : 0;
    AUTO(buf) struct buf wholes = { 0 };
    if (option->kind == OPTION_MILLI && strstr(rest, "..") != NULL) {
        in_wholes(rest, &wholes);
        rest = wholes.data;
    }
    (void)err_cause(e, before.code, before.cause, "--%s%s", option->name, rest);
}

enum err cli_request(struct cli *cli, const char *method, const char *target, const json_t *body,
                     struct cli_answer *answer, struct error *e)
{
    char key[ID_TEXT_MAX];
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct http_client_field fields[2];
    struct http_client_request request = {
        .method = method,
        .target = str_of(target),
        .fields = fields,
        .body = str_of(text),
        .may_repeat = true, /* a key makes a repeated POST harmless */
    };
    if (text != NULL)
        fields[request.field_count++] =
            (struct http_client_field){ STR("content-type"), STR("application/json") };
    if (strcmp(method, "POST") == 0)
        fields[request.field_count++] =
            (struct http_client_field){ STR("idempotency-key"),
                                        str_of(id_text(ID_REQUEST, random_id(), key)) };
    AUTO(http_client_response) struct http_client_response *response = NULL;
    enum err rc = cli_open(cli, &request, &response, e);
    if (rc == ERR_OK)
        rc = http_client_read_all(response, ANSWER_MAX, &answer->body, e);
    free(text);
    if (rc != ERR_OK)
        return rc;
    answer->status = http_client_status(response);
    struct str type = http_client_field(response, "content-type");
    struct str etag = http_client_field(response, "etag");
    (void)snprintf(answer->etag, sizeof(answer->etag), "%.*s", STR_ARG(etag));
    bool is_json = type.size > 0 && memmem(type.data, type.size, "json", 4) != NULL;
    if (is_json && answer->body.size > 0)
        rc = json_read(buf_str(&answer->body), ANSWER_MAX, &answer->json, e);
    if (rc != ERR_OK)
        return err_wrap(e, ERR_CORRUPT, "the controller's answer cannot be read");
    if (answer->status < 400)
        return ERR_OK;
    rc = cli_problem(answer->status, answer->json, e);
    name_option(cli, answer->json, e);
    return rc;
}

enum err cli_list(struct cli *cli, const char *target, json_t **out, struct error *e)
{
    return cli_list_some(cli, target, SIZE_MAX, out, e);
}

enum err cli_list_some(struct cli *cli, const char *target, size_t max, json_t **out,
                       struct error *e)
{
    AUTO(json) json_t *all = json_array();
    AUTO(buf) struct buf url = { 0 };
    buf_add_text(&url, target);
    while (json_array_size(all) < max) {
        AUTO(cli_answer) struct cli_answer answer = { 0 };
        enum err rc = cli_request(cli, "GET", url.data, NULL, &answer, e);
        if (rc != ERR_OK)
            return rc;
        (void)json_array_extend(all, json_object_get(answer.json, "items"));
        const char *next = json_string_value(json_object_get(answer.json, "next"));
        if (next == NULL || next[0] == '\0')
            break;
        buf_clear(&url);
        buf_add_text(&url, target);
        buf_add_text(&url, strchr(target, '?') != NULL ? "&after=" : "?after=");
        cli_encode(&url, str_of(next));
    }
    while (json_array_size(all) > max)
        (void)json_array_remove(all, json_array_size(all) - 1);
    *out = TAKE(all);
    return ERR_OK;
}

/* The id under which `item` answers to the name: its own, or that of its array. NULL: not
 * its name. */
static const char *id_by_name(const json_t *item, const char *word)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *array = json_string_value(json_object_get(item, "array"));
    size_t size = strlen(word);
    if (name == NULL || strncmp(name, word, size) != 0)
        return NULL;
    if (name[size] == '\0')
        return json_string_value(json_object_get(item, "id"));
    return array != NULL && name[size] == '.' && strchr(name + size + 1, '.') == NULL ? array
                                                                                      : NULL;
}

/* An id stays. A name is looked up among the workloads in memory: the one that has not ended, else
 * the newest. Of two that have not ended neither is meant more than the other. */
enum err cli_workload_id(struct cli *cli, const char *word, struct str *out, struct error *e)
{
    struct str text = str_of(word);
    if (id_is_kind(ID_WORKLOAD, text) || id_is_kind(ID_ARRAY, text)) {
        *out = text;
        return ERR_OK;
    }
    AUTO(json) json_t *list = NULL;
    enum err rc = cli_list(cli, "/v1/workloads?limit=1000", &list, e);
    if (rc != ERR_OK)
        return rc;
    const char *found = NULL;
    const char *live = NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *id = id_by_name(item, word);
        if (id == NULL)
            continue;
        if (found == NULL)
            found = id;
        const char *state = json_string_value(json_object_get(item, "state"));
        if (state == NULL || cli_state_is_final(state))
            continue;
        if (live != NULL && strcmp(live, id) != 0)
            return err_set(
                e, ERR_CONFLICT,
                "more than one workload that has not ended has the name %s (%s, %s); use an id",
                word, live, id);
        live = id;
    }
    if (found == NULL)
        return err_set(e, ERR_NOT_FOUND, "there is no workload \"%s\"", word);
    *out = str_copy(&cli->arena, str_of(live != NULL ? live : found));
    return ERR_OK;
}

enum err cli_resolve_options(struct cli *cli, struct error *e)
{
    for (size_t i = 0; i < cli->value_count; i++) {
        struct cli_value *value = &cli->values[i];
        struct str id = { 0 };
        if (value->option->kind != OPTION_WORKLOAD)
            continue;
        enum err rc = cli_workload_id(cli, value->text, &id, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "--%s", value->option->name);
        value->text = str_c(&cli->arena, id);
    }
    return ERR_OK;
}
