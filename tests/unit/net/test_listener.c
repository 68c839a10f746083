/* Unix sockets as files, credentials, deadlines and back-pressure of plain connections. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "net/address.h"
#include "net/conn.h"
#include "net_fixture.h"
#include "os/fd.h"
#include "unit/test_dir.h"

static struct loop *loop;
static struct test_dir dir;
static char path[256];

struct owner {
    struct conn *conn;
    struct conn_peer peer;
    struct buf received;
    size_t takes; /* bytes on_data uses of each call; SIZE_MAX: all */
    size_t room_count;
    bool has_ended;
    bool is_closed;
    size_t close_count; /* of all that were accepted */
    char why[128];
};

static struct owner owner;

static size_t on_data(struct conn *conn, struct str data, void *arg)
{
    struct owner *to = arg;
    (void)conn;
    size_t used = MIN_OF(data.size, to->takes);
    buf_add(&to->received, data.data, used);
    return used;
}

static void on_end(struct conn *conn, void *arg)
{
    (void)conn;
    ((struct owner *)arg)->has_ended = true;
}

static void on_room(struct conn *conn, void *arg)
{
    (void)conn;
    ((struct owner *)arg)->room_count++;
}

static void on_close(struct conn *conn, const char *why, void *arg)
{
    struct owner *to = arg;
    (void)conn;
    to->conn = NULL;
    to->is_closed = true;
    to->close_count++;
    (void)snprintf(to->why, sizeof(to->why), "%s", why);
}

static const struct conn_events events = {
    .on_data = on_data,
    .on_end = on_end,
    .on_room = on_room,
    .on_close = on_close,
};

static void on_accept(struct conn *conn, void *arg)
{
    struct owner *to = arg;
    to->conn = conn;
    to->peer = *conn_peer(conn);
    conn_set_events(conn, &events, to);
}

static int set_up(void **state)
{
    (void)state;
    struct error e;
    CHECK_OK("loop", loop_new(&loop, &e), &e);
    dir = test_dir_new();
    test_dir_path(&dir, "socket", path);
    owner.takes = SIZE_MAX;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(loop);
    test_dir_remove(&dir);
    buf_done(&owner.received);
    owner = (struct owner){ 0 };
    return 0;
}

static enum err open_unix(struct listener **out, struct error *e)
{
    struct listener_options options = {
        .unix_path = path,
        .unix_mode = 0640,
        .on_accept = on_accept,
        .arg = &owner,
    };
    return listener_open(loop, &options, out, e);
}

