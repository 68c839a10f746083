/* The self-check sees every count and link that is wrong: each row breaks one, then looks. */
#include <string.h>

#include "unit/model/world.h"
#include "unit/test.h"

/*
 * Class 0; pools main (node-1, node-2) and spare; tenants amber (with amber/vision and amber/audio)
 * and birch; in amber/vision an array of two, a workload with two members and an ended one.
 */
struct stage {
    struct world world;
    struct state *state;
    struct project *amber, *birch, *vision, *audio;
    struct node *one, *two;
    struct workload *element, *gang, *ended;
};

static void stage_set_up(struct stage *stage)
{
    struct world *world = &stage->world;
    const struct id none = { 0 };
    world_init(world, 11);
    (void)world_class(world, "h100-80g");
    struct id pool = world_pool(world, "main", 0);
    (void)world_pool(world, "spare", 0);
    struct id one = world_node(world, "node-1", pool);
    struct id two = world_node(world, "node-2", pool);
    struct id amber = world_project(world, none, "amber");
    struct id birch = world_project(world, none, "birch");
    struct id vision = world_project(world, amber, "vision");
    struct id audio = world_project(world, amber, "audio");
    struct id array = world_id(world);
    struct id element = world_submit_element(world, vision, array, 0);
    (void)world_submit_element(world, vision, array, 1);
    struct id gang = world_submit(world, vision);
    struct id ended = world_submit(world, vision);
    (void)world_grant(world, gang, one, 0);
    (void)world_grant(world, gang, one, 1);
    world_workload(world, ended, WL_CANCELLED);
    struct token_record token = { .id = world_id(world), .tenant = amber };
    world_apply(world, (struct event){ .type = EV_TOKEN_SET, .token_set = token });
    struct volume_record volume = { .id = world_id(world), .tenant = amber };
    world_apply(world, (struct event){ .type = EV_VOLUME_SET, .volume_set = volume });
    struct reservation_record reservation = { .id = world_id(world),
                                              .project = vision,
                                              .state = RSV_CONFIRMED };
    world_apply(world,
                (struct event){ .type = EV_RESERVATION_SET, .reservation_set = reservation });
    struct change_record change = { .id = world_id(world), .project = vision, .state = CHG_ACTIVE };
    world_apply(world, (struct event){ .type = EV_CHANGE_SET, .change_set = change });
    struct image_record image = { .id = world_id(world), .tenant = amber };
    world_apply(world, (struct event){ .type = EV_IMAGE_SET, .image_set = image });
    struct credential_record credential = { .id = world_id(world), .tenant = amber };
    world_apply(world, (struct event){ .type = EV_CREDENTIAL_SET, .credential_set = credential });
    struct hook_record hook = { .id = world_id(world), .tenant = amber, .project = vision };
    world_apply(world, (struct event){ .type = EV_HOOK_SET, .hook_set = hook });

    stage->state = world->state;
    stage->amber = state_project(world->state, amber);
    stage->birch = state_project(world->state, birch);
    stage->vision = state_project(world->state, vision);
    stage->audio = state_project(world->state, audio);
    stage->one = state_node(world->state, one);
    stage->two = state_node(world->state, two);
    stage->element = state_workload(world->state, element);
    stage->gang = state_workload(world->state, gang);
    stage->ended = state_workload(world->state, ended);
}

static struct quota twice[2] = { { .class_number = 3 }, { .class_number = 3 } };
static struct usage_total reversed[2] = { { .class_number = 3 }, { .class_number = 2 } };

/* Each function of this list breaks one fact. */
#define BREAK(function, what)                                                                      \
    static void function(struct stage *s)                                                          \
    {                                                                                              \
        what;                                                                                      \
    }
