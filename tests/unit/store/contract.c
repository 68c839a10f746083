/* contract.c - one suite for every kind of store: what store.h and query.h promise. */
#include <string.h>

#include "store/journal.h"
#include "unit/store/dump.h"
#include "unit/store/faulty_vfs.h"
#include "unit/store/history.h"
#include "unit/test.h"
#include "unit/test_dir.h"

struct kind {
    const char *name;
    bool is_file;
};

static const struct kind kinds[] = { { "memory", false }, { "sqlite", true } };

struct fixture {
    const struct kind *kind;
    struct test_dir dir;
    char path[256];
    struct store_retention retention;
    struct store *store;
    struct history history;
    struct error e;
};

static void fixture_open(struct fixture *f)
{
    uint64_t epoch = 0;
    if (f->kind->is_file) {
        store_free(f->store);
        f->store = NULL;
        CHECK_OK("open", store_sqlite_open(f->path, &f->retention, &f->store, &f->e), &f->e);
    } else if (f->store == NULL) {
        f->store = store_memory_new();
    }
    if (!f->kind->is_file)
        store_memory_retain(f->store, &f->retention);
    CHECK_OK("claim", f->store->vtable->claim(f->store, 0, &epoch, &f->e), &f->e);
}

static void fixture_init(struct fixture *f, const struct kind *kind, uint64_t seed)
{
    *f = (struct fixture){ .kind = kind };
    history_init(&f->history, seed);
    if (kind->is_file) {
        f->dir = test_dir_new();
        (void)test_dir_path(&f->dir, "store.db", f->path);
        CHECK_OK("create", store_sqlite_create(f->path, &f->e), &f->e);
    }
    fixture_open(f);
}

static void fixture_done(struct fixture *f)
{
    store_free(f->store);
    history_done(&f->history);
    test_dir_remove(&f->dir);
}

static void append(struct fixture *f, size_t events, size_t answers)
{
    struct store_batch batch = history_batch(&f->history, events, answers);
    CHECK_OK("append", f->store->vtable->append(f->store, &batch, &f->e), &f->e);
}

static struct query *open_query(struct fixture *f)
{
    struct query *query = NULL;
    if (!f->kind->is_file)
        return query_open_memory(f->store);
    CHECK_OK("query", query_open_sqlite(f->path, &query, &f->e), &f->e);
    return query;
}

/* All that can be seen of the store. */
static struct buf dump(struct fixture *f)
{
    struct buf out = { 0 };
    AUTO(query) struct query *query = open_query(f);
    CHECK_OK("dump", dump_store(f->store, &f->history, &out, &f->e), &f->e);
    CHECK_OK("dump", dump_queries(query, &f->history, &out, &f->e), &f->e);
    return out;
}

static enum err collect_row(void *arg, const struct store_row *row, struct error *e)
{
    (void)e;
    dump_row(arg, row);
    return ERR_OK;
}

/* The journal after `after` is the history, to the letter. */
static void check_journal(struct fixture *f, uint64_t after)
{
    AUTO(buf) struct buf stored = { 0 };
    AUTO(buf) struct buf made = { 0 };
    CHECK_OK("read", f->store->vtable->read_events(f->store, after, collect_row, &stored, &f->e),
             &f->e);
    for (size_t i = (size_t)after; i < f->history.events.count; i++) {
        const struct store_event *event = &f->history.events.items[i];
        const struct store_row row = journal_row_of(event);
        dump_row(&made, &row);
    }
    CHECK("journal", str_eq(buf_str(&stored), buf_str(&made)));
}

/* ---- appending ------------------------------------------------------------------------------- */

static void gives_back_what_was_appended(struct fixture *f)
{
    for (size_t i = 0; i < 20; i++) {
        append(f, 1 + test_below(&f->history.random, 60), test_below(&f->history.random, 3));
        if (i % 7 == 3)
            fixture_open(f);
    }
    check_journal(f, 0);
    check_journal(f, 17);
    check_journal(f, f->history.sequence);
}

static void an_empty_batch_sets_the_clock(struct fixture *f)
{
    AUTO(arena) struct arena arena = { 0 };
    struct store_clock clock;
    CHECK("no clock yet",
          f->store->vtable->read_clock(f->store, &clock, &arena, &f->e) == ERR_NOT_FOUND);
    struct store_batch batch = { .clock = { STR("boot"), 5, { 6 }, { 7 } } };
    CHECK_OK("append", f->store->vtable->append(f->store, &batch, &f->e), &f->e);
    fixture_open(f);
    CHECK_OK("clock", f->store->vtable->read_clock(f->store, &clock, &arena, &f->e), &f->e);
    CHECK("clock", str_is(clock.boot_id, "boot") && clock.boottime_ns == 5 && clock.mono.ns == 6 &&
                       clock.wall.ns == 7);
    check_journal(f, 0);
    append(f, 3, 0);
    check_journal(f, 0);
}

