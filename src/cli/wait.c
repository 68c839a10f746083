/* wait.c - until workloads end: asked for again and again, less often the longer it takes. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "cli/safe.h"
#include "cli/special.h"
#include "os/clock.h"

enum { FIRST_PAUSE_MS = 20, LAST_PAUSE_MS = 1000 };

struct waited {
    struct str id;
    bool is_over;
    bool is_good;
    const char *why; /* of one that did not succeed; NULL: an array */
};

bool cli_state_is_final(const char *state)
{
    static const char *const finals[] = { "succeeded", "failed", "cancelled", "timed_out" };
    for (size_t i = 0; i < COUNT_OF(finals); i++) {
        if (strcmp(state, finals[i]) == 0)
            return true;
    }
    return false;
}

/* What a list of an array's elements tells; `query` says which list. */
static enum err look_at_elements(struct cli *cli, const char *query, struct waited *waited,
                                 size_t *count, struct error *e)
{
    AUTO(json) json_t *items = NULL;
    const char *target = arena_format(&cli->arena, "/v1/workloads?limit=1000&array=%.*s%s",
                                      STR_ARG(waited->id), query);
    enum err rc = cli_list(cli, target, &items, e);
    if (rc != ERR_OK)
        return rc;
    *count += json_array_size(items);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const char *state = json_string_value(json_object_get(json_array_get(items, i), "state"));
        waited->is_over = waited->is_over && state != NULL && cli_state_is_final(state);
        waited->is_good = waited->is_good && state != NULL && strcmp(state, "succeeded") == 0;
    }
    return ERR_OK;
}

/* All elements of an array are over, and whether all of them succeeded. Those that ended a while ago
 * have left the controller's memory and are only in its store. Memory is asked first: what leaves it
 * in between is then seen in the store. */
static enum err look_at_array(struct cli *cli, struct waited *waited, struct error *e)
{
    struct waited found = { .id = waited->id, .is_over = true, .is_good = true };
    size_t count = 0;
    enum err rc = look_at_elements(cli, "", &found, &count, e);
    if (rc == ERR_OK && found.is_over)
        rc = look_at_elements(cli, "&history=true", &found, &count, e);
    if (rc != ERR_OK)
        return rc;
    if (count == 0)
        return err_set(e, ERR_NOT_FOUND, "no such array: %.*s", STR_ARG(waited->id));
    *waited = found;
    return ERR_OK;
}

/* "failed (exited): exit code 3", harmless on a terminal. */
static const char *why_of(struct cli *cli, const json_t *view, const char *state)
{
    AUTO(buf) struct buf line = { 0 };
    AUTO(buf) struct buf safe = { 0 };
    const char *cause = json_string_value(json_object_get(view, "cause"));
    const char *detail = json_string_value(json_object_get(view, "detail"));
    buf_add_text(&line, state);
    if (cause != NULL && cause[0] != '\0')
        buf_format(&line, " (%s)", cause);
    if (detail != NULL && detail[0] != '\0')
        buf_format(&line, ": %s", detail);
    safe_line(buf_str(&line), &safe);
    return arena_format(&cli->arena, "%.*s", STR_ARG(buf_str(&safe)));
}

static void tell_failures(const struct cli *cli, const struct waited *waited, size_t count)
{
    for (size_t i = 0; i < count && !cli->is_quiet; i++) {
        if (!waited[i].is_good)
            (void)fprintf(stderr, "berth: %.*s: %s\n", STR_ARG(waited[i].id),
                          waited[i].why != NULL ? waited[i].why : "not all of it succeeded");
    }
}

static enum err look_at(struct cli *cli, struct waited *waited, struct error *e)
{
    if (id_is_kind(ID_ARRAY, waited->id))
        return look_at_array(cli, waited, e);
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    const char *target = arena_format(&cli->arena, "/v1/workloads/%.*s", STR_ARG(waited->id));
    enum err rc = cli_request(cli, "GET", target, NULL, &answer, e);
    if (rc != ERR_OK)
        return rc;
    const char *state = json_string_value(json_object_get(answer.json, "state"));
    waited->is_over = state != NULL && cli_state_is_final(state);
    waited->is_good = state != NULL && strcmp(state, "succeeded") == 0;
    if (waited->is_over && !waited->is_good)
        waited->why = why_of(cli, answer.json, state);
    return ERR_OK;
}

enum err wait_for_ends(struct cli *cli, const struct str *ids, size_t count, int64_t deadline_s,
                       size_t *failed, struct error *e)
{
    struct waited *waited = arena_new(&cli->arena, count, sizeof(*waited));
    struct mono deadline = mono_add_s(clock_monotonic(), deadline_s);
    int pause_ms = FIRST_PAUSE_MS;
    for (size_t i = 0; i < count; i++)
        waited[i].id = ids[i];
    for (;;) {
        size_t left = 0;
        for (size_t i = 0; i < count; i++) {
            if (waited[i].is_over)
                continue;
            enum err rc = look_at(cli, &waited[i], e);
            /* A controller that is away for a moment comes back; the work goes on meanwhile. */
            if (rc != ERR_OK && rc != ERR_UNAVAILABLE && rc != ERR_IO && rc != ERR_RATE)
                return rc;
            left += !waited[i].is_over;
        }
        if (left == 0)
            break;
        if (deadline_s > 0 && mono_before(deadline, clock_monotonic()))
            return err_set(e, ERR_UNAVAILABLE, "%zu of %zu have not ended in time", left, count);
        (void)poll(NULL, 0, pause_ms);
        pause_ms = MIN_OF(pause_ms * 3 / 2, (int)LAST_PAUSE_MS);
    }
    *failed = 0;
    for (size_t i = 0; i < count; i++)
        *failed += !waited[i].is_good;
    tell_failures(cli, waited, count);
    return ERR_OK;
}

enum cli_exit run_wait(struct cli *cli)
{
    struct error e = { 0 };
    int64_t deadline_s = 0;
    size_t failed = 0;
    size_t count = (size_t)cli->argument_count;
    const char *timeout = cli_get(cli, "timeout");
    struct str *ids = arena_new(&cli->arena, count, sizeof(*ids));
    if (timeout != NULL && !str_to_seconds(str_of(timeout), INT32_MAX, &deadline_s))
        return cli_usage(cli, "--timeout: \"%s\" is not a time such as 90 or 5m", timeout);
    enum err rc = ERR_OK;
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = cli_workload_id(cli, cli->arguments[i], &ids[i], &e);
    if (rc == ERR_OK)
        rc = wait_for_ends(cli, ids, count, deadline_s, &failed, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    if (failed > 0 && !cli->is_quiet)
        (void)fprintf(stderr, "berth: %zu of %zu did not succeed\n", failed, count);
    return failed == 0 ? CLI_OK : CLI_FAILED;
}
