/*
 * damage.c - bytes of the file change behind the store's back. Whatever is opened then either
 * refuses or shows what was written: never anything else.
 */
#include <fcntl.h>
#include <string.h>

#include "os/file.h"
#include "unit/store/dump.h"
#include "unit/store/faulty_vfs.h"
#include "unit/store/history.h"
#include "unit/test.h"
#include "unit/test_dir.h"

enum { PAGE = 4096, LOOKS = 200, FILE_MAX = 64 << 20 };

struct specimen {
    struct test_dir dir;
    char path[256];
    char log_path[256];
    char mark_path[256];
    struct history history;
    struct buf bytes, log, mark; /* the files */
    struct buf shown;            /* all that can be seen */
    size_t refused, intact;
};

static void read_whole(const char *path, struct buf *out)
{
    struct error e;
    buf_clear(out);
    CHECK_OK(path, file_read(path, FILE_MAX, out, &e), &e);
}

static void write_whole(const char *path, const struct buf *bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(path, fd >= 0);
    CHECK(path, bytes->size == 0 || write(fd, bytes->data, bytes->size) == (ssize_t)bytes->size);
    CHECK(path, close(fd) == 0);
}

static enum err show_snapshot(struct store *store, struct buf *out, struct error *e)
{
    AUTO(buf) struct buf snapshot = { 0 };
    uint64_t sequence = 0;
    enum err rc = store->vtable->load_snapshot(store, &sequence, &snapshot, e);
    if (rc == ERR_OK)
        buf_format(out, "snapshot %llu %s\n", (unsigned long long)sequence, snapshot.data);
    return rc;
}

static enum err show(const char *path, const struct history *history, struct buf *out,
                     struct error *e)
{
    AUTO(store) struct store *store = NULL;
    AUTO(query) struct query *query = NULL;
    enum err rc = store_sqlite_open(path, NULL, &store, e);
    if (rc == ERR_OK)
        rc = dump_store(store, history, out, e);
    if (rc == ERR_OK)
        rc = show_snapshot(store, out, e);
    if (rc == ERR_OK)
        rc = query_open_sqlite(path, &query, e);
    return rc == ERR_OK ? dump_queries(query, history, out, e) : rc;
}

static struct store *make_store(struct specimen *s, const char *path, uint64_t seed)
{
    struct error e;
    struct store *store = NULL;
    uint64_t epoch = 0;
    bool more = true;
    history_init(&s->history, seed);
    s->history.body_max = 40;
    CHECK_OK("create", store_sqlite_create(path, &e), &e);
    CHECK_OK("open", store_sqlite_open(path, NULL, &store, &e), &e);
    CHECK_OK("claim", store->vtable->claim(store, 0, &epoch, &e), &e);
    for (size_t i = 0; i < 13; i++) {
        struct store_batch batch = history_batch(&s->history, 100, 1);
        CHECK_OK("append", store->vtable->append(store, &batch, &e), &e);
    }
    for (uint64_t at = 1100; at <= 1300; at += 100)
        CHECK_OK("save", store_save_snapshot(store, at, STR("the whole state"), 0, &e), &e);
    while (more)
        CHECK_OK("trim", store->vtable->trim(store, (struct wall){ 0 }, &more, &e), &e);
    return store;
}

static void specimen_init(struct specimen *s)
{
    struct error e;
    *s = (struct specimen){ .dir = test_dir_new() };
    (void)test_dir_path(&s->dir, "store.db", s->path);
    (void)test_dir_path(&s->dir, "store.db-wal", s->log_path);
    (void)test_dir_path(&s->dir, "store.db.lock", s->mark_path);
    store_free(make_store(s, s->path, test_seed()));
    CHECK_OK("show", show(s->path, &s->history, &s->shown, &e), &e);
    read_whole(s->path, &s->bytes);
    read_whole(s->mark_path, &s->mark);
}

static void specimen_done(struct specimen *s)
{
    print_message("# refused %zu, intact %zu\n", s->refused, s->intact);
    history_done(&s->history);
    buf_done(&s->bytes);
    buf_done(&s->log);
    buf_done(&s->mark);
    buf_done(&s->shown);
    test_dir_remove(&s->dir);
}

/* Opens what is on disk now. */
static void check_refused_or_intact(struct specimen *s, const char *what)
{
    struct error e = { 0 };
    AUTO(buf) struct buf shown = { 0 };
    enum err rc = show(s->path, &s->history, &shown, &e);
    if (rc == ERR_OK) {
        CHECK(what, str_eq(buf_str(&shown), buf_str(&s->shown)));
        s->intact++;
        return;
    }
    s->refused++;
    if (rc != ERR_CORRUPT)
        print_error("%s: %s: %s\n", what, err_name(rc), e.text);
    CHECK(what, rc == ERR_CORRUPT && e.text[0] != '\0');
}

static void check_file(struct specimen *s, const struct buf *bytes, const char *what)
{
    (void)unlink(s->log_path);
    write_whole(s->path, bytes);
    check_refused_or_intact(s, what);
}