static int connect_unix(void)
{
    struct sockaddr_un address;
    CHECK("path", address_unix(path, &address));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK("connect", connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static void close_all(struct listener *listener)
{
    if (owner.conn != NULL)
        conn_abort(owner.conn, "test");
    TURN_UNTIL(loop, listener_conn_count(listener) == 0);
    listener_close(listener);
}

static void test_socket_file(void **state)
{
    (void)state;
    struct error e;
    struct stat info;
    struct listener *listener = NULL;
    struct listener *second = NULL;
    CHECK_OK("open", open_unix(&listener, &e), &e);
    CHECK("mode", stat(path, &info) == 0 && (info.st_mode & 0777) == 0640);
    CHECK("a socket that is served is left alone", open_unix(&second, &e) == ERR_CONFLICT);
    TURN_UNTIL(loop, owner.conn != NULL); /* the question itself */
    close_all(listener);
    CHECK("removed", stat(path, &info) < 0);

    /* As after a crash: the file is there, and nobody behind it. */
    struct sockaddr_un address;
    CHECK("path", address_unix(path, &address));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK("bind", bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    close(fd);
    CHECK_OK("a stale one is replaced", open_unix(&listener, &e), &e);
    listener_close(listener);

    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK("file", fd >= 0);
    close(fd);
    CHECK("a file that is no socket is left alone", open_unix(&listener, &e) == ERR_CONFLICT);
    CHECK("still there", stat(path, &info) == 0);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    CHECK("a path that is too long", open_unix(&listener, &e) == ERR_INVALID);
}

static void test_bad_addresses(void **state)
{
    (void)state;
    struct error e;
    struct listener *listener = NULL;
    struct listener_options options = { .address = "localhost", .on_accept = on_accept };
    CHECK("a name", listener_open(loop, &options, &listener, &e) == ERR_INVALID);
    options.address = "127.0.0.1";
    CHECK_OK("free port", listener_open(loop, &options, &listener, &e), &e);
    struct listener *second = NULL;
    options.port = listener_port(listener);
    CHECK("a port that is taken", listener_open(loop, &options, &second, &e) == ERR_IO);
    listener_close(listener);
    CHECK_OK("and free again", listener_open(loop, &options, &listener, &e), &e);
    listener_close(listener);
    options.address = "::";
    options.port = 0;
    options.arg = &owner;
    CHECK_OK("both families", listener_open(loop, &options, &listener, &e), &e);
    int fd = client_connect(listener_port(listener));
    TURN_UNTIL(loop, owner.conn != NULL);
    CHECK("an IPv4 peer looks like one", strncmp(owner.peer.address, "127.0.0.1:", 10) == 0);
    close(fd);
    close_all(listener);
}

static void test_credentials(void **state)
{
    (void)state;
    struct error e;
    struct listener *listener = NULL;
    CHECK_OK("open", open_unix(&listener, &e), &e);
    int fd = connect_unix();
    TURN_UNTIL(loop, owner.conn != NULL);
    CHECK("the kernel's word", owner.peer.is_unix && owner.peer.uid == getuid() &&
                                   owner.peer.gid == getgid() && owner.peer.pid == getpid());
    close(fd);
    close_all(listener);
}

static void test_unused_bytes_are_kept_and_bounded(void **state)
{
    (void)state;
    struct error e;
    struct listener *listener = NULL;
    char block[65536];
    memset(block, 'k', sizeof(block));
    owner.takes = 0;
    CHECK_OK("open", open_unix(&listener, &e), &e);
    int fd = connect_unix();
    int64_t quiet_ms = now_ms();
    size_t sent = 0;
    while (now_ms() - quiet_ms < 100) {
        ssize_t count = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count > 0) {
            sent += (size_t)count;
            quiet_ms = now_ms();
        }
        turn(loop, 1);
    }
    CHECK("bounded", conn_kept(owner.conn) <= 80 * KIB);
    CHECK("the sender waits", sent < 4 * MIB);
    owner.takes = SIZE_MAX;
    conn_resume(owner.conn);
    TURN_UNTIL(loop, owner.received.size == sent);
    CHECK("nothing is kept", conn_kept(owner.conn) == 0);
    close(fd);
    TURN_UNTIL(loop, owner.has_ended || owner.is_closed);
    close_all(listener);
}

static void test_write_deadline(void **state)
{
    (void)state;
    struct error e;
    struct listener *listener = NULL;
    char block[65536] = { 0 };
    CHECK_OK("open", open_unix(&listener, &e), &e);
    int fd = connect_unix();
    TURN_UNTIL(loop, owner.conn != NULL);
    conn_set_write_timeout(owner.conn, 100);
    while (send_within_room(owner.conn, block, sizeof(block)))
        turn(loop, 0);
    CHECK("bounded", conn_queued(owner.conn) <= 256 * KIB);
    CHECK("beyond the bound, for small things only",
          (conn_send_always(owner.conn, "x", 1), conn_room(owner.conn) < sizeof(block)));
    TURN_UNTIL(loop, owner.is_closed);
    CHECK("why", strstr(owner.why, "write deadline") != NULL);
    close(fd);
    close_all(listener);
}

static void test_room_and_finish(void **state)
{
    (void)state;
    struct error e;
    struct listener *listener = NULL;
    AUTO(buf) struct buf got = { 0 };
    char block[65536] = { 0 };
    CHECK_OK("open", open_unix(&listener, &e), &e);
    int fd = connect_unix();
    TURN_UNTIL(loop, owner.conn != NULL);
    size_t sent = 0;
    while (send_within_room(owner.conn, block, sizeof(block))) {
        sent += sizeof(block);
        turn(loop, 0);
    }
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (owner.room_count == 0 && now_ms() < end_ms) {
        (void)client_read(fd, &got);
        turn(loop, 1);
    }
    CHECK("room is told once", owner.room_count == 1);
    conn_finish(owner.conn);
    conn_send_always(owner.conn, "x", 1); /* closing takes nothing: the size below tells */
    CHECK("all of the queue comes", client_read_to_end(loop, fd, &got, PATIENCE_MS));
    CHECK("all of it", got.size == sent);
    close(fd);
    TURN_UNTIL(loop, owner.is_closed);
    close_all(listener);
}

/* One that lingers, as after a refusal, and one that is open: peers that hang on keep neither. */
static void test_abort(void **state)
{
    (void)state;
    struct error e;
    struct listener *listener = NULL;
    AUTO(buf) struct buf got = { 0 };
    CHECK_OK("open", open_unix(&listener, &e), &e);
    int lingering = connect_unix();
    TURN_UNTIL(loop, owner.conn != NULL);
    conn_send_always(owner.conn, "no", 2);
    conn_finish(owner.conn);
    CHECK("it is told", client_read_to_end(loop, lingering, &got, PATIENCE_MS) && got.size == 2);
    CHECK("and waited for", listener_conn_count(listener) == 1 && owner.close_count == 0);
    owner.conn = NULL;
    int open = connect_unix();
    TURN_UNTIL(loop, owner.conn != NULL);
    int unseen = connect_unix(); /* still in the kernel's queue */

    listener_abort(listener, "the end");
    CHECK("nobody is told inside of the call", owner.close_count == 0);
    turn(loop, 0);
    CHECK("one round ends both", owner.close_count == 2 && strcmp(owner.why, "the end") == 0);
    CHECK("the socket is gone", access(path, F_OK) != 0);
    CHECK("and the open one hears it", client_read_to_end(loop, open, &got, PATIENCE_MS));
    CHECK("as does who came too late", client_read_to_end(loop, unseen, &got, PATIENCE_MS));
    close(lingering);
    close(open);
    close(unseen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_socket_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unused_bytes_are_kept_and_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_room_and_finish, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_abort, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net listener", tests, NULL, NULL);
}
