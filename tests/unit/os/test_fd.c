#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/test.h"

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_auto_closes(void **state)
{
    (void)state;
    int seen = -1;
    int kept = -1;
    {
        AUTO(fd) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        AUTO(fd) int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
        seen = fd;
        kept = fd_take(&other);
        CHECK("taken", other == -1);
    }
    CHECK("closed", !is_open(seen));
    CHECK("not closed", is_open(kept));
    errno = EBADF;
    fd_close(kept);
    CHECK("keeps errno", errno == EBADF);
    fd_close(-1);
}

static void test_whole_reads_and_writes(void **state)
{
    (void)state;
    struct error e = { 0 };
    int ends[2];
    char bytes[20000];
    char back[30000];
    size_t got = 0;
    memset(bytes, 'b', sizeof(bytes));
    CHECK_OK("pipe", fd_pipe(ends, &e), &e);
    AUTO(fd) int from = ends[0];
    AUTO(fd) int to = ends[1];
    CHECK("close on exec",
          (fcntl(from, F_GETFD) & FD_CLOEXEC) && (fcntl(to, F_GETFD) & FD_CLOEXEC));
    CHECK_OK("write", fd_write_full(to, bytes, sizeof(bytes), &e), &e);
    CHECK_OK("read", fd_read_full(from, back, 15000, &got, &e), &e);
    CHECK("as many as wanted", got == 15000);
    fd_close(fd_take(&to));
    CHECK_OK("read to the end", fd_read_full(from, back, sizeof(back), &got, &e), &e);
    CHECK("what was left", got == 5000 && memcmp(back, bytes, got) == 0);
    CHECK_OK("read at the end", fd_read_full(from, back, 1, &got, &e), &e);
    CHECK("nothing", got == 0);
}

static void test_failures_are_told(void **state)
{
    (void)state;
    struct error e = { 0 };
    char byte = 'x';
    size_t got = 77;
    CHECK("read", fd_read_full(-1, &byte, 1, &got, &e) == ERR_IO);
    CHECK("leaves the count", got == 77);
    assert_string_equal(e.text, "read: Bad file descriptor");
    CHECK("write", fd_write_full(-1, &byte, 1, &e) == ERR_IO);
    CHECK("nonblock", fd_set_nonblock(-1, true, &e) == ERR_IO);
    AUTO(fd) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK("a full device", fd_write_full(full, &byte, 1, &e) == ERR_IO);
    assert_string_equal(e.text, "write: No space left on device");
}

static void test_flags(void **state)
{
    (void)state;
    struct error e = { 0 };
    AUTO(fd) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_OK("on", fd_set_nonblock(fd, true, &e), &e);
    CHECK("is on", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK_OK("off", fd_set_nonblock(fd, false, &e), &e);
    CHECK("is off", (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_closes),
        cmocka_unit_test(test_whole_reads_and_writes),
        cmocka_unit_test(test_failures_are_told),
        cmocka_unit_test(test_flags),
    };
    return cmocka_run_group_tests_name("os/fd", tests, NULL, NULL);
}