BREAK(class_number, s->state->classes.items[0]->r.number = 4)
BREAK(pool_count, s->one->pool->node_count++)
BREAK(project_parent, s->vision->r.parent = s->birch->r.id)
BREAK(project_tenant, s->vision->tenant = s->birch)
BREAK(tenant_number, s->state->next_tenant_number = 1)
BREAK(project_by_id, (void)id_map_remove(&s->state->projects, s->birch->r.id))
BREAK(project_by_path, (void)str_map_remove(&s->state->project_paths, s->birch->r.path))
BREAK(project_back, s->audio->prev_sibling = NULL)
BREAK(project_last, s->amber->last_child = s->vision)
BREAK(tenant_last, s->state->last_tenant = s->amber)
BREAK(token_count, s->amber->token_count++)
BREAK(volume_count, s->amber->volume_count--)
BREAK(image_count, s->birch->image_count++)
BREAK(quota_order, s->birch->r.quotas = ((struct quota_list){ twice, 2 }))
BREAK(usage_order, s->birch->r.usage = ((struct usage_list){ reversed, 2 }))
BREAK(project_count, s->state->project_count++)
BREAK(project_extra, id_map_put(&s->state->projects, ((struct id){ 5, 5 }), s->birch))
BREAK(token_map, id_map_put(&s->state->tokens, ((struct id){ 5, 5 }), s->birch))
BREAK(volume_back, s->state->first_volume->prev = s->state->first_volume)
BREAK(reservation_map,
      (void)id_map_remove(&s->state->reservations, s->state->first_reservation->r.id))
BREAK(reservation_owner, s->state->first_reservation->project = s->birch)
BREAK(change_map, (void)id_map_remove(&s->state->changes, s->state->first_change->r.id))
BREAK(change_owner, s->state->first_change->project = s->birch)
BREAK(image_map, (void)id_map_remove(&s->state->images, s->state->first_image->r.id))
BREAK(credential_last, s->state->last_credential = NULL)
BREAK(hook_map, (void)id_map_remove(&s->state->hooks, s->state->first_hook->r.id))
BREAK(node_name, (void)str_map_remove(&s->state->node_names, s->two->r.name))
BREAK(node_pool, s->two->pool = s->state->pools.items[1]; s->two->pool->node_count++;
      s->one->pool->node_count--)
BREAK(node_count, s->state->node_count--)
BREAK(on_node_back, s->one->last_allocation->prev_on_node = NULL)
BREAK(on_node_order, s->one->last_allocation->r.created_sequence = 1)
BREAK(on_node_owner, s->one->last_allocation->node = s->two)
BREAK(on_node_last, s->one->last_allocation = s->one->first_allocation)
BREAK(allocation_count, s->state->allocation_count++)
BREAK(member_back, s->gang->last_allocation->prev_in_workload = NULL)
BREAK(member_order, s->gang->first_allocation->r.rank = 9)
BREAK(member_owner, s->gang->last_allocation->workload = s->element)
BREAK(member_project, s->gang->last_allocation->r.project = s->birch->r.id)
BREAK(member_state, s->gang->last_allocation->r.state = AL_ENDED)
BREAK(member_map, (void)id_map_remove(&s->state->allocations, s->gang->last_allocation->r.id))
BREAK(member_last, s->gang->last_allocation = s->gang->first_allocation)
BREAK(allocation_map, id_map_put(&s->state->allocations, ((struct id){ 5, 5 }), s->one))
BREAK(workload_project, s->gang->project = s->birch)
BREAK(workload_state, s->gang->r.state = WL_NONE)
BREAK(workload_end, s->gang->ended_at.ns = 5)
BREAK(array_map, (void)id_map_remove(&s->state->arrays, s->element->r.array))
BREAK(array_order, s->element->array_next->r.array_index = 0)
BREAK(array_extra, id_map_put(&s->state->arrays, ((struct id){ 5, 5 }), s->gang))
BREAK(array_loose, s->element->array_next = NULL)
BREAK(live_count, s->vision->live_workloads++)
BREAK(workload_count, s->state->workload_count--)
BREAK(ended_count, s->state->ended_count--)

