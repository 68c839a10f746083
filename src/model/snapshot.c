/* The state as the shortest history that gives it back: after-images, referred-to before
 * referring. */
#include <string.h>

#include "model/evolve.h"

struct walk {
    void (*emit)(void *arg, const struct event *event);
    void *arg;
};

static void give(const struct walk *walk, struct event event)
{
    event.version = 1;
    walk->emit(walk->arg, &event);
}

static void walk_catalog(const struct state *state, const struct walk *walk)
{
    give(walk, (struct event){ .type = EV_SETTINGS_CHANGED, .settings = state->settings });
    for (size_t i = 0; i < state->classes.count; i++) {
        const struct class_object *class = state->classes.items[i];
        give(walk, (struct event){ .type = EV_CLASS_SET, .class_set = class->r });
        if (class->is_removed)
            give(walk, (struct event){ .type = EV_CLASS_REMOVED, .removed = { class->r.id } });
    }
    for (size_t i = 0; i < state->pools.count; i++)
        give(walk, (struct event){ .type = EV_POOL_SET, .pool_set = state->pools.items[i]->r });
    for (size_t i = 0; i < state->profiles.count; i++)
        give(walk,
             (struct event){ .type = EV_PROFILE_SET, .profile_set = state->profiles.items[i]->r });
}

static void walk_projects(const struct state *state, const struct walk *walk)
{
    for (const struct project *p = state->first_tenant; p != NULL; p = project_next(p)) {
        struct event event = { .type = EV_PROJECT_SET, .project_set = p->r };
        event.project_set.feed_sequence = p->last_sequence;
        give(walk, event);
    }
}

static void walk_belongings(const struct state *state, const struct walk *walk)
{
    for (const struct token *token = state->first_token; token != NULL; token = token->next)
        give(walk, (struct event){ .type = EV_TOKEN_SET, .token_set = token->r });
    for (const struct volume *volume = state->first_volume; volume != NULL; volume = volume->next)
        give(walk, (struct event){ .type = EV_VOLUME_SET, .volume_set = volume->r });
    for (const struct image *image = state->first_image; image != NULL; image = image->next)
        give(walk, (struct event){ .type = EV_IMAGE_SET, .image_set = image->r });
    for (const struct credential *c = state->first_credential; c != NULL; c = c->next)
        give(walk, (struct event){ .type = EV_CREDENTIAL_SET, .credential_set = c->r });
    for (const struct hook *h = state->first_hook; h != NULL; h = h->next)
        give(walk, (struct event){ .type = EV_HOOK_SET, .hook_set = h->r });
    for (const struct reservation *r = state->first_reservation; r != NULL; r = r->next)
        give(walk, (struct event){ .type = EV_RESERVATION_SET, .reservation_set = r->r });
    for (const struct change *c = state->first_change; c != NULL; c = c->next)
        give(walk, (struct event){ .type = EV_CHANGE_SET, .change_set = c->r });
    for (const struct upload *upload = state->first_upload; upload != NULL; upload = upload->next)
        give(walk, (struct event){ .type = EV_UPLOAD_STORED, .upload_stored = upload->r });
}

static void walk_work(const struct state *state, const struct walk *walk)
{
    for (const struct node *node = state->first_node; node != NULL; node = node->next)
        give(walk, (struct event){ .type = EV_NODE_SET, .node_set = node->r });
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        give(walk, (struct event){ .type = EV_WORKLOAD_SUBMITTED, .workload_submitted = w->r });
        for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload)
            give(walk, (struct event){ .type = EV_ALLOCATION_GRANTED, .allocation_granted = a->r });
    }
    for (const struct gang *g = state->first_gang; g != NULL; g = g->next)
        give(walk, (struct event){ .type = EV_GANG_CHANGED, .gang_changed = g->r });
}

void state_walk(const struct state *state, void (*emit)(void *arg, const struct event *event),
                void *arg)
{
    struct walk walk = { emit, arg };
    walk_catalog(state, &walk);
    walk_projects(state, &walk);
    walk_belongings(state, &walk);
    walk_work(state, &walk);
}

struct state_header state_header(const struct state *state)
{
    struct state_header header = {
        .sequence = state->sequence,
        .now = state->now,
        .wall = state->wall,
        .epoch = state->epoch,
        .next_tenant_number = state->next_tenant_number,
        .mix_seen = { state->mix.seen.items, state->mix.seen.count },
        .mix_dealt = { state->mix.dealt.items, state->mix.dealt.count },
        .mix_arrivals = state->mix.arrivals,
        .mix_dealt_at = state->mix.dealt_at,
    };
    memcpy(header.id_key, state->id_key, sizeof(header.id_key));
    return header;
}

static void restore_mix(struct request_mix *mix, const struct state_header *header)
{
    mix_done(mix);
    for (size_t i = 0; i < header->mix_seen.count; i++)
        vec_push(&mix->seen, header->mix_seen.items[i]);
    for (size_t i = 0; i < header->mix_dealt.count; i++)
        vec_push(&mix->dealt, header->mix_dealt.items[i]);
    mix->arrivals = header->mix_arrivals;
    mix->dealt_at = header->mix_dealt_at;
}

void state_restore_header(struct state *state, const struct state_header *header)
{
    state->sequence = header->sequence;
    state->now = header->now;
    state->wall = header->wall;
    state->epoch = header->epoch;
    state->next_tenant_number = header->next_tenant_number;
    restore_mix(&state->mix, header);
    memcpy(state->id_key, header->id_key, sizeof(state->id_key));
}
