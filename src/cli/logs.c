/* logs.c - output of workloads, and the change feed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/safe.h"
#include "cli/special.h"
#include "os/fd.h"

enum { CHUNK = 64 * 1024, EVENT_BYTES_MAX = 4 * 1024 * 1024 };

/* Copies a streamed answer to stdout: its bytes into files and pipes, and what is safe onto a terminal. */
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
    return logs_copy(cli,
                     arena_format(&cli->arena, "/v1/workloads/%.*s/logs?follow=true", STR_ARG(id)),
                     false, e);
}

enum cli_exit run_logs(struct cli *cli)
{
    static const char *const names[][2] = { { "member", "member" },
                                            { "attempt", "attempt" },
                                            { "stream", "stream" },
                                            { "tail", "tail_bytes" } };
    struct error e = { 0 };
    struct str id = { 0 };
    AUTO(buf) struct buf target = { 0 };
    enum err rc = cli_workload_id(cli, cli->arguments[0], &id, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    buf_format(&target, "/v1/workloads/%.*s/logs?follow=%s", STR_ARG(id),
               cli_has(cli, "follow") ? "true" : "false");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *value = cli_get(cli, names[i][0]);
        if (value == NULL)
            continue;
        buf_format(&target, "&%s=", names[i][1]);
        cli_encode(&target, str_of(value));
    }
    rc = logs_copy(cli, target.data, cli_has(cli, "raw"), &e);
    return rc == ERR_OK ? CLI_OK : cli_fail(&e);
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
    const char *workload = cli_get(cli, "workload");
    const char *limit = cli_get(cli, "count");
    if (limit != NULL && !str_to_i64(str_of(limit), 1, INT64_MAX, &count))
        return cli_usage(cli, "--count: \"%s\" is not a number", limit);
    buf_add_text(&target, "/v1/events");
    if (after != NULL) {
        buf_add_text(&target, "?after=");
        cli_encode(&target, str_of(after));
    }
    if (workload != NULL) {
        buf_add_text(&target, after != NULL ? "&workload=" : "?workload=");
        cli_encode(&target, str_of(workload));
    }
    enum err rc = events_copy(cli, target.data, count, &e);
    return rc == ERR_OK ? CLI_OK : cli_fail(&e);
}
