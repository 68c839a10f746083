/*
 * wait.c - until workloads begin, run, or end: asked for again and again, less often the longer it
 * takes. Who waits is told on standard error why, and when that changes.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "cli/array.h"
#include "cli/guess.h"
#include "cli/safe.h"
#include "cli/special.h"
#include "model/cause.h"
#include "os/clock.h"

enum {
    FIRST_PAUSE_MS = 20,
    LAST_PAUSE_MS = 1000,
    PATIENCE_MS = 400, /* what starts within this is not said to wait */
    TELL_MAX = 8,      /* of more at once only the ends are told */
    RUNNING_WAIT_S = 30
};

struct waited {
    struct str id;
    bool is_over;
    bool is_good;
    bool has_begun;  /* runs, or has ended: of an array, all of it */
    const char *why; /* of one that did not succeed; NULL: an array */
    const char *state;
    const char *told; /* the last that was said about it; NULL: nothing yet */
};

/* The pauses between looks, longer and longer. */
struct pauses {
    struct mono begun;
    int next_ms;
};

enum workload_state cli_state(const char *name)
{
    unsigned state = WL_NONE;
    return enum_parse(&workload_state_names, str_of(name), &state) ? (enum workload_state)state
                                                                   : WL_NONE;
}

bool cli_state_is_final(const char *name)
{
    return workload_state_is_final(cli_state(name));
}

static bool is_waiting(const char *name)
{
    enum workload_state state = cli_state(name);
    return state == WL_HELD || state == WL_QUEUED || state == WL_PROVISIONING;
}

static struct pauses pauses_begin(void)
{
    return (struct pauses){ clock_monotonic(), FIRST_PAUSE_MS };
}

static void pauses_take(struct pauses *pauses)
{
    (void)poll(NULL, 0, pauses->next_ms);
    pauses->next_ms = MIN_OF(pauses->next_ms * 3 / 2, (int)LAST_PAUSE_MS);
}

/* ---- what is told meanwhile ------------------------------------------------------------------ */

/* "queued (waiting_for_capacity): needs 4 ...", harmless on a terminal. */
static const char *state_text(struct cli *cli, const json_t *view, const char *state)
{
    AUTO(buf) struct buf line = { 0 };
    AUTO(buf) struct buf safe = { 0 };
    const char *cause = json_string_value(json_object_get(view, "cause"));
    enum cause known = CAUSE_NONE;
    bool is_usual = cause_parse(str_of(cause), &known) && cause_is_usual(known);
    const char *detail = json_string_value(json_object_get(view, "detail"));
    buf_add_text(&line, state);
    if (cause != NULL && cause[0] != '\0' && !is_usual && strcmp(cause, state) != 0)
        buf_format(&line, " (%s)", cause);
    if (detail != NULL && detail[0] != '\0')
        buf_format(&line, ": %s", detail);
    safe_line(buf_str(&line), &safe);
    return arena_format(&cli->arena, "%.*s", STR_ARG(buf_str(&safe)));
}

/* Numbers behind a cause change all the time: they are no news. */
static bool is_news(const char *told, const char *text)
{
    size_t size = strcspn(text, ":");
    return told == NULL || strcspn(told, ":") != size || strncmp(told, text, size) != 0;
}

static void tell(const struct cli *cli, struct waited *waited, const char *text)
{
    if (text == NULL || cli->is_quiet || !is_news(waited->told, text))
        return;
    (void)fprintf(stderr, "berth: %.*s is %s\n", STR_ARG(waited->id), text);
    waited->told = text;
}

/* NULL: nothing that somebody who waits wants to know. Only who has been told that it
 * waits hears more. */
static const char *news_of(struct cli *cli, const struct waited *waited, const json_t *view)
{
    const char *state = waited->state;
    if (is_waiting(state) || strcmp(state, "stopping") == 0)
        return state_text(cli, view, state);
    if (waited->told == NULL || cli_state_is_final(state))
        return NULL;
    const char *node = json_string_value(json_array_get(json_object_get(view, "nodes"), 0));
    AUTO(buf) struct buf safe = { 0 };
    safe_line(str_of(node), &safe);
    return arena_format(&cli->arena, "%s%s%.*s", state, safe.size > 0 ? " on " : "",
                        STR_ARG(buf_str(&safe)));
}

