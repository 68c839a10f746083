/* How much memory work takes, and that all of it comes back. Figures are printed. */
#include <string.h>

#include "unit/model/world.h"
#include "unit/test.h"

enum { QUEUED = 10000, SPEC_BYTES = 300, BYTES_MOST = 1024, FORGOTTEN = 100000, ALIVE = 50 };

static const char spec[SPEC_BYTES]; /* zeros are as long as any other bytes */

struct line {
    struct state *state;
    struct id project;
    uint64_t next;
};

static void line_init(struct line *line)
{
    *line = (struct line){ .state = state_new(), .project = { 1, 1 } };
    struct event event = { .type = EV_PROJECT_SET, .sequence = 1 };
    event.project_set =
        (struct project_record){ .id = line->project, .name = STR("amber"), .path = STR("amber") };
    evolve(line->state, &event);
}

static void apply(struct line *line, struct event event)
{
    event.sequence = line->state->sequence + 1;
    event.at.ns = line->state->now.ns + 1;
    evolve(line->state, &event);
}

static struct id submit(struct line *line)
{
    struct event event = { .type = EV_WORKLOAD_SUBMITTED };
    struct workload_record *r = &event.workload_submitted;
    uint64_t key[2] = { line->next++, 0 };
    r->id = id_derive((const uint8_t *)key, line->next, 0);
    r->project = line->project;
    r->name = STR("train-resnet");
    r->user = STR("ada");
    r->spec_json = (struct str){ spec, sizeof(spec) };
    r->state = WL_QUEUED;
    apply(line, event);
    return event.workload_submitted.id;
}

static void test_queued(void **state)
{
    (void)state;
    struct line line;
    line_init(&line);
    size_t used = line.state->pool.used;
    size_t held = line.state->pool.held;
    for (size_t i = 0; i < QUEUED; i++)
        (void)submit(&line);
    size_t maps = line.state->workloads.capacity * sizeof(struct id_slot);
    size_t each_used = (line.state->pool.used - used + maps) / QUEUED;
    size_t each_held = (line.state->pool.held - held + maps) / QUEUED;
    print_message("# a queued workload takes %zu bytes (%zu with what the pool holds ready)\n",
                  each_used, each_held);
    CHECK("stays below its bound", each_used <= BYTES_MOST && each_held <= BYTES_MOST);
    state_free(line.state);
}

static void end(struct line *line, struct id id)
{
    struct event cancelled = { .type = EV_WORKLOAD_CHANGED };
    cancelled.workload_changed = (struct workload_changed){
        .workload = id, .state = WL_CANCELLED, .detail = STR("no longer wanted by anybody")
    };
    apply(line, cancelled);
    struct event forgotten = { .type = EV_WORKLOAD_FORGOTTEN, .removed = { id } };
    apply(line, forgotten);
}

static void test_forgotten(void **state)
{
    (void)state;
    struct line line;
    line_init(&line);
    size_t used = line.state->pool.used;
    struct id alive[ALIVE];
    for (size_t i = 0; i < ALIVE; i++)
        alive[i] = submit(&line);
    size_t held = line.state->pool.held;
    for (size_t i = 0; i < FORGOTTEN; i++) {
        end(&line, alive[i % ALIVE]);
        alive[i % ALIVE] = submit(&line);
    }
    CHECK("takes no more from the heap", line.state->pool.held <= held + (size_t)2 * 65536);
    for (size_t i = 0; i < ALIVE; i++)
        end(&line, alive[i]);
    print_message("# after %d workloads: %zu bytes in use, %zu held\n", FORGOTTEN,
                  line.state->pool.used, line.state->pool.held);
    CHECK("every byte came back", line.state->pool.used == used);
    CHECK("the map is empty", line.state->workloads.count == 0);
    state_free(line.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queued),
        cmocka_unit_test(test_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
