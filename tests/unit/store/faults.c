/*
 * faults.c - what the SQLite store does when the disk fails: a full disk changes nothing and passes
 * by itself; an error whose outcome is unknown ends all writing; whatever happened, the next start
 * finds every acknowledged batch and at most the one that was under way.
 */
#include <string.h>

#include "unit/store/dump.h"
#include "unit/store/faulty_vfs.h"
#include "unit/store/history.h"
#include "unit/test.h"
#include "unit/test_dir.h"

struct fixture {
    struct test_dir dir;
    char path[256];
    struct store *store;
    struct history history;
    struct error e;
};

static void reopen(struct fixture *f)
{
    uint64_t epoch = 0;
    store_free(f->store);
    f->store = NULL;
    CHECK_OK("open", store_sqlite_open(f->path, NULL, &f->store, &f->e), &f->e);
    CHECK_OK("claim", f->store->vtable->claim(f->store, 0, &epoch, &f->e), &f->e);
}

static void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){ .dir = test_dir_new() };
    history_init(&f->history, seed);
    (void)test_dir_path(&f->dir, "store.db", f->path);
    CHECK_OK("create", store_sqlite_create(f->path, &f->e), &f->e);
    reopen(f);
}

static void fixture_done(struct fixture *f)
{
    (void)faulty_disarm();
    store_free(f->store);
    history_done(&f->history);
    test_dir_remove(&f->dir);
}

static void append(struct fixture *f, size_t events)
{
    struct store_batch batch = history_batch(&f->history, events, 1);
    CHECK_OK("append", f->store->vtable->append(f->store, &batch, &f->e), &f->e);
}

struct tail {
    const struct history *history;
    uint64_t count;
    bool is_same;
};

static enum err compare_row(void *arg, const struct store_row *row, struct error *e)
{
    struct tail *tail = arg;
    (void)e;
    const struct store_event *made = tail->count < tail->history->events.count
                                         ? &tail->history->events.items[tail->count]
                                         : NULL;
    tail->count++;
    tail->is_same = tail->is_same && made != NULL && row->sequence == tail->count &&
                    str_eq(row->body, made->body) && str_eq(row->object, made->object);
    return ERR_OK;
}

/* How many events the store has; all of them are the history's. */
static uint64_t stored_events(struct fixture *f)
{
    struct tail tail = { &f->history, 0, true };
    CHECK_OK("read", f->store->vtable->read_events(f->store, 0, compare_row, &tail, &f->e), &f->e);
    CHECK("what was appended", tail.is_same);
    return tail.count;
}

/* After a start: all that was acknowledged, and the batch under way as a whole or not at all. */
static void check_recovered(struct fixture *f, const struct store_batch *under_way)
{
    AUTO(buf) struct buf before = { 0 };
    AUTO(buf) struct buf after = { 0 };
    reopen(f);
    uint64_t stored = stored_events(f);
    if (stored != f->history.sequence) {
        CHECK("as a whole", stored == f->history.sequence - under_way->event_count);
        history_take_back(&f->history, under_way);
    }
    CHECK_OK("tables", dump_tables(f->path, &before, &f->e), &f->e);
    CHECK_OK("rebuild", f->store->vtable->rebuild(f->store, history_decode, &f->history, &f->e),
             &f->e);
    CHECK_OK("tables", dump_tables(f->path, &after, &f->e), &f->e);
    CHECK("projections fit the journal", str_eq(buf_str(&before), buf_str(&after)));
    append(f, 3);
}

/* ---- appending ------------------------------------------------------------------------------- */

static void a_full_disk_changes_nothing_and_passes(void **state)
{
    static const enum faulty_kind kinds[] = { FAULTY_FULL, FAULTY_SHORT };
    (void)state;
    struct fixture f;
    fixture_init(&f, test_seed());
    append(&f, 50);
    bool was_met = true;
    for (uint64_t at = 1; was_met; at++) {
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            struct faulty_plan plan = { FAULTY_WRITE, kinds[k], FAULTY_ANY, at, true };
            struct store_batch batch = history_batch(&f.history, 20, 1);
            uint64_t acknowledged = f.history.sequence - batch.event_count;
            faulty_arm(&plan);
            enum err rc = f.store->vtable->append(f.store, &batch, &f.e);
            was_met = faulty_disarm();
            CHECK("unavailable or stored", rc == (was_met ? ERR_UNAVAILABLE : ERR_OK));
            if (was_met)
                CHECK("nothing stored", stored_events(&f) == acknowledged);
            if (was_met && at % 2 == 0) /* the very same batch may be tried again */
                CHECK_OK("again", f.store->vtable->append(f.store, &batch, &f.e), &f.e);
            else if (was_met)
                history_take_back(&f.history, &batch);
            CHECK("says what to do", !was_met || strstr(f.e.text, "full") != NULL);
        }
    }
    struct store_batch none = { 0 };
    check_recovered(&f, &none);
    fixture_done(&f);
}