/* ---- looking --------------------------------------------------------------------------------- */

struct elements {
    size_t count, waiting;
    const json_t *first_waiting; /* borrowed from the list */
};

static void element_add(struct waited *waited, struct elements *elements, const json_t *item)
{
    const char *state = json_string_value(json_object_get(item, "state"));
    elements->count++;
    waited->is_over = waited->is_over && state != NULL && cli_state_is_final(state);
    waited->is_good = waited->is_good && state != NULL && strcmp(state, "succeeded") == 0;
    if (state == NULL || !is_waiting(state))
        return;
    if (elements->waiting++ == 0)
        elements->first_waiting = item;
}

static const char *elements_text(struct cli *cli, const struct waited *before,
                                 const struct elements *elements)
{
    const json_t *first = elements->first_waiting;
    if (first == NULL)
        return before->told != NULL ? "no longer waiting: every element has started" : NULL;
    const char *state = json_string_value(json_object_get(first, "state"));
    return arena_format(&cli->arena, "%s; %zu of %zu elements wait", state_text(cli, first, state),
                        elements->waiting, elements->count);
}

/* What the elements of an array tell, those in memory or all. */
static enum err look_at_elements(struct cli *cli, enum array_depth depth, struct waited *waited,
                                 const char **news, struct error *e)
{
    AUTO(json) json_t *items = NULL;
    struct waited found = { .id = waited->id,
                            .is_over = true,
                            .is_good = true,
                            .has_begun = true,
                            .state = "",
                            .told = waited->told };
    enum err rc = array_elements(cli, waited->id, depth, &items, e);
    if (rc != ERR_OK)
        return rc;
    struct elements elements = { 0 };
    for (size_t i = 0; i < json_array_size(items); i++)
        element_add(&found, &elements, json_array_get(items, i));
    found.has_begun = elements.waiting == 0;
    *news = elements_text(cli, &found, &elements);
    *waited = found;
    return ERR_OK;
}

/* All elements of an array are over, and whether all of them succeeded. As long as some in memory
 * are not, the store has nothing to say. */
static enum err look_at_array(struct cli *cli, struct waited *waited, const char **news,
                              struct error *e)
{
    struct waited found = *waited;
    enum err rc = look_at_elements(cli, ARRAY_IN_MEMORY, &found, news, e);
    if (rc == ERR_OK && found.is_over)
        rc = look_at_elements(cli, ARRAY_WHOLE, &found, news, e);
    if (rc == ERR_OK)
        *waited = found;
    return rc;
}

static void tell_failures(const struct cli *cli, const struct waited *waited, size_t count)
{
    for (size_t i = 0; i < count && !cli->is_quiet; i++) {
        if (!waited[i].is_good)
            (void)fprintf(stderr, "berth: %.*s: %s\n", STR_ARG(waited[i].id),
                          waited[i].why != NULL ? waited[i].why : "not all of it succeeded");
    }
}

/* *news: what may be told of it, or NULL. */
static enum err look_at(struct cli *cli, struct waited *waited, const char **news, struct error *e)
{
    if (id_is_kind(ID_ARRAY, waited->id))
        return look_at_array(cli, waited, news, e);
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    const char *target = arena_format(&cli->arena, "/v1/workloads/%.*s", STR_ARG(waited->id));
    enum err rc = cli_request(cli, "GET", target, NULL, &answer, e);
    if (rc != ERR_OK)
        return rc;
    struct str state = str_of(json_string_value(json_object_get(answer.json, "state")));
    waited->state = str_c(&cli->arena, state);
    waited->is_over = cli_state_is_final(waited->state);
    waited->is_good = str_is(state, "succeeded");
    waited->has_begun = waited->is_over || str_is(state, "running") || str_is(state, "stopping");
    if (waited->is_over && !waited->is_good)
        waited->why = state_text(cli, answer.json, waited->state);
    *news = news_of(cli, waited, answer.json);
    return ERR_OK;
}

/* A controller that is away for a moment comes back; the work goes on meanwhile. */
static bool is_passing(enum err rc)
{
    return rc == ERR_UNAVAILABLE || rc == ERR_IO || rc == ERR_RATE;
}