static void refuses_batches_out_of_order(struct fixture *f)
{
    append(f, 10, 1);
    AUTO(buf) struct buf before = dump(f);
    struct store_batch later = history_batch(&f->history, 5, 1);
    struct store_batch gap = later;
    gap.events++;
    gap.event_count--;
    CHECK("a gap", f->store->vtable->append(f->store, &gap, &f->e) == ERR_INVALID);
    struct store_event twice[2] = { later.events[0], later.events[0] };
    struct store_batch repeated = later;
    repeated.events = twice;
    repeated.event_count = 2;
    CHECK("a repeat", f->store->vtable->append(f->store, &repeated, &f->e) == ERR_INVALID);
    history_take_back(&f->history, &later);
    AUTO(buf) struct buf after = dump(f);
    CHECK("nothing changed", str_eq(buf_str(&before), buf_str(&after)));
    append(f, 10, 0);
    check_journal(f, 0);
}

static void refuses_a_batch_with_a_taken_key_as_a_whole(struct fixture *f)
{
    append(f, 200, 0);
    const struct event *old = NULL;
    for (size_t i = 0; i < f->history.events.count; i++)
        if (f->history.events.items[i].event->type == EV_WORKLOAD_SUBMITTED)
            old = f->history.events.items[i].event;
    CHECK("one was submitted", old != NULL);
    AUTO(buf) struct buf before = dump(f);
    struct event first = { .type = EV_SETTINGS_CHANGED, .version = 1 };
    struct event second = *old;
    first.sequence = f->history.sequence + 1;
    second.sequence = f->history.sequence + 2;
    struct store_event events[2] = { { .event = &first }, { .event = &second } };
    struct store_batch batch = { .events = events, .event_count = 2, .clock = f->history.clock };
    CHECK("taken", f->store->vtable->append(f->store, &batch, &f->e) == ERR_CONFLICT);
    AUTO(buf) struct buf after = dump(f);
    CHECK("nothing changed", str_eq(buf_str(&before), buf_str(&after)));
    append(f, 10, 0);
    check_journal(f, 0);
}

static void bills_an_allocation_once(struct fixture *f)
{
    append(f, 600, 0);
    const struct event *old = NULL;
    for (size_t i = 0; i < f->history.events.count; i++) {
        const struct event *ev = f->history.events.items[i].event;
        if (ev->type == EV_ALLOCATION_CHANGED && ev->allocation_changed.has_segment)
            old = ev;
    }
    CHECK("one was billed", old != NULL);
    struct event again = *old;
    again.sequence = f->history.sequence + 1;
    struct store_event event = { .event = &again };
    struct store_batch batch = { .events = &event, .event_count = 1, .clock = f->history.clock };
    CHECK("billed", f->store->vtable->append(f->store, &batch, &f->e) == ERR_CONFLICT);
}

/* ---- leadership ------------------------------------------------------------------------------ */

