/* whatif_main.c - `berth-sim whatif`: an exported state, and what would follow in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/whatif.h"
#include "model/policy.h"
#include "os/file.h"
#include "sim/main.h"
#include "wire/snapshot.h"
#include "wire/spec_json.h"
#include "wire/yaml.h"

enum { HORIZON_S = 86400 };

static const size_t snapshot_bytes_max = (size_t)2 << 30;

struct question {
    const char *snapshot, *lose, *quota, *submit;
    int64_t horizon_s;
    bool wants_json;
};

/* A state of its own, with the scheduler's picture of it. */
struct copy {
    struct state *state;
    struct sched *sched;
};

static void copy_done(struct copy *copy)
{
    sched_free(copy->sched);
    state_free(copy->state);
}
DEFINE_CLEANUP_AT(copy, struct copy, copy_done)

static enum err copy_make(struct str bytes, struct copy *out, struct error *e)
{
    out->state = state_new();
    enum err rc = snapshot_read(bytes, out->state, e);
    if (rc == ERR_OK)
        out->sched = sched_new(out->state);
    return rc;
}

/* ---- what is supposed ----------------------------------------------------------------------- */

/* PATH:CLASS=AMOUNT */
static enum err quota_parse(const char *text, struct arena *arena, struct command *out,
                            struct error *e)
{
    struct policy_patch nothing = policy_nothing();
    struct str rest = str_of(text);
    struct str path = str_cut(&rest, ':');
    struct str class_name = str_cut(&rest, '=');
    int64_t milli = 0;
    if (path.size == 0 || class_name.size == 0 || !str_to_milli(rest, INT64_MAX / 1000, &milli))
        return err_set(e, ERR_INVALID, "--quota: \"%s\" is not PATH:CLASS=AMOUNT", text);
    struct quota_spec *row = arena_new(arena, 1, sizeof(*row));
    *row = (struct quota_spec){ class_name, milli, UNSET, UNSET, UNSET };
    out->type = CMD_CHANGE_CREATE;
    out->change = (struct change_spec){ .project = path,
                                        .quotas = { row, 1 },
                                        .duration_s = UNSET,
                                        .every = UNSET,
                                        .interval = UNSET,
                                        .priority = UNSET,
                                        .log_quota_mib = UNSET,
                                        .log_days = UNSET,
                                        .settings = nothing.settings };
    return ERR_OK;
}

