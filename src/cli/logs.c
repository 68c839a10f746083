/* logs.c - output of workloads, and the change feed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "cli/array.h"
#include "cli/guess.h"
#include "cli/safe.h"
#include "cli/special.h"
#include "os/fd.h"

enum { CHUNK = 64 * 1024, EVENT_BYTES_MAX = 4 * 1024 * 1024 };

/* Copies a streamed answer to stdout: its bytes into files and pipes, and what is safe
 * onto a terminal. */
static enum err copy_out(struct http_client_response *response, bool is_raw, struct error *e)
{
    static char chunk[CHUNK];
    AUTO(buf) struct buf safe = { 0 };
    struct safe_stream stream = { 0 };
    bool is_exact = is_raw || !cli_is_terminal();
    for (;;) {
        size_t got = 0;
        enum err rc = http_client_read(response, chunk, sizeof(chunk), &got, e);
        if (rc != ERR_OK)
            return rc;
        struct str shown = { chunk, got };
        if (!is_exact) {
            buf_clear(&safe);
            safe_add(&stream, shown, &safe);
            if (got == 0)
                safe_end(&stream, &safe);
            shown = buf_str(&safe);
        }
        rc = fd_write_full(STDOUT_FILENO, shown.data, shown.size, e);
        if (rc != ERR_OK || got == 0)
            return rc;
    }
}

static enum err problem_of(struct http_client_response *response, struct error *e)
{
    AUTO(buf) struct buf body = { 0 };
    AUTO(json) json_t *json = NULL;
    enum err rc = http_client_read_all(response, EVENT_BYTES_MAX, &body, e);
    if (rc == ERR_OK)
        rc = json_read(buf_str(&body), 0, &json, e);
    if (rc != ERR_OK)
        return err_set(e, ERR_UNAVAILABLE, "the controller answered with status %u",
                       http_client_status(response));
    return cli_problem(http_client_status(response), json, e);
}

static enum err logs_copy(struct cli *cli, const char *target, bool is_raw, struct error *e)
{
    AUTO(http_client_response) struct http_client_response *response = NULL;
    const struct http_client_request request = { .method = "GET",
                                                 .target = str_of(target),
                                                 .may_repeat = true };
    enum err rc = cli_open(cli, &request, &response, e);
    if (rc != ERR_OK)
        return rc;
    return http_client_status(response) < 400 ? copy_out(response, is_raw, e)
                                              : problem_of(response, e);
}

enum err logs_follow(struct cli *cli, struct str id, struct error *e)
{
    enum err rc = wait_for_begin(cli, id, e);
    if (rc != ERR_OK)
        return rc;
    return logs_copy(cli,
                     arena_format(&cli->arena, "/v1/workloads/%.*s/logs?follow=true", STR_ARG(id)),
                     false, e);
}

/* The request for the output of one workload, of `member` (NULL: as the options say). */
static const char *logs_target(struct cli *cli, struct str id, const char *member)
{
    static const char *const names[][2] = { { "attempt", "attempt" },
                                            { "stream", "stream" },
                                            { "tail", "tail_bytes" } };
    AUTO(buf) struct buf target = { 0 };
    buf_format(&target, "/v1/workloads/%.*s/logs?follow=%s", STR_ARG(id),
               cli_has(cli, "follow") ? "true" : "false");
    if (member != NULL) {
        buf_add_text(&target, "&member=");
        cli_encode(&target, str_of(member));
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *value = cli_get(cli, names[i][0]);
        if (value == NULL)
            continue;
        buf_format(&target, "&%s=", names[i][1]);
        cli_encode(&target, str_of(value));
    }
    return str_c(&cli->arena, buf_str(&target));
}

/* Of several outputs each has a head, as tail(1) prints it. */
static enum err logs_under(struct cli *cli, const char *head, const char *target, struct error *e)
{
    AUTO(buf) struct buf safe = { 0 };
    safe_line(str_of(head), &safe);
    (void)printf("==> %.*s <==\n", STR_ARG(buf_str(&safe)));
    (void)fflush(stdout);
    enum err rc = logs_copy(cli, target, cli_has(cli, "raw"), e);
    (void)putchar('\n');
    return rc;
}

