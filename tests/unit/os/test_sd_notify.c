#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "os/fd.h"
#include "os/sd_notify.h"
#include "unit/test.h"
#include "unit/test_dir.h"

static int listen_at(const char *path, bool is_abstract)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (is_abstract)
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    CHECK(path, bind(fd, (struct sockaddr *)&address, size) == 0);
    return fd;
}

static void expect_delivery(const char *path, bool is_abstract)
{
    struct error e = { 0 };
    char text[64] = { 0 };
    AUTO(fd) int fd = listen_at(path, is_abstract);
    (void)setenv("NOTIFY_SOCKET", path, 1);
    CHECK_OK(path, sd_notify_send("READY=1\nSTATUS=ok", &e), &e);
    CHECK(path, recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) == 17);
    assert_string_equal(text, "READY=1\nSTATUS=ok");
}

static void test_delivers(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    char path[256];
    expect_delivery(test_dir_path(&dir, "notify", path), false);
    (void)snprintf(path, sizeof(path), "@berth-test-%d", (int)getpid());
    expect_delivery(path, true);
}

static void test_outside_of_a_service(void **state)
{
    (void)state;
    struct error e = { 0 };
    (void)unsetenv("NOTIFY_SOCKET");
    CHECK_OK("not set", sd_notify_send("READY=1", &e), &e);
    (void)setenv("NOTIFY_SOCKET", "", 1);
    CHECK_OK("empty", sd_notify_send("READY=1", &e), &e);
}

static void test_refusals(void **state)
{
    (void)state;
    struct error e = { 0 };
    (void)setenv("NOTIFY_SOCKET", "relative", 1);
    CHECK("relative", sd_notify_send("READY=1", &e) == ERR_INVALID);
    char path[200];
    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    (void)setenv("NOTIFY_SOCKET", path, 1);
    CHECK("too long", sd_notify_send("READY=1", &e) == ERR_INVALID);
    (void)setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
    CHECK("nobody there", sd_notify_send("READY=1", &e) == ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delivers),
        cmocka_unit_test(test_outside_of_a_service),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("os/sd_notify", tests, NULL, NULL);
}