static const struct {
    const char *name;
    struct faulty_plan plan;
} unknown_cases[] = {
    { "write error", { FAULTY_WRITE, FAULTY_EIO, FAULTY_ANY, 0, false } },
    { "lasting write error", { FAULTY_WRITE, FAULTY_EIO, FAULTY_ANY, 0, true } },
    { "fsync error", { FAULTY_SYNC, FAULTY_EIO, FAULTY_ANY, 0, false } },
    { "lasting fsync error", { FAULTY_SYNC, FAULTY_EIO, FAULTY_ANY, 0, true } },
    { "disk full at fsync", { FAULTY_SYNC, FAULTY_FULL, FAULTY_ANY, 0, false } },
    { "power cut in a write", { FAULTY_WRITE, FAULTY_TORN, FAULTY_ANY, 0, true } },
    { "power cut in an fsync", { FAULTY_SYNC, FAULTY_TORN, FAULTY_ANY, 0, true } },
};

/* NOLINTNEXTLINE(readability-function-size): CHECK is a macro that nests */
static void an_unknown_outcome_ends_all_writing(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    FOR_EACH_CASE (c, unknown_cases) {
        struct fixture f;
        fixture_init(&f, seed);
        append(&f, 50);
        bool was_met = true;
        for (uint64_t at = 1; was_met; at++) {
            struct faulty_plan plan = c->plan;
            plan.at = at;
            struct store_batch batch = history_batch(&f.history, 10, 1);
            faulty_arm(&plan);
            enum err rc = f.store->vtable->append(f.store, &batch, &f.e);
            CHECK(c->name, rc == ERR_OK || rc == ERR_IO);
            if (rc == ERR_IO) {
                struct store_batch empty = { 0 };
                bool more = false;
                uint64_t epoch = 0;
                CHECK(c->name, f.store->vtable->append(f.store, &empty, &f.e) == ERR_IO);
                CHECK(c->name, f.store->vtable->claim(f.store, 0, &epoch, &f.e) == ERR_IO);
                CHECK(c->name,
                      f.store->vtable->trim(f.store, f.history.wall, &more, &f.e) == ERR_IO);
                store_free(f.store);
                f.store = NULL;
            }
            was_met = faulty_disarm();
            CHECK(c->name, was_met == (rc == ERR_IO));
            check_recovered(&f, &batch);
        }
        fixture_done(&f);
    }
}

/* ---- everything else that writes ------------------------------------------------------------- */

static enum err do_claim(struct fixture *f)
{
    uint64_t epoch = 0;
    return f->store->vtable->claim(f->store, 0, &epoch, &f->e);
}

static enum err do_snapshot(struct fixture *f)
{
    return store_save_snapshot(f->store, f->history.sequence, STR("state"), 10, &f->e);
}

static enum err do_trim(struct fixture *f)
{
    bool more = true;
    enum err rc = ERR_OK;
    while (rc == ERR_OK && more)
        rc = f->store->vtable->trim(f->store, f->history.wall, &more, &f->e);
    return rc;
}

static enum err do_maintain(struct fixture *f)
{
    return f->store->vtable->maintain(f->store, 1000, &f->e);
}

static enum err do_copy_log(struct fixture *f)
{
    return f->store->vtable->copy_log(f->store, &f->e);
}

static enum err do_rebuild(struct fixture *f)
{
    return f->store->vtable->rebuild(f->store, history_decode, &f->history, &f->e);
}

static enum err do_open(struct fixture *f)
{
    store_free(f->store);
    f->store = NULL;
    return store_sqlite_open(f->path, NULL, &f->store, &f->e);
}

static const struct {
    const char *name;
    enum err (*run)(struct fixture *f);
} work_cases[] = {
    { "claim", do_claim },       { "snapshot", do_snapshot }, { "trim", do_trim },
    { "maintain", do_maintain }, { "copy", do_copy_log },     { "rebuild", do_rebuild },
    { "open", do_open },
};

/* Enough that there is something to archive, to checkpoint and to recover from. */
static void fill(struct fixture *f)
{
    for (size_t i = 0; i < 12; i++)
        append(f, 100);
    CHECK_OK("snapshot", do_snapshot(f), &f->e);
    for (size_t i = 0; i < 2; i++)
        append(f, 100);
    CHECK_OK("snapshot", do_snapshot(f), &f->e);
}

enum { SAMPLES = 12 };

