#include "controller/state_load.h"

#include "wire/event_json.h"
#include "wire/snapshot.h"

struct replay {
    struct state *state;
    struct arena arena;
};

enum err state_decode_row(void *arg, const struct store_row *row, struct arena *arena,
                          struct event *out, struct error *e)
{
    (void)arg;
    *out = (struct event){
        .sequence = row->sequence,
        .type = row->type,
        .version = row->version,
        .at = row->at,
        .wall = row->wall,
        .actor = row->actor,
        .request = row->request,
        .tenant = row->tenant,
        .tenant_sequence = row->tenant_sequence,
    };
    return event_body_decode(row->body, arena, out, e);
}

static enum err replay_row(void *arg, const struct store_row *row, struct error *e)
{
    struct replay *replay = arg;
    struct event event;
    arena_reset(&replay->arena);
    enum err rc = state_decode_row(NULL, row, &replay->arena, &event, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "journal row %llu", (unsigned long long)row->sequence);
    evolve(replay->state, &event);
    return ERR_OK;
}

enum err state_load(struct store *store, struct state **out, struct error *e)
{
    AUTO(state) struct state *state = state_new();
    AUTO(buf) struct buf bytes = { 0 };
    uint64_t sequence = 0;
    enum err rc = store->vtable->load_snapshot(store, &sequence, &bytes, e);
    if (rc == ERR_OK)
        rc = snapshot_read(buf_str(&bytes), state, e);
    if (rc != ERR_OK && rc != ERR_NOT_FOUND)
        return err_wrap(e, rc, "snapshot");

    struct replay replay = { .state = state };
    rc = store->vtable->read_events(store, state->sequence, replay_row, &replay, e);
    arena_done(&replay.arena);
    if (rc != ERR_OK)
        return rc;
    *out = TAKE(state);
    return ERR_OK;
}
