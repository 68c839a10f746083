#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/logspool.h"
#include "os/fd.h"
#include "unit/test.h"
#include "unit/test_dir.h"

static const struct wall now = { 1234567890 };

/* A spool in a directory of its own, with a reader beside it. */
struct fixture {
    struct test_dir dir;
    int dir_fd;
    int reader;
    struct logspool *spool;
};

static struct fixture fixture_new(uint64_t quota)
{
    struct fixture f = { .dir = test_dir_new() };
    f.dir_fd = open(f.dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f.spool = logspool_new(f.dir_fd, quota);
    f.reader = openat(f.dir_fd, "log", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    return f;
}

static void fixture_done(struct fixture *f)
{
    logspool_free(f->spool);
    fd_close(f->reader);
    fd_close(f->dir_fd);
    test_dir_remove(&f->dir);
}
DEFINE_CLEANUP_AT(fixture, struct fixture, fixture_done)

/* What a reader makes of the whole spool. */
struct content {
    struct buf streams[LOGSPOOL_STREAM_END];
    uint64_t lost[LOGSPOOL_STREAM_END];
    size_t gaps;
    uint64_t end;
};

static void content_done(struct content *c)
{
    for (size_t s = 0; s < LOGSPOOL_STREAM_END; s++)
        buf_done(&c->streams[s]);
}
DEFINE_CLEANUP_AT(content, struct content, content_done)

static void read_all(int fd, uint64_t from, struct content *out)
{
    AUTO(buf) struct buf buffer = { 0 };
    struct logspool_record record;
    uint64_t at = from;
    uint64_t offset[LOGSPOOL_STREAM_END] = { 0 };
    enum err rc = ERR_OK;
    while ((rc = logspool_read(fd, at, &buffer, &record, NULL)) == ERR_OK) {
        CHECK("no silent hole", from > 0 || record.offset == offset[record.stream]);
        offset[record.stream] = record.offset + record.bytes.size + record.lost;
        buf_add_str(&out->streams[record.stream], record.bytes);
        out->lost[record.stream] += record.lost;
        out->gaps += record.kind == LOGSPOOL_GAP ? 1 : 0;
        at = record.next;
    }
    CHECK("ends cleanly", rc == ERR_NOT_FOUND);
    out->end = at;
}

static void random_writes_come_back_exactly(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    AUTO(fixture) struct fixture f = fixture_new(0);
    struct buf wrote[LOGSPOOL_STREAM_END];
    memset(wrote, 0, sizeof(wrote));
    AUTO(content) struct content found = { 0 };
    static char bytes[LOGSPOOL_RECORD_MAX];
    for (int i = 0; i < 200; i++) {
        size_t size = test_below(&seed, i % 10 == 0 ? sizeof(bytes) + 1 : 300);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (char)test_random(&seed);
        enum logspool_stream stream = test_below(&seed, 2) == 0 ? LOGSPOOL_STDOUT : LOGSPOOL_STDERR;
        logspool_write(f.spool, stream, (struct str){ bytes, size }, now);
        buf_add(&wrote[stream], bytes, size);
    }
    logspool_finish(f.spool, now);
    read_all(f.reader, 0, &found);
    for (enum logspool_stream s = LOGSPOOL_STDOUT; s < LOGSPOOL_STREAM_END; s++) {
        CHECK("bytes", str_eq(buf_str(&found.streams[s]), buf_str(&wrote[s])));
        buf_done(&wrote[s]);
    }
    CHECK("gaps", found.gaps == 0 && found.end == logspool_size(f.spool));
}

static void a_quota_becomes_one_counted_gap(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new(1000);
    AUTO(content) struct content found = { 0 };
    char bytes[100];
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 50; i++)
        logspool_write(f.spool, LOGSPOOL_STDOUT, (struct str){ bytes, sizeof(bytes) }, now);
    CHECK("within", logspool_size(f.spool) <= 1000);
    logspool_finish(f.spool, now);
    read_all(f.reader, 0, &found);
    CHECK("one gap", found.gaps == 1);
    CHECK("counted", found.streams[LOGSPOOL_STDOUT].size + found.lost[LOGSPOOL_STDOUT] == 5000);
}

static void acknowledged_bytes_make_room(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new(1000);
    AUTO(content) struct content found = { 0 };
    struct error e = { 0 };
    char bytes[100];
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 20; i++)
        logspool_write(f.spool, LOGSPOOL_STDOUT, (struct str){ bytes, sizeof(bytes) }, now);
    CHECK_OK("ack", logspool_ack(f.dir_fd, logspool_size(f.spool), &e), &e);
    CHECK("noted", logspool_acked(f.dir_fd) == logspool_size(f.spool));
    uint64_t from = logspool_size(f.spool);
    logspool_write(f.spool, LOGSPOOL_STDOUT, STR("again"), now);
    read_all(f.reader, from, &found);
    CHECK("the gap first", found.gaps == 1 && found.lost[LOGSPOOL_STDOUT] == 2000 - 7 * 100);
    CHECK("then the bytes", str_is(buf_str(&found.streams[LOGSPOOL_STDOUT]), "again"));
    CHECK("beyond the end", logspool_ack(f.dir_fd, 1 << 20, NULL) == ERR_INVALID);
    CHECK_OK("backwards changes nothing", logspool_ack(f.dir_fd, 1, &e), &e);
    CHECK("still", logspool_acked(f.dir_fd) == from);
}

