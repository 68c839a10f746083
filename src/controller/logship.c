#include "controller/logship.h"

#include "os/clock.h"
#include "os/log.h"

enum { SYNC_AFTER_MS = 250, REMEMBER_S = 3600 };

/* An output that is coming in; remembered after its allocation has left the state. */
struct source {
    struct log_key key;
    struct id node;
    struct mono used;
    struct source *next;
};

struct answer {
    struct link *link; /* borrowed; NULL: went down */
    struct buf bytes;  /* owned; an encoded LOG_WANTED */
    struct answer *next;
};

struct logship {
    struct loop *loop;     /* borrowed */
    struct logstore *logs; /* borrowed */
    struct id_map by_allocation;
    struct source *sources; /* owned */
    struct answer *waiting; /* owned: for the next sync */
    struct answer *syncing; /* owned: for the sync under way */
    bool is_syncing;
    struct error sync_error;
    struct loop_timer timer;
};

static void answers_free(struct answer *answer)
{
    while (answer != NULL) {
        struct answer *next = answer->next;
        buf_done(&answer->bytes);
        mem_free(answer);
        answer = next;
    }
}

/* On a worker. */
static void sync_run(void *arg)
{
    struct logship *ship = arg;
    ship->sync_error = (struct error){ 0 };
    if (logstore_sync(ship->logs, &ship->sync_error) == ERR_OK)
        ship->sync_error.code = ERR_OK;
}

static void sync_start(void *arg);

static void sync_done(void *arg)
{
    struct logship *ship = arg;
    ship->is_syncing = false;
    if (ship->sync_error.code != ERR_OK)
        log_error("output of workloads could not be made durable", LOG_ERR(&ship->sync_error));
    for (struct answer *a = ship->syncing; a != NULL; a = a->next) {
        bool is_good = a->link != NULL && ship->sync_error.code == ERR_OK;
        if (is_good && link_send(a->link, MESSAGE_LOG_WANTED, buf_str(&a->bytes)) != ERR_OK)
            link_abort(a->link, "the agent does not take its messages");
    }
    answers_free(ship->syncing);
    ship->syncing = NULL;
    if (ship->waiting != NULL)
        sync_start(ship);
}

static void sync_start(void *arg)
{
    struct logship *ship = arg;
    if (ship->is_syncing || ship->waiting == NULL)
        return;
    ship->is_syncing = true;
    ship->syncing = TAKE(ship->waiting);
    loop_work(ship->loop, sync_run, sync_done, ship);
}

struct logship *logship_new(struct loop *loop, struct logstore *logs)
{
    struct logship *ship = mem_new(1, sizeof(*ship));
    ship->loop = loop;
    ship->logs = logs;
    ship->timer = (struct loop_timer){ .fn = sync_start, .arg = ship };
    return ship;
}

void logship_free(struct logship *ship)
{
    if (ship == NULL)
        return;
    loop_timer_stop(ship->loop, &ship->timer);
    loop_drain(ship->loop);
    answers_free(ship->waiting);
    answers_free(ship->syncing);
    while (ship->sources != NULL) {
        struct source *next = ship->sources->next;
        mem_free(ship->sources);
        ship->sources = next;
    }
    id_map_done(&ship->by_allocation);
    mem_free(ship);
}

/* Forgets outputs that nobody has spoken of for long. */
static void sources_expire(struct logship *ship, struct mono now)
{
    struct source **link = &ship->sources;
    while (*link != NULL) {
        struct source *source = *link;
        if (now.ns - source->used.ns < REMEMBER_S * NS_PER_S) {
            link = &source->next;
            continue;
        }
        (void)id_map_remove(&ship->by_allocation, source->key.allocation);
        *link = source->next;
        mem_free(source);
    }
}

/* Out of the state, or what was expected before this controller started. */
static bool source_find(const struct logship *ship, const struct state *state,
                        struct id allocation_id, struct log_key *key, struct id *node)
{
    const struct allocation *allocation = state_allocation(state, allocation_id);
    if (allocation == NULL)
        return logstore_expected(ship->logs, allocation_id, key, node);
    *key = (struct log_key){
        .project = allocation->r.project,
        .workload = allocation->r.workload,
        .allocation = allocation->r.id,
        .attempt = allocation->r.attempt,
        .rank = allocation->r.rank,
    };
    *node = allocation->r.node;
    return true;
}

bool logship_key(struct logship *ship, const struct state *state, struct id node,
                 const struct log_position *position, struct log_key *out)
{
    struct mono now = clock_monotonic();
    struct source *source = id_map_get(&ship->by_allocation, position->allocation);
    if (source == NULL) {
        struct log_key key;
        struct id owner;
        if (!source_find(ship, state, position->allocation, &key, &owner))
            return false;
        sources_expire(ship, now);
        source = mem_new(1, sizeof(*source));
        source->key = key;
        source->node = owner;
        source->next = ship->sources;
        ship->sources = source;
        id_map_put(&ship->by_allocation, source->key.allocation, source);
    }
    source->used = now;
    if (!id_eq(source->node, node) || source->key.attempt != position->attempt)
        return false;
    *out = source->key;
    return true;
}

void logship_answer(struct logship *ship, struct link *link, const struct log_message *wanted)
{
    struct answer *answer = mem_new(1, sizeof(*answer));
    answer->link = link;
    message_encode(MESSAGE_LOG_WANTED, wanted, &answer->bytes);
    answer->next = ship->waiting;
    ship->waiting = answer;
    if (ship->timer.slot == 0 && !ship->is_syncing)
        loop_timer_set(ship->loop, &ship->timer,
                       (struct mono){ loop_now(ship->loop).ns + SYNC_AFTER_MS * NS_PER_MS });
}

static void answers_drop(struct answer *answer, const struct link *link)
{
    for (; answer != NULL; answer = answer->next) {
        if (answer->link == link)
            answer->link = NULL;
    }
}

void logship_drop(struct logship *ship, const struct link *link)
{
    answers_drop(ship->waiting, link);
    answers_drop(ship->syncing, link);
}

struct intake {
    struct logship *ship;
    struct log_key key;
    uint64_t offset;
    bool is_refused; /* the rest is read and dropped: the node learns it by LOG_WANTED */
};

static void intake_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct intake *intake = arg;
    struct error e = { 0 };
    if (!intake->is_refused) {
        enum err rc = logstore_append(intake->ship->logs, &intake->key, intake->offset, bytes, &e);
        intake->offset += bytes.size;
        if (rc != ERR_OK) {
            intake->is_refused = true;
            char workload[ID_TEXT_MAX];
            log_warning("output of a workload is not kept", LOG_ERR(&e),
                        LOG_STR("workload", id_text(ID_WORKLOAD, intake->key.workload, workload)));
        }
    }
    link_stream_credit(stream, bytes.size);
}

static void intake_on_end(struct link_stream *stream, void *arg)
{
    link_stream_close(stream, LINK_CODE_OK, (struct str){ 0 });
    mem_free(arg);
}

static void intake_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    (void)stream;
    (void)code;
    (void)text;
    mem_free(arg);
}

static const struct link_stream_events intake_events = {
    .on_data = intake_on_data,
    .on_end = intake_on_end,
    .on_close = intake_on_close,
};

void logship_take(struct logship *ship, struct link_stream *stream, const struct log_key *key,
                  uint64_t offset)
{
    struct intake *intake = mem_new(1, sizeof(*intake));
    *intake = (struct intake){ .ship = ship, .key = *key, .offset = offset };
    link_stream_set_events(stream, &intake_events, intake);
}