static void work_under_faults(struct fixture *f, const char *name,
                              enum err (*run)(struct fixture *f), struct faulty_plan plan,
                              uint64_t step)
{
    struct store_batch none = { 0 };
    bool was_met = true;
    /* What a run writes grows with what was appended, so that the end may never be met: a
     * sample. */
    for (unsigned rounds = 0; was_met && rounds < SAMPLES; rounds++, plan.at += step) {
        append(f, 50);
        faulty_arm(&plan);
        enum err rc = run(f);
        bool is_stopped = rc != ERR_OK && rc != ERR_UNAVAILABLE;
        if (is_stopped) {
            store_free(f->store); /* as the process would end, on a disk that still fails */
            f->store = NULL;
        }
        was_met = faulty_disarm();
        if (!was_met)
            CHECK_OK(name, rc, &f->e);
        if (rc == ERR_OK || !is_stopped)
            CHECK(name, f->store == NULL || stored_events(f) == f->history.sequence);
        check_recovered(f, &none);
        CHECK(name, stored_events(f) == f->history.sequence);
    }
}

static void no_work_loses_what_was_acknowledged(void **state)
{
    static const struct faulty_plan plans[] = {
        { FAULTY_WRITE, FAULTY_FULL, FAULTY_ANY, 0, true },
        { FAULTY_WRITE, FAULTY_EIO, FAULTY_ANY, 0, false },
        { FAULTY_SYNC, FAULTY_EIO, FAULTY_ANY, 0, true },
        { FAULTY_WRITE, FAULTY_TORN, FAULTY_ANY, 0, true },
        { FAULTY_READ, FAULTY_EIO, FAULTY_ANY, 0, false },
        { FAULTY_TRUNCATE, FAULTY_EIO, FAULTY_ANY, 0, true },
        { FAULTY_OPEN, FAULTY_EIO, FAULTY_ANY, 0, true },
    };
    (void)state;
    uint64_t seed = test_seed();
    uint64_t steps = seed;
    FOR_EACH_CASE (c, work_cases) {
        FOR_EACH_CASE (plan, plans) {
            struct fixture f;
            fixture_init(&f, seed);
            fill(&f);
            struct faulty_plan first = *plan;
            first.at = 1;
            work_under_faults(&f, c->name, c->run, first, 1 + test_below(&steps, 200));
            fixture_done(&f);
        }
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void a_store_is_made_and_copied_whole_or_not_at_all(void **state)
{
    (void)state;
    struct fixture f;
    char copy[256];
    char again[256];
    fixture_init(&f, test_seed());
    fill(&f);
    (void)test_dir_path(&f.dir, "copy.db", copy);
    (void)test_dir_path(&f.dir, "again.db", again);
    bool was_met = true;
    for (uint64_t at = 1; was_met; at += 5) {
        struct faulty_plan plan = { at % 2 != 0 ? FAULTY_WRITE : FAULTY_SYNC,
                                    at % 3 != 0 ? FAULTY_EIO : FAULTY_FULL, FAULTY_ANY, at, true };
        faulty_arm(&plan);
        enum err rc = store_sqlite_backup(f.path, copy, &f.e);
        was_met = faulty_disarm();
        CHECK("whole or nothing", (rc == ERR_OK) == (access(copy, F_OK) == 0));
        (void)unlink(copy);
    }
    CHECK_OK("backup", store_sqlite_backup(f.path, copy, &f.e), &f.e);
    was_met = true;
    for (uint64_t at = 1; was_met; at += 5) {
        struct faulty_plan plan = { FAULTY_WRITE, at % 3 != 0 ? FAULTY_EIO : FAULTY_FULL,
                                    FAULTY_ANY, at, true };
        faulty_arm(&plan);
        enum err rc = store_sqlite_restore(copy, again, 5, &f.e);
        was_met = faulty_disarm();
        CHECK("whole or nothing", (rc == ERR_OK) == (access(again, F_OK) == 0));
        (void)unlink(again);
    }
    was_met = true;
    for (uint64_t at = 1; was_met; at++) {
        struct faulty_plan plan = { FAULTY_WRITE, FAULTY_TORN, FAULTY_ANY, at, true };
        faulty_arm(&plan);
        enum err rc = store_sqlite_create(again, &f.e);
        was_met = faulty_disarm();
        CHECK("whole or nothing", (rc == ERR_OK) == (access(again, F_OK) == 0));
        (void)unlink(again);
    }
    CHECK("the original", stored_events(&f) == f.history.sequence);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_changes_nothing_and_passes),
        cmocka_unit_test(an_unknown_outcome_ends_all_writing),
        cmocka_unit_test(no_work_loses_what_was_acknowledged),
        cmocka_unit_test(a_store_is_made_and_copied_whole_or_not_at_all),
    };
    faulty_register();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
