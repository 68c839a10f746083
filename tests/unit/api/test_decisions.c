/* What the scheduler decided, as the API tells it: out of the journal, to whom it concerns. */
#include <string.h>

#include "unit/api/world.h"
#include "unit/test.h"

static const char submit[] =
    "{\"project\":\"%s\",\"name\":\"%s\",\"image\":\"debian-12\",\"command\":[\"true\"],"
    "\"gpu_milli\":1000,\"members\":%d}";

struct work {
    char id[ID_TEXT_MAX];
};

static struct work send(struct world *world, const char *project, const char *name, int members)
{
    struct work work = { "" };
    unsigned status = world_post(world, "/v1/workloads",
                                 arena_format(&world->events, submit, project, name, members));
    CHECK(world->error.text, status == 201);
    (void)snprintf(work.id, sizeof(work.id), "%s", world_text(world, "id"));
    return work;
}

static void furnish(struct world *world)
{
    world_init(world);
    CHECK("image", world_post(world, "/v1/images",
                              "{\"name\":\"debian-12\",\"source\":\"registry.example/debian:12\","
                              "\"manifest\":\"1111111111111111111111111111111111111111111111111111"
                              "111111111111\"}") == 201);
}

/* Amber has started a gang of two inside its quota and one workload above it; then birch wants its
 * own two devices, of which one is free and one is taken back. */
static void start(struct world *world, struct work *gang, struct work *borrower, struct work *owner)
{
    furnish(world);
    *gang = send(world, "amber", "gang", 2);
    world->seconds += 10;
    world_schedule(world);
    *borrower = send(world, "amber", "borrower", 1);
    world->seconds += 10;
    world_schedule(world);
    world->seconds += 30;
    *owner = send(world, "birch", "owner", 2);
    world_schedule(world);
}

static bool is(const struct world *world, const char *path, const char *text)
{
    return strcmp(world_text(world, path), text) == 0;
}

static void test_says_what_was_decided(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    struct work gang, borrower, owner;
    start(&world, &gang, &borrower, &owner);
    CHECK(world.error.text, world_get(&world, "/v1/decisions") == 200);
    CHECK("the newest first: an eviction", is(&world, "items.0.rule", "reclaim"));
    CHECK("why", is(&world, "items.0.cause", "reclaimed_for_quota"));
    CHECK("of whom", is(&world, "items.0.workload", borrower.id) &&
                         is(&world, "items.0.name", "borrower") &&
                         is(&world, "items.0.project", "amber"));
    CHECK("for whom", is(&world, "items.0.evictor", owner.id) &&
                          is(&world, "items.0.evictor_project", "birch"));
    CHECK("what it gives back", world_number(&world, "items.0.members") == 1 &&
                                    world_number(&world, "items.0.charge_milli") == 1000);
    CHECK("before it, a start",
          is(&world, "items.1.rule", "allocate") && is(&world, "items.1.workload", borrower.id));
    CHECK("above the quota", world_number(&world, "items.1.is_borrowed") == 1);
    CHECK("after so long", world_number(&world, "items.1.waited_s") == 10);
    CHECK("and a gang as one", is(&world, "items.2.workload", gang.id) &&
                                   world_number(&world, "items.2.members") == 2 &&
                                   world_number(&world, "items.2.nodes") == 1 &&
                                   world_number(&world, "items.2.charge_milli") == 2000 &&
                                   is(&world, "items.2.class", "h100-80g"));
    CHECK("inside the quota", world_number(&world, "items.2.is_borrowed") == -1);
    CHECK("its attempt", world_number(&world, "items.2.attempt") == 1);
    CHECK("and no more", is(&world, "items.3.rule", "") && is(&world, "next", ""));
    CHECK("sequences fall",
          world_number(&world, "items.0.sequence") > world_number(&world, "items.1.sequence") &&
              world_number(&world, "items.1.sequence") > world_number(&world, "items.2.sequence"));
}