/* One look, and what is new is told once it is known not to pass at once. */
static enum err look_and_tell(struct cli *cli, struct waited *waited, const struct pauses *pauses,
                              struct error *e)
{
    const char *news = NULL;
    enum err rc = look_at(cli, waited, &news, e);
    if (rc != ERR_OK)
        return is_passing(rc) ? ERR_OK : rc;
    struct mono patient_until = { pauses->begun.ns + PATIENCE_MS * NS_PER_MS };
    if (waited->told != NULL || mono_before(patient_until, clock_monotonic()))
        tell(cli, waited, news);
    return ERR_OK;
}

enum err wait_for_ends(struct cli *cli, const struct str *ids, size_t count, int64_t deadline_s,
                       size_t *failed, struct error *e)
{
    struct waited *waited = arena_new(&cli->arena, count, sizeof(*waited));
    struct mono deadline = mono_add_s(clock_monotonic(), deadline_s);
    struct pauses pauses = pauses_begin();
    for (size_t i = 0; i < count; i++)
        waited[i].id = ids[i];
    for (;;) {
        size_t left = 0;
        for (size_t i = 0; i < count; i++) {
            const char *news = NULL;
            if (waited[i].is_over)
                continue;
            enum err rc = count <= TELL_MAX ? look_and_tell(cli, &waited[i], &pauses, e)
                                            : look_at(cli, &waited[i], &news, e);
            if (rc != ERR_OK && !is_passing(rc))
                return rc;
            left += !waited[i].is_over;
        }
        if (left == 0)
            break;
        if (deadline_s > 0 && mono_before(deadline, clock_monotonic()))
            return err_set(e, ERR_UNAVAILABLE, "%zu of %zu have not ended in time", left, count);
        pauses_take(&pauses);
    }
    *failed = 0;
    for (size_t i = 0; i < count; i++)
        *failed += !waited[i].is_good;
    tell_failures(cli, waited, count);
    return ERR_OK;
}

enum err wait_for_begin(struct cli *cli, struct str id, struct error *e)
{
    struct waited waited = { .id = id };
    struct pauses pauses = pauses_begin();
    for (;;) {
        enum err rc = look_and_tell(cli, &waited, &pauses, e);
        if (rc != ERR_OK || waited.has_begun)
            return rc;
        pauses_take(&pauses);
    }
}

/* What it is in now, and what to do about that. */
static enum err not_running(const struct waited *waited, const char *text, struct error *e)
{
    const char *advice = waited->told != NULL ? "`berth explain` says why; try again when it runs"
                                              : "files and commands go into running work only";
    if (strcmp(waited->state, "held") == 0)
        advice = "`berth release` lets it start";
    return err_set(e, ERR_CONFLICT, "%.*s does not run: %s; %s", STR_ARG(waited->id),
                   text != NULL ? text : waited->state, advice);
}

enum err wait_for_running(struct cli *cli, struct str id, struct error *e)
{
    struct waited waited = { .id = id };
    struct pauses pauses = pauses_begin();
    struct mono deadline = mono_add_s(pauses.begun, RUNNING_WAIT_S);
    for (;;) {
        const char *news = NULL;
        enum err rc = look_at(cli, &waited, &news, e);
        if (rc != ERR_OK)
            return rc;
        if (strcmp(waited.state, "running") == 0)
            return ERR_OK;
        bool may_come = !waited.is_over && strcmp(waited.state, "held") != 0 &&
                        strcmp(waited.state, "stopping") != 0;
        if (!may_come || mono_before(deadline, clock_monotonic()))
            return not_running(&waited, waited.why != NULL ? waited.why : news, e);
        if (waited.told == NULL && !cli->is_quiet &&
            mono_before((struct mono){ pauses.begun.ns + PATIENCE_MS * NS_PER_MS },
                        clock_monotonic())) {
            waited.told = waited.state;
            (void)fprintf(stderr, "berth: %.*s is %s; it is waited for, at most %d s\n",
                          STR_ARG(id), news != NULL ? news : waited.state, (int)RUNNING_WAIT_S);
        }
        pauses_take(&pauses);
    }
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
        return cli_refused(cli, &e);
    if (failed > 0 && !cli->is_quiet)
        (void)fprintf(stderr, "berth: %zu of %zu did not succeed\n", failed, count);
    return failed == 0 ? CLI_OK : CLI_FAILED;
}
