/* crash.c - kill -9 in the middle of appending, fifty times over the same file. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "unit/store/dump.h"
#include "unit/store/history.h"
#include "unit/test.h"
#include "unit/test_dir.h"

enum { ROUNDS = 50, BATCH_MAX = 30, DEADLINE_MS = 20000 };

/* Written by the child after each answer of the store, read by the parent after its death. */
struct progress {
    _Atomic uint64_t acknowledged;
};

static struct store_batch next_batch(struct history *history)
{
    size_t events = 1 + test_below(&history->random, BATCH_MAX);
    return history_batch(history, events, events % 2);
}

/* What a controller does all day, until it is killed. */
static enum err child_life(const char *path, struct history *history, struct progress *progress)
{
    uint64_t epoch = 0;
    struct store *store = NULL;
    enum err rc = store_sqlite_open(path, NULL, &store, NULL);
    if (rc == ERR_OK)
        rc = store->vtable->claim(store, 0, &epoch, NULL);
    for (size_t i = 0; rc == ERR_OK; i++) {
        struct store_batch batch = next_batch(history);
        rc = store->vtable->append(store, &batch, NULL);
        if (rc == ERR_OK)
            progress->acknowledged = history->sequence;
        bool more = false;
        if (rc == ERR_OK && i % 3 == 0)
            rc = store->vtable->maintain(store, 1000, NULL);
        if (rc == ERR_OK && i % 5 == 0)
            rc = store_save_snapshot(store, history->sequence, STR("state"), 50, NULL);
        if (rc == ERR_OK && i % 7 == 0)
            rc = store->vtable->trim(store, history->wall, &more, NULL);
    }
    return rc;
}

static void run_and_kill(const char *path, struct history *history, struct progress *progress,
                         int delay_ms)
{
    uint64_t before = progress->acknowledged;
    pid_t child = fork();
    CHECK("fork", child >= 0);
    if (child == 0) {
        enum err rc = child_life(path, history, progress);
        _exit(10 + (int)rc);
    }
    for (int ms = 0; progress->acknowledged == before && ms < DEADLINE_MS; ms++)
        (void)poll(NULL, 0, 1);
    (void)poll(NULL, 0, delay_ms); /* the moment of the kill is what is random here */
    CHECK("kill", kill(child, SIGKILL) == 0);
    int status = 0;
    CHECK("wait", waitpid(child, &status, 0) == child);
    CHECK("it lived until then", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

struct reading {
    const struct history *history;
    uint64_t count;
};

static enum err check_row(void *arg, const struct store_row *row, struct error *e)
{
    struct reading *r = arg;
    const struct history *h = r->history;
    if (row->sequence != ++r->count || row->sequence > h->events.count)
        return err_set(e, ERR_CORRUPT, "event %llu was never made", (unsigned long long)r->count);
    const struct store_event *made = &h->events.items[row->sequence - 1];
    if (!str_eq(made->body, row->body) || !str_eq(made->object, row->object) ||
        made->event->wall.ns != row->wall.ns)
        return err_set(e, ERR_CORRUPT, "event %llu differs", (unsigned long long)r->count);
    return ERR_OK;
}

static enum err count_row(void *arg, const struct store_row *row, struct error *e)
{
    uint64_t *count = arg;
    (void)e;
    *count = row->sequence;
    return ERR_OK;
}

/* The parent repeats what the child made: both have the same generator in the same state. */
static void check_store(const char *path, struct history *history, uint64_t acknowledged)
{
    struct error e;
    uint64_t stored = 0;
    AUTO(store) struct store *store = NULL;
    CHECK_OK("open", store_sqlite_open(path, NULL, &store, &e), &e);
    CHECK_OK("read", store->vtable->read_events(store, 0, count_row, &stored, &e), &e);
    CHECK("all that was acknowledged", stored >= acknowledged);
    while (history->sequence < stored)
        (void)next_batch(history);
    CHECK("whole batches", history->sequence == stored);
    struct reading reading = { history, 0 };
    CHECK_OK("compare", store->vtable->read_events(store, 0, check_row, &reading, &e), &e);
    AUTO(arena) struct arena arena = { 0 };
    struct store_clock clock;
    if (stored != 0) {
        CHECK_OK("clock", store->vtable->read_clock(store, &clock, &arena, &e), &e);
        CHECK("of the last batch", clock.mono.ns == history->at.ns);
    }
}

static void check_projections(const char *path, struct history *history)
{
    struct error e;
    uint64_t epoch = 0;
    AUTO(buf) struct buf before = { 0 };
    AUTO(buf) struct buf after = { 0 };
    AUTO(store) struct store *store = NULL;
    CHECK_OK("open", store_sqlite_open(path, NULL, &store, &e), &e);
    CHECK_OK("claim", store->vtable->claim(store, 0, &epoch, &e), &e);
    CHECK("every life had an epoch", epoch == ROUNDS + 1);
    CHECK_OK("tables", dump_tables(path, &before, &e), &e);
    CHECK_OK("rebuild", store->vtable->rebuild(store, history_decode, history, &e), &e);
    CHECK_OK("tables", dump_tables(path, &after, &e), &e);
    CHECK("projections fit the journal", str_eq(buf_str(&before), buf_str(&after)));
}

static void every_acknowledged_batch_survives(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    struct error e;
    char path[256];
    AUTO(history) struct history history;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    history_init(&history, random);
    struct progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK("shared page", progress != MAP_FAILED);
    (void)test_dir_path(&dir, "store.db", path);
    CHECK_OK("create", store_sqlite_create(path, &e), &e);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = progress->acknowledged;
        int delay_ms = (int)test_below(&random, 40);
        run_and_kill(path, &history, progress, delay_ms);
        check_store(path, &history, MAX_OF(before, progress->acknowledged));
    }
    CHECK("something was stored", history.sequence > ROUNDS);
    check_projections(path, &history);
    (void)munmap(progress, sizeof(*progress));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_acknowledged_batch_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