static void test_filters(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    struct work gang, borrower, owner;
    start(&world, &gang, &borrower, &owner);
    CHECK("by rule", world_get(&world, "/v1/decisions?rule=reclaim") == 200 &&
                         is(&world, "items.0.rule", "reclaim") && is(&world, "items.1.rule", ""));
    CHECK("by workload",
          world_get(&world, arena_format(&world.events, "/v1/decisions?workload=%s", gang.id)) ==
                  200 &&
              is(&world, "items.0.workload", gang.id) && is(&world, "items.1.rule", ""));
    CHECK("by time", world_get(&world, "/v1/decisions?since_s=5") == 200 &&
                         is(&world, "items.0.rule", "reclaim") && is(&world, "items.1.rule", "") &&
                         is(&world, "next", ""));
    CHECK("by project", world_get(&world, "/v1/decisions?project=amber") == 200 &&
                            is(&world, "items.2.workload", gang.id));
    CHECK("in which nothing was decided", world_get(&world, "/v1/decisions?project=birch") == 200 &&
                                              is(&world, "items.0.rule", ""));
    CHECK("no such rule", world_get(&world, "/v1/decisions?rule=luck") == 400 &&
                              is(&world, "field", "rule") &&
                              strstr(world_text(&world, "detail"), "preempt") != NULL);
    CHECK("no id", world_get(&world, "/v1/decisions?workload=train") == 400);
    CHECK("no number", world_get(&world, "/v1/decisions?since_s=soon") == 400);
    CHECK("no project", world_get(&world, "/v1/decisions?project=cedar") == 404);
}

static void test_of_a_tree(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    furnish(&world);
    CHECK("child", world_post(&world, "/v1/projects", "{\"path\":\"birch/leaf\"}") == 201);
    CHECK("twig", world_post(&world, "/v1/projects", "{\"path\":\"birch/twig\"}") == 201);
    struct work leaf = send(&world, "birch/leaf", "leaf", 1);
    world_schedule(&world);
    struct work amber = send(&world, "amber", "amber", 1);
    world_schedule(&world);
    CHECK("all", world_get(&world, "/v1/decisions") == 200 &&
                     is(&world, "items.0.workload", amber.id) &&
                     is(&world, "items.1.workload", leaf.id));
    CHECK("of the leaf", world_get(&world, "/v1/decisions?project=birch%2Fleaf") == 200 &&
                             is(&world, "items.0.workload", leaf.id));
    CHECK("of all of birch, and nothing beside it",
          world_get(&world, "/v1/decisions?project=birch") == 200 &&
              is(&world, "items.0.workload", leaf.id) && is(&world, "items.1.rule", ""));
    CHECK("of the twig", world_get(&world, "/v1/decisions?project=birch%2Ftwig") == 200 &&
                             is(&world, "items.0.rule", ""));
}

static void test_pages_hold_whole_decisions(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    struct work gang, borrower, owner;
    start(&world, &gang, &borrower, &owner);
    const char *wanted[] = { borrower.id, borrower.id, gang.id };
    const char *target = "/v1/decisions?limit=1";
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        CHECK(wanted[i], world_get(&world, target) == 200 &&
                             is(&world, "items.0.workload", wanted[i]) &&
                             is(&world, "items.1.rule", ""));
        CHECK("a whole gang", i != 2 || world_number(&world, "items.0.members") == 2);
        CHECK("there is more", !is(&world, "next", ""));
        target = arena_format(&world.events, "/v1/decisions?limit=1&after=%s",
                              world_text(&world, "next"));
    }
    CHECK("the last page", world_get(&world, target) == 200 && is(&world, "items.0.rule", "") &&
                               is(&world, "next", ""));
}

static void test_tenants_see_their_own(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    struct work gang, borrower, owner;
    start(&world, &gang, &borrower, &owner);
    int64_t sequence =
        world_get(&world, "/v1/decisions") == 200 ? world_number(&world, "items.0.sequence") : -1;
    world.actor = actor_member(&world, "amber");
    CHECK("amber's",
          world_get(&world, "/v1/decisions") == 200 && is(&world, "items.0.workload", borrower.id));
    CHECK("not for whom",
          is(&world, "items.0.evictor", "") && is(&world, "items.0.evictor_project", ""));
    CHECK("no number that counts for all", world_number(&world, "items.0.sequence") != sequence);
    CHECK("a foreign project is absent",
          world_get(&world, "/v1/decisions?project=birch") == 404 &&
              world_get(&world, "/v1/decisions?tenant=birch") == 404);
    world.actor = actor_member(&world, "birch");
    CHECK("birch has none yet",
          world_get(&world, "/v1/decisions") == 200 && is(&world, "items.0.rule", ""));
    char *absent = NULL;
    CHECK("absent",
          world_get(&world, "/v1/decisions?workload=wl_00000000000000000000000000") == 200);
    absent =
        arena_format(&world.events, "%.*s", (int)world.answer.body.size, world.answer.body.data);
    CHECK("foreign is as absent",
          world_get(&world, arena_format(&world.events, "/v1/decisions?workload=%s", gang.id)) ==
                  200 &&
              strncmp(absent, world.answer.body.data, world.answer.body.size) == 0);
}