static void space_is_given_back(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new(0);
    static char bytes[LOGSPOOL_RECORD_MAX];
    struct error e = { 0 };
    struct stat before;
    struct stat after;
    for (int i = 0; i < 32; i++)
        logspool_write(f.spool, LOGSPOOL_STDOUT, (struct str){ bytes, sizeof(bytes) }, now);
    CHECK("written", fstat(f.reader, &before) == 0);
    CHECK_OK("ack", logspool_ack(f.dir_fd, logspool_size(f.spool), &e), &e);
    CHECK("the size stays", fstat(f.reader, &after) == 0 && after.st_size == before.st_size);
    CHECK("the blocks go", after.st_blocks <= before.st_blocks / 4);
}

static void a_reader_waits_for_a_whole_record(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new(0);
    AUTO(buf) struct buf buffer = { 0 };
    struct logspool_record record;
    logspool_write(f.spool, LOGSPOOL_STDERR, STR("0123456789"), now);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/log", f.dir.path);
    for (off_t size = LOGSPOOL_HEADER_SIZE + 9; size >= 0; size--) {
        CHECK("cut", truncate(path, size) == 0);
        CHECK("not yet", logspool_read(f.reader, 0, &buffer, &record, NULL) == ERR_NOT_FOUND);
    }
}

static void silence_makes_no_file(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(fd) int dir_fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(logspool) struct logspool *spool = logspool_new(dir_fd, 0);
    logspool_write(spool, LOGSPOOL_STDOUT, STR(""), now);
    logspool_finish(spool, now);
    CHECK("none", faccessat(dir_fd, "log", F_OK, 0) != 0);
}

static void what_is_no_record_is_told(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new(0);
    AUTO(buf) struct buf buffer = { 0 };
    struct logspool_record record;
    logspool_write(f.spool, LOGSPOOL_STDOUT, STR("0123456789012345678901234567890123456789"), now);
    for (uint64_t at = 1; at < LOGSPOOL_HEADER_SIZE; at++)
        CHECK("inside", logspool_read(f.reader, at, &buffer, &record, NULL) == ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_writes_come_back_exactly),
        cmocka_unit_test(a_quota_becomes_one_counted_gap),
        cmocka_unit_test(acknowledged_bytes_make_room),
        cmocka_unit_test(space_is_given_back),
        cmocka_unit_test(a_reader_waits_for_a_whole_record),
        cmocka_unit_test(silence_makes_no_file),
        cmocka_unit_test(what_is_no_record_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
