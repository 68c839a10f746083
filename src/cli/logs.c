/* logs.c - output of workloads, and the change feed. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "cli/array.h"
#include "cli/guess.h"
#include "cli/safe.h"
#include "cli/special.h"
#include "os/fd.h"

enum { CHUNK = 64 * 1024, EVENT_BYTES_MAX = 4 * 1024 * 1024, NEXT_ATTEMPT_MS = 200 };

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

/* The request for the output of one workload: of a member (NULL: the first) and an attempt
 * (NULL: the latest). */
static const char *logs_target(struct cli *cli, struct str id, const char *member,
                               const char *attempt)
{
    static const char *const names[][2] = { { "stream", "stream" }, { "tail", "tail_bytes" } };
    AUTO(buf) struct buf target = { 0 };
    buf_format(&target, "/v1/workloads/%.*s/logs?follow=%s", STR_ARG(id),
               cli_has(cli, "follow") ? "true" : "false");
    if (attempt != NULL) {
        buf_add_text(&target, "&attempt=");
        cli_encode(&target, str_of(attempt));
    }
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
        rc = logs_under(cli, head,
                        logs_target(cli, one, cli_get(cli, "member"), cli_get(cli, "attempt")), e);
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
        rc = logs_under(cli, head, logs_target(cli, id, member, cli_get(cli, "attempt")), e);
    }
    return rc;
}

/* ---- attempt by attempt ---------------------------------------------------------------------- */

static enum err attempt_look(struct cli *cli, struct str id, int64_t *attempt, bool *is_over,
                             struct error *e)
{
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    const char *target = arena_format(&cli->arena, "/v1/workloads/%.*s", STR_ARG(id));
    enum err rc = cli_request(cli, "GET", target, NULL, &answer, e);
    const char *state = json_string_value(json_object_get(answer.json, "state"));
    *attempt = json_integer_value(json_object_get(answer.json, "attempt"));
    *is_over = state != NULL && cli_state_is_final(state);
    return rc;
}

/* The output of one attempt, as long as that lasts. */
static enum err attempt_copy(struct cli *cli, struct str id, int64_t attempt, struct error *e)
{
    const char *number = arena_format(&cli->arena, "%lld", (long long)attempt);
    const char *member = cli->command->run == run_logs ? cli_get(cli, "member") : NULL;
    return logs_copy(cli, logs_target(cli, id, member, number), cli_has(cli, "raw"), e);
}

enum err logs_follow(struct cli *cli, struct str id, bool is_from_first, struct error *e)
{
    int64_t shown = 0;
    for (;;) {
        int64_t latest = 0;
        bool is_over = false;
        enum err rc = wait_for_begin(cli, id, e);
        if (rc == ERR_OK)
            rc = attempt_look(cli, id, &latest, &is_over, e);
        if (rc != ERR_OK || (latest <= shown && is_over))
            return rc;
        if (latest <= shown)
            (void)poll(NULL, 0, NEXT_ATTEMPT_MS); /* it is about to stop */
        if (shown == 0 && !is_from_first)
            shown = latest - 1;
        while (shown < latest && rc == ERR_OK) {
            if (++shown > 1 && !cli->is_quiet)
                (void)fprintf(stderr, "berth: attempt %lld\n", (long long)shown);
            rc = attempt_copy(cli, id, shown, e);
        }
        if (rc != ERR_OK)
            return rc;
    }
}

static enum err logs_of_one(struct cli *cli, struct str id, struct error *e)
{
    const char *attempt = cli_get(cli, "attempt");
    if (cli_has(cli, "follow") && attempt == NULL)
        return logs_follow(cli, id, false, e);
    return logs_copy(cli, logs_target(cli, id, cli_get(cli, "member"), attempt),
                     cli_has(cli, "raw"), e);
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

/* The event after which nothing happens to the workload any more. */
static bool is_end(struct str event)
{
    AUTO(json) json_t *json = NULL;
    if (json_read(event, 0, &json, NULL) != ERR_OK)
        return false;
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *state = json_string_value(cli_field(json, "data.state"));
    return type != NULL && state != NULL && strcmp(type, "workload_changed") == 0 &&
           cli_state_is_final(state);
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
        if (rc == ERR_OK && cli_has(cli, "until-end") && is_end(buf_str(&event.data)))
            break;
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
    if (cli_has(cli, "until-end") && cli_get(cli, "workload") == NULL)
        return cli_usage(cli, "--until-end: of which --workload?");
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