static const struct {
    const char *name;
    void (*act)(struct stage *stage);
    const char *text; /* part of what the check says */
} cases[] = {
    { "a class at the wrong place", class_number, "class 0 has the number 4" },
    { "a pool that counts wrong", pool_count, "pool main counts 3 nodes and has 2" },
    { "a wrong parent", project_parent, "hangs on the wrong parent" },
    { "a wrong tenant", project_tenant, "belongs to the wrong tenant" },
    { "a tenant number to be used again", tenant_number, "would be used again" },
    { "a project out of the map", project_by_id, "birch is not found by id" },
    { "a path out of the map", project_by_path, "birch is not found by path" },
    { "a sibling that is not linked", project_back, "not linked from the one before" },
    { "a last child that is not", project_last, "is not its last" },
    { "a last tenant that is not", tenant_last, "is not its last" },
    { "tokens counted wrong", token_count, "counts 2 tokens and has 1" },
    { "volumes counted wrong", volume_count, "counts 0 volumes and has 1" },
    { "images counted wrong", image_count, "counts 1 images and has 0" },
    { "two quotas of a class", quota_order, "quotas of birch are out of order" },
    { "usage out of order", usage_order, "usage rows of birch are out of order" },
    { "projects counted wrong", project_count, "5 projects are counted and 4 are there" },
    { "a project twice in the map", project_extra, "maps of projects have 5 and 4" },
    { "a token too many in the map", token_map, "map of tokens has 2 entries for 1" },
    { "a volume linked wrong", volume_back, "volume 0 has a wrong link back" },
    { "a reservation out of the map", reservation_map, "reservation 0 is not found" },
    { "a reservation of another project", reservation_owner, "is of the wrong project" },
    { "a change out of the map", change_map, "change 0 is not found" },
    { "a change of another project", change_owner, "is of the wrong project" },
    { "an image out of the map", image_map, "image 0 is not found" },
    { "a last credential that is not", credential_last, "the last credential" },
    { "a hook out of the map", hook_map, "hook 0 is not found" },
    { "a node without its name", node_name, "node-2 is not found by name" },
    { "a node in the wrong pool", node_pool, "node-2 is in the wrong pool" },
    { "nodes counted wrong", node_count, "1 nodes and 2 names are counted, and 2" },
    { "a wrong link back on a node", on_node_back, "on node-1 has a wrong link back" },
    { "grants out of order", on_node_order, "not in order of granting" },
    { "an allocation of another node", on_node_owner, "is of another node" },
    { "a last allocation that is not", on_node_last, "last allocation on node-1" },
    { "allocations counted wrong", allocation_count, "3 allocations are counted and 2" },
    { "a wrong link back in a gang", member_back, "an allocation has a wrong link back" },
    { "ranks out of order", member_order, "not in order of rank" },
    { "a member of another workload", member_owner, "in the list of another workload" },
    { "a member of another project", member_project, "is of another project" },
    { "a member that ended", member_state, "that ended is still there" },
    { "a member out of the map", member_map, "an allocation is not found" },
    { "a last member that is not", member_last, "last allocation of a workload" },
    { "an allocation too many in the map", allocation_map, "2 allocations are counted" },
    { "a workload of the wrong project", workload_project, "is of the wrong project" },
    { "a workload in no state", workload_state, "is in no state" },
    { "an end without an end", workload_end, "ended without being final" },
    { "an array out of the map", array_map, "is not found" },
    { "elements out of order", array_order, "is out of order" },
    { "an array of nothing", array_extra, "map of arrays has 2 entries for 1" },
    { "an element that hangs loose", array_loose, "2 elements of arrays are there and 1" },
    { "live work counted wrong", live_count, "projects count 4 live workloads" },
    { "work counted wrong", workload_count, "3 workloads are counted and 4 are there" },
    { "ended work counted wrong", ended_count, "0 ended workloads are counted and 1" },
};

static void test_breaks(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, cases) {
        struct stage stage = { 0 };
        struct error e = { 0 };
        stage_set_up(&stage);
        CHECK(c->name, state_check(stage.state, &e));
        c->act(&stage);
        bool is_right = state_check(stage.state, &e);
        if (is_right || strstr(e.text, c->text) == NULL)
            print_error("it says: %s\n", e.text);
        CHECK(c->name, !is_right && e.code == ERR_CORRUPT && strstr(e.text, c->text) != NULL);
        world_done(&stage.world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_breaks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
