/* How much memory work takes, and that all of it comes back. Figures are printed. */
#include <string.h>

#include "unit/model/world.h"
#include "unit/test.h"

enum { QUEUED = 10000, SPEC_BYTES = 300, BYTES_MOST = 1024, FORGOTTEN = 100000, ALIVE = 50 };

struct line {
    struct state *state;
    struct id project;
    uint64_t next;
    bool is_array; /* all have the same spec */
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
    static const uint8_t key[16];
    char spec[SPEC_BYTES + 1];
    uint64_t number = line->next++;
    (void)snprintf(spec, sizeof(spec), "%0*llu", SPEC_BYTES,
                   (unsigned long long)(line->is_array ? 0 : number));
    r->id = id_derive(key, number, 0);
    r->project = line->project;
    r->name = STR("train-resnet");
    r->user = STR("ada");
    r->spec_json = (struct str){ spec, SPEC_BYTES };
    r->state = WL_QUEUED;
    apply(line, event);
    return event.workload_submitted.id;
}

struct cost {
    size_t used; /* per workload, with its place in the map */
    size_t held; /* and with what the pool holds ready */
};

static struct cost cost_of_queued(bool is_array)
{
    struct line line;
    line_init(&line);
    line.is_array = is_array;
    size_t used = line.state->pool.used;
    size_t held = line.state->pool.held;
    for (size_t i = 0; i < QUEUED; i++)
        (void)submit(&line);
    size_t maps = line.state->workloads.capacity * sizeof(struct id_slot);
    struct cost cost = { (line.state->pool.used - used + maps) / QUEUED,
                         (line.state->pool.held - held + maps) / QUEUED };
    print_message("# a queued workload takes %zu bytes (%zu with what the pool holds ready)%s\n",
                  cost.used, cost.held, is_array ? " in an array" : "");
    state_free(line.state);
    return cost;
}

static void test_queued(void **state)
{
    (void)state;
    struct cost cost = cost_of_queued(false);
    CHECK("stays below its bound", cost.used <= BYTES_MOST && cost.held <= BYTES_MOST);
    cost = cost_of_queued(true);
    CHECK("an element of an array has no spec of its own", cost.held <= BYTES_MOST - SPEC_BYTES);
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

/* Whoever holds a spec together with others may go first. */
static void test_shared_spec(void **state)
{
    (void)state;
    static const size_t orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 } };
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        struct line line;
        line_init(&line);
        line.is_array = true;
        size_t used = line.state->pool.used;
        struct id ids[3] = { submit(&line), submit(&line), submit(&line) };
        const struct workload *last = state_workload(line.state, ids[orders[i][2]]);
        CHECK("kept once", last->r.spec_json.data ==
                               state_workload(line.state, ids[orders[i][0]])->r.spec_json.data);
        end(&line, ids[orders[i][0]]);
        end(&line, ids[orders[i][1]]);
        CHECK("the last still has it", last->r.spec_json.size == SPEC_BYTES);
        for (size_t k = 0; k < SPEC_BYTES; k++)
            CHECK("unchanged", last->r.spec_json.data[k] == '0');
        end(&line, ids[orders[i][2]]);
        CHECK("and then nobody", line.state->pool.used == used);
        state_free(line.state);
    }
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
        cmocka_unit_test(test_shared_spec),
        cmocka_unit_test(test_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