static enum err logs_of_array(struct cli *cli, struct str id, struct error *e)
{
    AUTO(json) json_t *elements = NULL;
    if (cli_has(cli, "follow"))
        return err_set(e, ERR_INVALID,
                       "--follow: %.*s is an array; name one of its elements, such as NAME.0",
                       STR_ARG(id));
    enum err rc = array_elements(cli, id, ARRAY_WHOLE, &elements, e);
    for (size_t i = 0; i < json_array_size(elements) && rc == ERR_OK; i++) {
        const json_t *element = json_array_get(elements, i);
        struct str one = str_of(json_string_value(json_object_get(element, "id")));
        const char *name = json_string_value(json_object_get(element, "name"));
        const char *head =
            arena_format(&cli->arena, "%s %.*s", name != NULL ? name : "", STR_ARG(one));
        rc = logs_under(cli, head, logs_target(cli, one, cli_get(cli, "member")), e);
    }
    return rc;
}

static enum err logs_of_gang(struct cli *cli, struct str id, struct error *e)
{
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    if (cli_has(cli, "follow"))
        return err_set(e, ERR_INVALID, "--follow: name one member");
    const char *target = arena_format(&cli->arena, "/v1/workloads/%.*s", STR_ARG(id));
    enum err rc = cli_request(cli, "GET", target, NULL, &answer, e);
    json_int_t members = json_integer_value(json_object_get(answer.json, "members"));
    for (json_int_t rank = 0; rank < members && rc == ERR_OK; rank++) {
        const char *member = arena_format(&cli->arena, "%lld", (long long)rank);
        const char *head = arena_format(&cli->arena, "rank %s", member);
        rc = logs_under(cli, head, logs_target(cli, id, member), e);
    }
    return rc;
}

static enum err logs_of_one(struct cli *cli, struct str id, struct error *e)
{
    enum err rc = ERR_OK;
    if (cli_has(cli, "follow") && cli_get(cli, "attempt") == NULL)
        rc = wait_for_begin(cli, id, e);
    return rc == ERR_OK ? logs_copy(cli, logs_target(cli, id, cli_get(cli, "member")),
                                    cli_has(cli, "raw"), e)
                        : rc;
}

enum cli_exit run_logs(struct cli *cli)
{
    struct error e = { 0 };
    struct str id = { 0 };
    const char *member = cli_get(cli, "member");
    bool is_all = member != NULL && strcmp(member, "all") == 0;
    enum err rc = cli_workload_id(cli, cli->arguments[0], &id, &e);
    if (rc == ERR_OK && id_is_kind(ID_ARRAY, id))
        rc = is_all ? err_set(&e, ERR_INVALID, "--member all: name one element of the array")
                    : logs_of_array(cli, id, &e);
    else if (rc == ERR_OK)
        rc = is_all ? logs_of_gang(cli, id, &e) : logs_of_one(cli, id, &e);
    return rc == ERR_OK ? CLI_OK : cli_refused(cli, &e);
}

static enum err events_copy(struct cli *cli, const char *target, int64_t count, struct error *e)
{
    AUTO(http_client_response) struct http_client_response *response = NULL;
    const struct http_client_request request = { .method = "GET", .target = str_of(target) };
    AUTO(buf) struct buf safe = { 0 };
    struct http_client_event event = { 0 };
    enum err rc = cli_open(cli, &request, &response, e);
    if (rc == ERR_OK && http_client_status(response) >= 400)
        rc = problem_of(response, e);
    for (int64_t i = 0; rc == ERR_OK && (count == 0 || i < count); i++) {
        rc = http_client_read_event(response, EVENT_BYTES_MAX, &event, e);
        if (rc == ERR_OK) {
            buf_clear(&safe);
            safe_json(buf_str(&event.data), &safe);
            (void)printf("%.*s\n", STR_ARG(buf_str(&safe)));
            (void)fflush(stdout);
        }
    }
    http_client_event_done(&event);
    return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

enum cli_exit run_events(struct cli *cli)
{
    struct error e = { 0 };
    int64_t count = 0;
    AUTO(buf) struct buf target = { 0 };
    const char *after = cli_get(cli, "after");
    const char *limit = cli_get(cli, "count");
    if (limit != NULL && !str_to_i64(str_of(limit), 1, INT64_MAX, &count))
        return cli_usage(cli, "--count: \"%s\" is not a number", limit);
    enum err rc = cli_resolve_options(cli, &e);
    if (rc != ERR_OK)
        return cli_refused(cli, &e);
    const char *workload = cli_get(cli, "workload");
    buf_add_text(&target, "/v1/events");
    if (after != NULL) {
        buf_add_text(&target, "?after=");
        cli_encode(&target, str_of(after));
    }
    if (workload != NULL) {
        buf_add_text(&target, after != NULL ? "&workload=" : "?workload=");
        cli_encode(&target, str_of(workload));
    }
    rc = events_copy(cli, target.data, count, &e);
    return rc == ERR_OK ? CLI_OK : cli_fail(&e);
}