static void flipped_bytes_are_never_served(void **state)
{
    (void)state;
    struct specimen s;
    specimen_init(&s);
    uint64_t random = s.history.random;
    for (size_t i = 0; i < LOOKS; i++) {
        size_t at = test_below(&random, s.bytes.size);
        char was = s.bytes.data[at];
        s.bytes.data[at] = (char)(was ^ (1 << test_below(&random, 8)));
        check_file(&s, &s.bytes, "a flipped bit");
        s.bytes.data[at] = was;
    }
    for (size_t at = 0; at < 100; at++) {
        char was = s.bytes.data[at];
        s.bytes.data[at] = (char)~was;
        check_file(&s, &s.bytes, "a flipped header byte");
        s.bytes.data[at] = was;
    }
    CHECK("most of it is in use", s.refused > s.intact);
    check_file(&s, &s.bytes, "unharmed");
    specimen_done(&s);
}

static void pages_in_the_wrong_place_are_never_served(void **state)
{
    (void)state;
    struct specimen s;
    struct specimen other = { 0 };
    char other_path[256];
    specimen_init(&s);
    uint64_t random = s.history.random;
    (void)test_dir_path(&s.dir, "other.db", other_path);
    store_free(make_store(&other, other_path, random));
    read_whole(other_path, &other.bytes);
    AUTO(buf) struct buf bytes = { 0 };
    for (size_t i = 0; i < LOOKS / 4; i++) {
        size_t page = test_below(&random, s.bytes.size / PAGE);
        size_t from = test_below(&random, s.bytes.size / PAGE);
        buf_clear(&bytes);
        buf_add_str(&bytes, buf_str(&s.bytes));
        memset(bytes.data + page * PAGE, 0, PAGE);
        check_file(&s, &bytes, "a zeroed page");
        memcpy(bytes.data + page * PAGE, s.bytes.data + from * PAGE, PAGE);
        check_file(&s, &bytes, "a repeated page");
        memcpy(bytes.data + from * PAGE, s.bytes.data + page * PAGE, PAGE);
        check_file(&s, &bytes, "swapped pages");
        buf_clear(&bytes);
        buf_add_str(&bytes, buf_str(&s.bytes));
        if ((page + 1) * PAGE > other.bytes.size)
            continue;
        memcpy(bytes.data + page * PAGE, other.bytes.data + page * PAGE, PAGE);
        check_file(&s, &bytes, "a page of another store");
    }
    CHECK("most of it is in use", s.refused > s.intact);
    history_done(&other.history);
    buf_done(&other.bytes);
    specimen_done(&s);
}

static void a_cut_file_is_refused(void **state)
{
    (void)state;
    struct specimen s;
    specimen_init(&s);
    uint64_t random = s.history.random;
    size_t whole = s.bytes.size;
    for (size_t i = 0; i < LOOKS / 4; i++) {
        size_t pages = test_below(&random, whole / PAGE);
        s.bytes.size = pages * PAGE;
        check_file(&s, &s.bytes, "cut at a page");
        s.bytes.size += 1 + test_below(&random, PAGE - 1);
        check_file(&s, &s.bytes, "cut in a page");
    }
    CHECK("every time", s.intact == 0);
    s.bytes.size = whole;
    specimen_done(&s);
}

/* A log with batches in it that are not yet in the file: as a kill leaves it. */
static void make_log(struct specimen *s)
{
    struct error e;
    uint64_t epoch = 0;
    struct store *store = NULL;
    write_whole(s->path, &s->bytes);
    CHECK_OK("open", store_sqlite_open(s->path, NULL, &store, &e), &e);
    CHECK_OK("claim", store->vtable->claim(store, 0, &epoch, &e), &e);
    for (size_t i = 0; i < 3; i++) {
        struct store_batch batch = history_batch(&s->history, 20, 1);
        CHECK_OK("append", store->vtable->append(store, &batch, &e), &e);
    }
    read_whole(s->path, &s->bytes);
    read_whole(s->log_path, &s->log);
    read_whole(s->mark_path, &s->mark);
    store_free(store);
    buf_clear(&s->shown);
    CHECK_OK("show", show(s->path, &s->history, &s->shown, &e), &e);
}

static void check_log(struct specimen *s, const char *what)
{
    write_whole(s->path, &s->bytes);
    write_whole(s->log_path, &s->log);
    write_whole(s->mark_path, &s->mark);
    check_refused_or_intact(s, what);
}

static void a_damaged_log_loses_nothing_silently(void **state)
{
    (void)state;
    struct specimen s;
    specimen_init(&s);
    make_log(&s);
    uint64_t random = s.history.random;
    check_log(&s, "unharmed");
    CHECK("unharmed", s.intact == 1);
    for (size_t i = 0; i < LOOKS / 2; i++) {
        size_t at = test_below(&random, s.log.size);
        char was = s.log.data[at];
        s.log.data[at] = (char)(was ^ (1 << test_below(&random, 8)));
        check_log(&s, "a flipped bit");
        s.log.data[at] = was;
    }
    size_t whole = s.log.size;
    for (size_t i = 0; i < LOOKS / 4; i++) {
        s.log.size = test_below(&random, whole);
        check_log(&s, "a cut log");
    }
    s.log.size = whole;
    CHECK("nearly all of it matters", s.refused > LOOKS / 2);
    specimen_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bytes_are_never_served),
        cmocka_unit_test(pages_in_the_wrong_place_are_never_served),
        cmocka_unit_test(a_cut_file_is_refused),
        cmocka_unit_test(a_damaged_log_loses_nothing_silently),
    };
    faulty_register();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