static void only_the_newest_epoch_appends(struct fixture *f)
{
    uint64_t epoch = 0;
    uint64_t first = f->store->epoch;
    CHECK_OK("claim", f->store->vtable->claim(f->store, 0, &epoch, &f->e), &f->e);
    CHECK("raised by one", epoch == first + 1 && f->store->epoch == epoch);
    CHECK_OK("claim", f->store->vtable->claim(f->store, 100, &epoch, &f->e), &f->e);
    CHECK("at least", epoch == 100);
    CHECK_OK("claim", f->store->vtable->claim(f->store, 50, &epoch, &f->e), &f->e);
    CHECK("never lowered", epoch == 101);

    struct store_batch batch = history_batch(&f->history, 3, 0);
    f->store->epoch = 100;
    CHECK("fenced", f->store->vtable->append(f->store, &batch, &f->e) == ERR_CONFLICT);
    CHECK("fenced", store_save_snapshot(f->store, 1, STR("x"), 0, &f->e) == ERR_CONFLICT);
    f->store->epoch = 0;
    CHECK("not claimed", f->store->vtable->append(f->store, &batch, &f->e) == ERR_CONFLICT);
    f->store->epoch = 101;
    CHECK_OK("leads", f->store->vtable->append(f->store, &batch, &f->e), &f->e);
    fixture_open(f);
    CHECK("kept over a restart", f->store->epoch == 102);
    check_journal(f, 0);
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum err count_answer(void *arg, const struct store_answer *answer, struct error *e)
{
    size_t *count = arg;
    (void)answer;
    (void)e;
    ++*count;
    return ERR_OK;
}

static void keeps_answers_until_they_expire(struct fixture *f)
{
    AUTO(arena) struct arena arena = { 0 };
    struct store_answer answer = { .number = 1,
                                   .key = { { 1 } },
                                   .status = 201,
                                   .content = STR("one"),
                                   .version = 9,
                                   .expires = { 100 } };
    struct store_batch batch = { .answers = &answer, .answer_count = 1 };
    CHECK_OK("append", f->store->vtable->append(f->store, &batch, &f->e), &f->e);
    answer.number = 2;
    answer.content = STR("two");
    answer.status = 409;
    CHECK_OK("replace", f->store->vtable->append(f->store, &batch, &f->e), &f->e);

    AUTO(query) struct query *query = open_query(f);
    struct store_answer found;
    struct answer_lookup lookup = { 2, answer.key, { 99 } };
    CHECK_OK("find", query_answer(query, &lookup, &arena, &found, &f->e), &f->e);
    CHECK("the newest", str_is(found.content, "two") && found.status == 409 && found.version == 9);
    lookup.now = (struct wall){ 100 };
    CHECK("expired", query_answer(query, &lookup, &arena, &found, &f->e) == ERR_NOT_FOUND);
    lookup = (struct answer_lookup){ 2, { { 2 } }, { 0 } };
    CHECK("unknown", query_answer(query, &lookup, &arena, &found, &f->e) == ERR_NOT_FOUND);
    lookup = (struct answer_lookup){ 3, answer.key, { 0 } };
    CHECK("no such number", query_answer(query, &lookup, &arena, &found, &f->e) == ERR_NOT_FOUND);

    size_t count = 0;
    bool more = true;
    while (more)
        CHECK_OK("trim", f->store->vtable->trim(f->store, (struct wall){ 100 }, &more, &f->e),
                 &f->e);
    CHECK_OK("read", f->store->vtable->read_answers(f->store, count_answer, &count, &f->e), &f->e);
    CHECK("trimmed", count == 0);
}

/* ---- snapshots and archive ------------------------------------------------------------------- */

static void gives_back_the_newest_snapshot(struct fixture *f)
{
    AUTO(buf) struct buf bytes = { 0 };
    uint64_t sequence = 0;
    CHECK("none yet",
          f->store->vtable->load_snapshot(f->store, &sequence, &bytes, &f->e) == ERR_NOT_FOUND);
    CHECK("of nothing", store_save_snapshot(f->store, 0, STR("x"), 0, &f->e) == ERR_INVALID);
    append(f, 50, 0);
    CHECK("ahead", store_save_snapshot(f->store, f->history.sequence + 1, STR("x"), 0, &f->e) ==
                       ERR_INVALID);
    char text[32];
    for (uint64_t at = 1; at <= 10; at++) {
        (void)snprintf(text, sizeof(text), "state %d", (int)at);
        CHECK_OK("save", store_save_snapshot(f->store, at, str_of(text), 0, &f->e), &f->e);
    }
    CHECK_OK("again", store_save_snapshot(f->store, 10, STR(""), 0, &f->e), &f->e);
    CHECK_OK("load", f->store->vtable->load_snapshot(f->store, &sequence, &bytes, &f->e), &f->e);
    CHECK("empty", sequence == 10 && bytes.size == 0);
    CHECK_OK("save", store_save_snapshot(f->store, 11, STR("a\0b"), 1000, &f->e), &f->e);
    fixture_open(f);
    CHECK_OK("load", f->store->vtable->load_snapshot(f->store, &sequence, &bytes, &f->e), &f->e);
    CHECK("newest", sequence == 11 && bytes.size == 3 && memcmp(bytes.data, "a\0b", 3) == 0);
}

static void trim_all(struct fixture *f, struct wall now)
{
    bool more = true;
    while (more)
        CHECK_OK("trim", f->store->vtable->trim(f->store, now, &more, &f->e), &f->e);
}

static void an_archived_journal_reads_the_same(struct fixture *f)
{
    struct wall start = { 0 };
    for (size_t i = 0; i < 30; i++)
        append(f, 200, 0);
    AUTO(buf) struct buf before = dump(f);
    for (uint64_t at = 1000; at <= f->history.sequence; at += 1000)
        CHECK_OK("save", store_save_snapshot(f->store, at, STR("s"), 1500, &f->e), &f->e);
    trim_all(f, start);
    CHECK_OK("maintain", f->store->vtable->maintain(f->store, 1000, &f->e), &f->e);
    AUTO(buf) struct buf after = dump(f);
    CHECK("the same", str_eq(buf_str(&before), buf_str(&after)));
    fixture_open(f);
    for (uint64_t at = 0; at <= f->history.sequence; at += 333)
        check_journal(f, at);
    append(f, 200, 0);
    check_journal(f, 0);
    AUTO(buf) struct buf text = { 0 };
    CHECK("beyond the end",
          f->store->vtable->read_events(f->store, f->history.sequence + 1, collect_row, &text,
                                        &f->e) == ERR_CORRUPT);
}

/* ---- retention ------------------------------------------------------------------------------- */

static enum err count_workload(void *arg, const struct ended_workload *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    (void)e;
    ++*count;
    return ERR_OK;
}

static enum err count_usage(void *arg, const struct usage_row *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    (void)e;
    ++*count;
    return ERR_OK;
}

static enum err count_audit(void *arg, const struct audit_row *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    (void)e;
    ++*count;
    return ERR_OK;
}

static enum err count_row(void *arg, const struct store_row *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    (void)e;
    ++*count;
    return ERR_OK;
}

struct counts {
    size_t workloads, usage, audit;
};

static struct counts count_all(struct fixture *f)
{
    struct counts counts = { 0 };
    struct query_page page = { .limit = 1000 };
    AUTO(query) struct query *query = open_query(f);
    CHECK_OK("list", query_ended_workloads(query, &page, count_workload, &counts.workloads, &f->e),
             &f->e);
    CHECK_OK("list", query_usage(query, &page, count_usage, &counts.usage, &f->e), &f->e);
    CHECK_OK("list", query_audit(query, &page, count_audit, &counts.audit, &f->e), &f->e);
    return counts;
}

static void removes_each_kind_after_its_own_time(struct fixture *f)
{
    const int64_t day = INT64_C(86400) * NS_PER_S;
    f->retention =
        (struct store_retention){ .workload_days = 10, .usage_days = 20, .audit_days = 30 };
    fixture_open(f);
    append(f, 900, 0);
    struct wall now = f->history.wall;
    struct counts all = count_all(f);
    CHECK("something ended",
          all.workloads > 10 && all.usage > 10 && all.audit == f->history.sequence);
    trim_all(f, (struct wall){ now.ns + 9 * day });
    struct counts kept = count_all(f);
    CHECK("all kept", memcmp(&kept, &all, sizeof(all)) == 0);
    trim_all(f, (struct wall){ now.ns + 11 * day });
    kept = count_all(f);
    CHECK("workloads gone",
          kept.workloads == 0 && kept.usage == all.usage && kept.audit == all.audit);
    trim_all(f, (struct wall){ now.ns + 21 * day });
    kept = count_all(f);
    CHECK("usage gone", kept.usage == 0 && kept.audit == all.audit);
    trim_all(f, (struct wall){ now.ns + 31 * day });
    CHECK("audit gone", count_all(f).audit == 0);
    check_journal(f, 0);
    append(f, 100, 0); /* changes of what retention took are no error */
    check_journal(f, 0);
}

static void drops_old_journal_only_behind_snapshots(struct fixture *f)
{
    const int64_t day = INT64_C(86400) * NS_PER_S;
    size_t count = 0;
    f->retention = (struct store_retention){ .journal_days = 5 };
    fixture_open(f);
    for (size_t i = 0; i < 30; i++)
        append(f, 200, 0);
    struct wall late = { f->history.wall.ns + 6 * day };
    trim_all(f, late);
    check_journal(f, 0); /* no snapshot: every event is needed */
    for (uint64_t at = 3500; at <= 5500; at += 500)
        CHECK_OK("save", store_save_snapshot(f->store, at, STR("s"), 0, &f->e), &f->e);
    trim_all(f, late);
    CHECK("dropped",
          f->store->vtable->read_events(f->store, 0, count_row, &count, &f->e) == ERR_NOT_FOUND);
    check_journal(f, 4500); /* the oldest snapshot kept */
    CHECK("no rebuild",
          f->store->vtable->rebuild(f->store, history_decode, &f->history, &f->e) == ERR_CONFLICT);
    CHECK("audit stays", count_all(f).audit == 1000);
    fixture_open(f);
    append(f, 10, 0);
    check_journal(f, 4500);
    check_journal(f, 5500);
}

/* ---- projections ----------------------------------------------------------------------------- */

static void rebuild_gives_the_same_projections(struct fixture *f)
{
    for (size_t i = 0; i < 15; i++)
        append(f, 200, 1);
    for (uint64_t at = 1000; at <= f->history.sequence; at += 500)
        CHECK_OK("save", store_save_snapshot(f->store, at, STR("s"), 0, &f->e), &f->e);
    trim_all(f, (struct wall){ 0 });
    AUTO(buf) struct buf before = dump(f);
    AUTO(buf) struct buf tables_before = { 0 };
    AUTO(buf) struct buf tables_after = { 0 };
    if (f->kind->is_file)
        CHECK_OK("tables", dump_tables(f->path, &tables_before, &f->e), &f->e);
    CHECK_OK("rebuild", f->store->vtable->rebuild(f->store, history_decode, &f->history, &f->e),
             &f->e);
    AUTO(buf) struct buf after = dump(f);
    CHECK("the same", str_eq(buf_str(&before), buf_str(&after)));
    if (f->kind->is_file)
        CHECK_OK("tables", dump_tables(f->path, &tables_after, &f->e), &f->e);
    CHECK("table by table", str_eq(buf_str(&tables_before), buf_str(&tables_after)));
    append(f, 50, 0);
    check_journal(f, 0);
}

static enum err refuse_decode(void *arg, const struct store_row *row, struct arena *arena,
                              struct event *out, struct error *e)
{
    if (row->sequence == 150)
        return err_set(e, ERR_CORRUPT, "of an unknown version");
    return history_decode(arg, row, arena, out, e);
}

static void a_rebuild_that_fails_changes_nothing(struct fixture *f)
{
    append(f, 300, 1);
    AUTO(buf) struct buf before = dump(f);
    CHECK("refused",
          f->store->vtable->rebuild(f->store, refuse_decode, &f->history, &f->e) == ERR_CORRUPT);
    CHECK("names the event", strstr(f->e.text, "150") != NULL);
    AUTO(buf) struct buf after = dump(f);
    CHECK("the same", str_eq(buf_str(&before), buf_str(&after)));
    append(f, 50, 0);
    check_journal(f, 0);
}

static void refuses_pages_out_of_bounds(struct fixture *f)
{
    struct counts counts = { 0 };
    append(f, 50, 0);
    AUTO(query) struct query *query = open_query(f);
    struct query_page none = { .limit = 0 };
    struct query_page much = { .limit = 1001 };
    struct query_page beyond = { .limit = 10, .after = UINT64_MAX };
    CHECK("none", query_usage(query, &none, count_usage, &counts.usage, &f->e) == ERR_INVALID);
    CHECK("too much", query_audit(query, &much, count_audit, &counts.audit, &f->e) == ERR_INVALID);
    CHECK("beyond", query_ended_workloads(query, &beyond, count_workload, &counts.workloads,
                                          &f->e) == ERR_INVALID);
    CHECK("no such", query_workload(query, (struct id){ 1, 1 }, count_workload, &counts.workloads,
                                    &f->e) == ERR_NOT_FOUND);
}

static enum err stop_at_once(void *arg, const struct store_row *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    ++*count;
    return err_set(e, ERR_RATE, "enough");
}

static void a_reader_may_stop_early(struct fixture *f)
{
    size_t count = 0;
    append(f, 50, 0);
    CHECK("its own code",
          f->store->vtable->read_events(f->store, 0, stop_at_once, &count, &f->e) == ERR_RATE);
    AUTO(query) struct query *query = open_query(f);
    struct query_page page = { .limit = 10 };
    CHECK("its own code", query_events(query, &page, stop_at_once, &count, &f->e) == ERR_RATE);
    CHECK("one row each", count == 2);
    append(f, 5, 0);
    check_journal(f, 0);
}

struct feed_walk {
    uint64_t next; /* the number that is due */
    struct id tenant;
    bool is_gapless;
};

static enum err in_feed(void *arg, const struct store_row *row, struct error *e)
{
    struct feed_walk *walk = arg;
    (void)e;
    walk->is_gapless =
        walk->is_gapless && row->tenant_sequence == walk->next && id_eq(row->tenant, walk->tenant);
    walk->next++;
    return ERR_OK;
}

static void check_feed(struct fixture *f, struct id tenant)
{
    AUTO(query) struct query *query = open_query(f);
    struct feed_walk walk = { .next = 1, .tenant = tenant, .is_gapless = true };
    struct query_page page = { .tenant = tenant, .limit = 7 };
    do {
        page.after = walk.next - 1;
        CHECK_OK("a page", query_events(query, &page, in_feed, &walk, &f->e), &f->e);
    } while (walk.next - 1 == page.after + page.limit);
    CHECK("some", walk.next > 20);
    CHECK("1, 2, 3, ... of this tenant", walk.is_gapless);
}

static void each_tenant_feed_has_numbers_of_its_own(struct fixture *f)
{
    append(f, 500, 0);
    check_feed(f, f->history.projects[0].tenant);
    check_feed(f, f->history.projects[1].tenant);
    CHECK_OK("rebuild", f->store->vtable->rebuild(f->store, history_decode, &f->history, &f->e),
             &f->e);
    check_feed(f, f->history.projects[0].tenant);
}

/* What was written before feeds had numbers is numbered as it is projected. */
static void an_old_journal_gets_feed_numbers(struct fixture *f)
{
    f->history.has_old_numbers = true;
    append(f, 500, 0);
    CHECK_OK("rebuild", f->store->vtable->rebuild(f->store, history_decode, &f->history, &f->e),
             &f->e);
    check_feed(f, f->history.projects[0].tenant);
    check_journal(f, 0);
}

/* ---- running it ------------------------------------------------------------------------------ */

struct contract_case {
    const char *name;
    void (*run)(struct fixture *f);
};

#define CASE(function)                                                                             \
    {                                                                                              \
#function, function                                                                        \
    }
static const struct contract_case contract_cases[] = {
    CASE(gives_back_what_was_appended),
    CASE(an_empty_batch_sets_the_clock),
    CASE(refuses_batches_out_of_order),
    CASE(refuses_a_batch_with_a_taken_key_as_a_whole),
    CASE(bills_an_allocation_once),
    CASE(only_the_newest_epoch_appends),
    CASE(keeps_answers_until_they_expire),
    CASE(gives_back_the_newest_snapshot),
    CASE(an_archived_journal_reads_the_same),
    CASE(removes_each_kind_after_its_own_time),
    CASE(drops_old_journal_only_behind_snapshots),
    CASE(rebuild_gives_the_same_projections),
    CASE(a_rebuild_that_fails_changes_nothing),
    CASE(refuses_pages_out_of_bounds),
    CASE(a_reader_may_stop_early),
    CASE(each_tenant_feed_has_numbers_of_its_own),
    CASE(an_old_journal_gets_feed_numbers),
};

static void every_kind_keeps_the_contract(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    FOR_EACH_CASE (c, contract_cases) {
        FOR_EACH_CASE (kind, kinds) {
            struct fixture f;
            print_message("# %s: %s\n", kind->name, c->name);
            fixture_init(&f, kind, seed);
            c->run(&f);
            fixture_done(&f);
        }
    }
}

/* The same life in two kinds of store: at every look both show the same. */
static void kinds_do_not_differ(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct fixture fixtures[COUNT_OF(kinds)];
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        fixture_init(&fixtures[i], &kinds[i], seed);
    uint64_t steps = seed;
    for (size_t step = 0; step < 60; step++) {
        size_t what = test_below(&steps, 10);
        size_t events = test_below(&steps, 300);
        struct buf dumps[COUNT_OF(kinds)] = { { 0 } };
        for (size_t i = 0; i < COUNT_OF(kinds); i++) {
            struct fixture *f = &fixtures[i];
            append(f, events, events % 3);
            if (what == 0)
                fixture_open(f);
            else if (what == 1)
                trim_all(f, f->history.wall);
            else if (what == 2)
                CHECK_OK("rebuild",
                         f->store->vtable->rebuild(f->store, history_decode, &f->history, &f->e),
                         &f->e);
            else if (what == 3 && f->history.sequence > 0)
                CHECK_OK("snapshot",
                         store_save_snapshot(f->store, f->history.sequence, STR("s"), 100, &f->e),
                         &f->e);
            if (step % 10 == 9)
                dumps[i] = dump(f);
        }
        CHECK("the same", str_eq(buf_str(&dumps[0]), buf_str(&dumps[1])));
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            buf_done(&dumps[i]);
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        fixture_done(&fixtures[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_keeps_the_contract),
        cmocka_unit_test(kinds_do_not_differ),
    };
    faulty_register();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