/* As its nodes would report it. */
static void runs_now(struct world *world)
{
    struct workload *workload = world->state->first_workload;
    struct allocation *a = workload->first_allocation;
    for (; a != NULL; a = a->next_in_workload)
        world_happen(world, (struct event){ .type = EV_ALLOCATION_CHANGED,
                                            .allocation_changed = { .allocation = a->r.id,
                                                                    .state = AL_RUNNING } });
    world_happen(world, (struct event){ .type = EV_WORKLOAD_CHANGED,
                                        .workload_changed = { .workload = workload->r.id,
                                                              .state = WL_RUNNING,
                                                              .cause = CAUSE_STARTED,
                                                              .attempt = 1 } });
}

/* An elastic gang that gives back what it has above its minimum goes on, and so does its record. */
static void test_gangs_that_shrink(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    furnish(&world);
    CHECK("elastic",
          world_post(&world, "/v1/workloads",
                     "{\"project\":\"amber\",\"name\":\"elastic\",\"image\":\"debian-12\","
                     "\"command\":[\"true\"],\"gpu_milli\":1000,\"members\":4,"
                     "\"members_min\":2}") == 201);
    world_schedule(&world);
    CHECK("it starts with all", world_get(&world, "/v1/decisions") == 200 &&
                                    is(&world, "items.0.rule", "allocate") &&
                                    world_number(&world, "items.0.members") == 4);
    runs_now(&world);
    world.seconds += 10;
    struct work owner = send(&world, "birch", "owner", 2);
    world_schedule(&world);
    CHECK("it shrinks",
          world_get(&world, "/v1/decisions") == 200 && is(&world, "items.0.rule", "reclaim") &&
              is(&world, "items.0.name", "elastic") && is(&world, "items.0.evictor", owner.id));
    CHECK("by two", world_number(&world, "items.0.members") == 2 &&
                        world_number(&world, "items.0.charge_milli") == 2000);
    CHECK("once", is(&world, "items.1.rule", "allocate") && is(&world, "items.2.rule", ""));
}

/* The same numbers as metrics, for each project that has any. */
static void test_metrics(void **state)
{
    static const char *const wanted[] = {
        "\nberth_project_quota_milli{project=\"amber\",class=\"h100-80g\"} 2000\n",
        "\nberth_project_limit_milli{project=\"amber\",class=\"h100-80g\"} -1\n",
        "\nberth_project_allocated_milli{project=\"amber\",class=\"h100-80g\"} 3000\n",
        "\nberth_project_borrowed_milli{project=\"amber\",class=\"h100-80g\"} 1000\n",
        "\nberth_project_fair_share_milli{project=\"birch\",class=\"h100-80g\"} 2000\n",
        "\nberth_project_pending_milli{project=\"birch\",class=\"h100-80g\"} 2000\n",
        "\nberth_project_share_ratio{project=\"amber\",class=\"h100-80g\"} 1.500\n",
        "\nberth_project_share_ratio{project=\"birch\",class=\"h100-80g\"} 0.000\n",
        "\nberth_project_series_left_out 0\n",
    };
    (void)state;
    AUTO(world) struct world world;
    struct work gang, borrower, owner;
    start(&world, &gang, &borrower, &owner);
    CHECK("metrics", world_get(&world, "/metrics") == 200);
    buf_add_char(&world.answer.body, '\0');
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        CHECK(wanted[i], strstr(world.answer.body.data, wanted[i]) != NULL);
    CHECK("nothing of what it has nothing to do with",
          strstr(world.answer.body.data,
                 "berth_project_quota_milli{project=\"amber\",class=\"cpu") == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_what_was_decided),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_of_a_tree),
        cmocka_unit_test(test_pages_hold_whole_decisions),
        cmocka_unit_test(test_gangs_that_shrink),
        cmocka_unit_test(test_tenants_see_their_own),
        cmocka_unit_test(test_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