/* A specification as YAML, or a manifest with one in `spec`. */
static enum err work_read(const char *path, const struct state *state, struct arena *arena,
                          struct command *out, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    AUTO(json) json_t *documents = NULL;
    enum err rc = file_read(path, SPEC_MAX_BYTES, &text, e);
    if (rc == ERR_OK)
        rc = yaml_read(buf_str(&text), &documents, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", path);
    const json_t *spec = json_array_get(documents, 0);
    const json_t *inner = json_object_get(spec, "spec");
    out->type = CMD_WORKLOAD_SUBMIT;
    rc = schema_decode(&workload_spec_schema, inner != NULL ? inner : spec, UNKNOWN_REFUSED, arena,
                       &out->submit, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", path);
    if (out->submit.image.size == 0 && state->first_image != NULL)
        out->submit.image = state->first_image->r.name; /* what it runs does not matter */
    out->spec_json = workload_spec_canonical(&out->submit, arena);
    return ERR_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void side_print(const char *name, const struct whatif_run *run)
{
    (void)printf("\"starts_%s\":%zu,\"evictions_%s\":%zu,\"waiting_%s\":%zu,", name, run->starts,
                 name, run->evictions, name, run->waiting);
}

static long long seconds_of(const struct whatif_run *run, struct mono at)
{
    return at.ns == INT64_MAX ? -1 : (long long)((at.ns - run->from.ns) / NS_PER_S);
}

/* Seconds from now on, or nothing. */
static const char *seconds_text(const struct whatif_run *run, struct mono at, char out[24])
{
    (void)snprintf(out, 24, at.ns == INT64_MAX ? "-" : "%lld", seconds_of(run, at));
    return out;
}

static void row_print(const struct question *q, const struct whatif_run *before,
                      const struct whatif_run *after, const struct whatif_pair *pair, bool is_first)
{
    char id[ID_TEXT_MAX];
    char was[24];
    char is[24];
    (void)id_text(ID_WORKLOAD, pair->any->workload, id);
    if (q->wants_json)
        (void)printf("%s{\"workload\":\"%s\",\"starts_before_s\":%lld,\"starts_after_s\":%lld,"
                     "\"evictions_before\":%zu,\"evictions_after\":%zu}",
                     is_first ? "" : ",", id, seconds_of(before, pair->before->started),
                     seconds_of(after, pair->after->started), pair->before->evictions,
                     pair->after->evictions);
    else
        (void)printf("%-30s  %-20.*s  %10s  %11s  %11zu  %12zu\n", id, STR_ARG(pair->any->name),
                     seconds_text(before, pair->before->started, was),
                     seconds_text(after, pair->after->started, is), pair->before->evictions,
                     pair->after->evictions);
}

static bool is_different(const struct whatif_pair *pair)
{
    return pair->before->started.ns != pair->after->started.ns ||
           pair->before->evictions != pair->after->evictions || pair->after->is_new;
}

static void answer_print(const struct question *q, const struct whatif_run *before,
                         const struct whatif_run *after)
{
    struct whatif_pair pair;
    size_t shown = 0;
    size_t at = 0;
    if (q->wants_json) {
        (void)fputs("{", stdout);
        side_print("before", before);
        side_print("after", after);
        (void)fputs("\"work\":[", stdout);
    } else {
        (void)printf("         starts  evictions  waiting\nas it is %6zu  %9zu  %7zu\n"
                     "then     %6zu  %9zu  %7zu\n",
                     before->starts, before->evictions, before->waiting, after->starts,
                     after->evictions, after->waiting);
        (void)printf("%-30s  %-20s  %10s  %11s  %11s  %12s\n", "WORKLOAD", "NAME", "STARTS_NOW",
                     "STARTS_THEN", "EVICTED_NOW", "EVICTED_THEN");
    }
    while (whatif_next(before, after, &at, &pair)) {
        if (is_different(&pair))
            row_print(q, before, after, &pair, shown++ == 0);
    }
    if (q->wants_json)
        (void)puts("]}");
}

/* ---- the program ----------------------------------------------------------------------------- */

static enum err suppose(const struct question *q, const struct copy *copy, struct arena *arena,
                        struct whatif_ask *ask, struct error *e)
{
    static const uint8_t key[16] = "berth what-if";
    enum err rc = ERR_OK;
    ask->commands = arena_new(arena, 2, sizeof(*ask->commands));
    if (q->lose != NULL) {
        const struct node *node = state_node_by_name(copy->state, str_of(q->lose));
        if (node == NULL)
            return err_set(e, ERR_NOT_FOUND, "--lose: there is no node \"%s\"", q->lose);
        ask->lost = node->r.id;
    }
    if (q->quota != NULL)
        rc = quota_parse(q->quota, arena, &ask->commands[ask->count++], e);
    if (rc == ERR_OK && q->submit != NULL)
        rc = work_read(q->submit, copy->state, arena, &ask->commands[ask->count++], e);
    for (size_t i = 0; i < ask->count; i++) {
        ask->commands[i].actor = (struct actor){ .role = ROLE_ADMIN, .name = STR("root") };
        ask->commands[i].new_id = id_derive(key, copy->state->sequence, i);
    }
    return rc;
}

static enum err answer(const struct question *q, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(copy) struct copy as_is = { 0 };
    AUTO(copy) struct copy then = { 0 };
    AUTO(whatif_run) struct whatif_run before = { 0 };
    AUTO(whatif_run) struct whatif_run after = { 0 };
    enum err rc = file_read(q->snapshot, snapshot_bytes_max, &bytes, e);
    if (rc == ERR_OK)
        rc = copy_make(buf_str(&bytes), &as_is, e);
    if (rc == ERR_OK)
        rc = copy_make(buf_str(&bytes), &then, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", q->snapshot);
    struct whatif_ask ask = { .horizon_s = q->horizon_s,
                              .now = as_is.state->now,
                              .wall = as_is.state->wall };
    rc = core_whatif(as_is.state, as_is.sched, &ask, &before, e);
    if (rc == ERR_OK)
        rc = suppose(q, &then, &arena, &ask, e);
    if (rc == ERR_OK)
        rc = core_whatif(then.state, then.sched, &ask, &after, e);
    if (rc == ERR_OK)
        answer_print(q, &before, &after);
    return rc;
}

int whatif_main(int argc, char **argv)
{
    struct question q = { .horizon_s = HORIZON_S };
    const struct {
        const char *name;
        const char **text;
    } options[] = { { "--snapshot", &q.snapshot },
                    { "--lose", &q.lose },
                    { "--quota", &q.quota },
                    { "--submit", &q.submit } };
    struct error e = { 0 };
    for (int i = 0; i < argc; i++) {
        bool is_known = strcmp(argv[i], "--json") == 0;
        bool has_value = i + 1 < argc;
        q.wants_json |= is_known;
        for (size_t k = 0; k < COUNT_OF(options) && !is_known && has_value; k++) {
            if (strcmp(argv[i], options[k].name) != 0)
                continue;
            *options[k].text = argv[++i];
            is_known = true;
        }
        if (!is_known && strcmp(argv[i], "--horizon") == 0 && has_value) {
            if (!str_to_seconds(str_of(argv[++i]), INT32_MAX, &q.horizon_s) || q.horizon_s == 0)
                return wrong_use("--horizon: wanted is a time such as 90, 5m or 1h30m");
            is_known = true;
        }
        if (!is_known)
            return wrong_use("whatif: an option is not known, or has no value");
    }
    if (q.snapshot == NULL)
        return wrong_use("whatif: --snapshot FILE is missing");
    if (q.lose == NULL && q.quota == NULL && q.submit == NULL)
        return wrong_use("whatif: nothing is supposed: give --submit, --quota or --lose");
    if (answer(&q, &e) != ERR_OK) {
        (void)fprintf(stderr, "berth-sim: %s\n", e.text);
        return EXIT_WRONG;
    }
    return EXIT_HELD;
}
