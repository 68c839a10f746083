#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/ipc.h"
#include "os/fd.h"
#include "unit/test.h"
#include "unit/test_dir.h"

static const struct id some_id = { 1, 2 };

static void fill_down(union ipc_message *m)
{
    uint32_t tag = m->header.tag;
    if (tag == IPC_DESIRED_BEGIN) {
        m->desired_begin.set_bytes = 1000;
        m->desired_begin.all_bytes = 2000;
    } else if (tag == IPC_DESIRED_CHUNK) {
        m->desired_chunk.size = 1;
    } else if (tag == IPC_LOG_ACK) {
        m->log_ack.allocation = some_id;
        m->log_ack.attempt = 1;
    } else if (tag == IPC_LOG_AGAIN) {
        m->log_again.allocation = some_id;
        m->log_again.attempt = 1;
    } else if (tag == IPC_IMAGE_READY) {
        m->image_ready.digest.bytes[0] = 1;
        m->image_ready.tenant = some_id;
        m->image_ready.path[0] = '/';
    } else if (tag == IPC_EXEC_OPEN || tag == IPC_EXEC_RESIZE || tag == IPC_EXEC_CLOSE ||
               tag == IPC_TREE_OPEN) {
        m->exec_open.stream = 1; /* at the same place in all of them */
    }
}

static void fill_up(union ipc_message *m)
{
    uint32_t tag = m->header.tag;
    if (tag == IPC_CHALLENGE) {
        m->challenge.number = some_id;
    } else if (tag == IPC_HELLO) {
        m->hello.node = some_id;
    } else if (tag == IPC_OBSERVED) {
        m->observed.count = 1;
        m->observed.entries[0].allocation = some_id;
        m->observed.entries[0].attempt = 1;
    } else if (tag == IPC_NEED_IMAGE) {
        m->need_image.digest.bytes[0] = 1;
        m->need_image.tenant = some_id;
    } else if (tag == IPC_LOG_READY) {
        m->log_ready.allocation = some_id;
        m->log_ready.attempt = 1;
    } else if (tag >= IPC_EXEC_OPENED && tag <= IPC_TREE_DONE) {
        m->exec_opened.stream = 1; /* at the same place in all of them */
    }
}

/* A message of each tag with fields that pass. */
static void fill(uint32_t tag, union ipc_message *m)
{
    memset(m, 0, sizeof(*m));
    m->header = (struct ipc_header){ tag, IPC_VERSION };
    fill_down(m);
    fill_up(m);
}

static enum ipc_direction way(uint32_t tag)
{
    return tag < IPC_HELLO || tag == IPC_LOG_AGAIN ? IPC_DOWN : IPC_UP;
}

static void every_tag_passes_one_way_and_with_its_size_only(void **state)
{
    (void)state;
    union ipc_message *m = mem_new(1, sizeof(*m));
    for (uint32_t tag = 1; tag < IPC_TAG_END; tag++) {
        struct error e = { 0 };
        size_t size = ipc_size(tag);
        fill(tag, m);
        enum ipc_direction other = way(tag) == IPC_DOWN ? IPC_UP : IPC_DOWN;
        CHECK_OK(ipc_name(tag), ipc_check(m, size, 0, way(tag), &e), &e);
        CHECK(ipc_name(tag), ipc_check(m, size, 0, other, NULL) == ERR_INVALID);
        CHECK(ipc_name(tag), ipc_check(m, size - 1, 0, way(tag), NULL) == ERR_INVALID);
        CHECK(ipc_name(tag), ipc_check(m, size, 2, way(tag), NULL) == ERR_INVALID);
        m->header.version = IPC_VERSION + 1;
        CHECK(ipc_name(tag), ipc_check(m, size, 0, way(tag), NULL) == ERR_INVALID);
    }
    for (size_t size = 0; size < sizeof(struct ipc_header); size++)
        CHECK("no header", ipc_check(m, size, 0, IPC_DOWN, NULL) == ERR_INVALID);
    m->header = (struct ipc_header){ IPC_TAG_END, IPC_VERSION };
    CHECK("unknown", ipc_check(m, 8, 0, IPC_DOWN, NULL) == ERR_INVALID && ipc_size(999) == 0);
    m->header.tag = 0;
    CHECK("tag 0", ipc_check(m, 8, 0, IPC_DOWN, NULL) == ERR_INVALID);
    mem_free(m);
}

struct field_case {
    const char *name;
    uint32_t tag;
    size_t offset;
    uint32_t value; /* written over four bytes there */
};
#define AT(type, field) offsetof(struct type, field)
static const struct field_case field_cases[] = {
    { "set too small", IPC_DESIRED_BEGIN, AT(ipc_desired_begin, set_bytes), 8 },
    { "set too large", IPC_DESIRED_BEGIN, AT(ipc_desired_begin, set_bytes), UINT32_MAX },
    { "all too large", IPC_DESIRED_BEGIN, AT(ipc_desired_begin, all_bytes), UINT32_MAX },
    { "empty chunk", IPC_DESIRED_CHUNK, AT(ipc_desired_chunk, size), 0 },
    { "long chunk", IPC_DESIRED_CHUNK, AT(ipc_desired_chunk, size), IPC_CHUNK_MAX + 1 },
    { "far chunk", IPC_DESIRED_CHUNK, AT(ipc_desired_chunk, offset), UINT32_MAX },
    { "attempt 0", IPC_LOG_ACK, AT(ipc_log_ack, attempt), 0 },
    { "final 2", IPC_LOG_ACK, AT(ipc_log_ack, is_final), 2 },
    { "image kind", IPC_IMAGE_READY, AT(ipc_image_ready, kind), IPC_IMAGE_KIND_COUNT },
    { "relative path", IPC_IMAGE_READY, AT(ipc_image_ready, path), 'x' },
    { "failed with a path", IPC_IMAGE_READY, AT(ipc_image_ready, state), IPC_IMAGE_FAILED },
    { "image state", IPC_IMAGE_READY, AT(ipc_image_ready, state), IPC_IMAGE_STATE_COUNT },
    { "again for attempt 0", IPC_LOG_AGAIN, AT(ipc_log_again, attempt), 0 },
    { "text behind its end", IPC_IMAGE_READY, AT(ipc_image_ready, text) + 8, 'x' },
    { "long payload", IPC_EXEC_OPEN, AT(ipc_exec_open, payload_size), IPC_CHUNK_MAX + 1 },
    { "state", IPC_OBSERVED, AT(ipc_observed, entries[0].state), IPC_STATE_COUNT },
    { "an end while running", IPC_OBSERVED, AT(ipc_observed, entries[0].end), IPC_END_EXIT },
    { "too many entries", IPC_OBSERVED, AT(ipc_observed, count), IPC_OBSERVED_MAX + 1 },
    { "beyond the total", IPC_OBSERVED, AT(ipc_observed, is_full), 1 },
    { "exit code", IPC_OBSERVED, AT(ipc_observed, entries[0].exit_code), 256 },
    { "error code", IPC_DESIRED_RESULT, AT(ipc_desired_result, code), ERR_COUNT },
    { "device count", IPC_INVENTORY, AT(ipc_inventory, device_count), IPC_DEVICES_MAX + 1 },
};

static void fields_out_of_range_are_refused(void **state)
{
    (void)state;
    union ipc_message *m = mem_new(1, sizeof(*m));
    FOR_EACH_CASE (c, field_cases) {
        fill(c->tag, m);
        for (size_t i = 0; i < sizeof(c->value); i++)
            ((char *)m)[c->offset + i] = (char)(c->value >> (8 * i));
        CHECK(c->name, ipc_check(m, ipc_size(c->tag), 0, way(c->tag), NULL) == ERR_INVALID);
    }
    mem_free(m);
}

static void random_messages_never_read_beyond(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (int round = 0; round < 2000; round++) {
        uint32_t tag = (uint32_t)test_below(&seed, IPC_TAG_END);
        size_t size = ipc_size(tag) > 0 ? ipc_size(tag) : sizeof(struct ipc_header);
        char *exact = mem_new(1, size);
        for (size_t i = 0; i < size && i < 4096; i++)
            exact[i] = (char)test_random(&seed);
        struct ipc_header header = { tag, IPC_VERSION };
        memcpy(exact, &header, sizeof(header));
        (void)!ipc_check((const union ipc_message *)(const void *)exact, size, test_below(&seed, 5),
                         way(tag), NULL);
        mem_free(exact);
    }
}

static void texts_are_cut_between_characters(void **state)
{
    (void)state;
    char long_text[400] = "";
    for (size_t i = 0; i + 2 < sizeof(long_text); i += 2) {
        long_text[i] = '\xc3';
        long_text[i + 1] = '\xa4';
    }
    char out[IPC_TEXT_MAX];
    ipc_text_set(out, long_text);
    CHECK("length", strlen(out) == IPC_TEXT_MAX - 2);
    ipc_text_set(out, "short");
    CHECK("short", strcmp(out, "short") == 0 && out[IPC_TEXT_MAX - 1] == '\0');
}

static void messages_and_descriptors_arrive(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    char path[128];
    struct error e = { 0 };
    AUTO(fd) int listener = -1;
    AUTO(fd) int client = -1;
    AUTO(fd) int server = -1;
    unsigned uid = getuid();
    (void)snprintf(path, sizeof(path), "%s/s", dir.path);
    CHECK_OK("listen", ipc_listen(path, uid, &listener, &e), &e);
    CHECK("nobody", ipc_accept(listener, uid, &server, NULL) == ERR_UNAVAILABLE);
    CHECK_OK("connect", ipc_connect(path, uid, &client, &e), &e);
    CHECK_OK("accept", ipc_accept(listener, uid, &server, &e), &e);

    union ipc_message *m = mem_new(1, sizeof(*m));
    struct fd_pass fds = { 0 };
    CHECK("nothing yet", ipc_receive(client, IPC_UP, m, &fds, NULL) == ERR_UNAVAILABLE);
    struct ipc_log_ready ready = { .allocation = { 1, 2 }, .attempt = 3, .size = 4 };
    int passed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_OK("send", ipc_send(server, IPC_LOG_READY, &ready, &passed, 1, &e), &e);
    CHECK_OK("receive", ipc_receive(client, IPC_UP, m, &fds, &e), &e);
    CHECK("message", m->header.tag == IPC_LOG_READY && m->log_ready.size == 4);
    CHECK("descriptor", fds.count == 1 && fds.fds[0] >= 0 && fds.fds[0] != passed);
    CHECK("close-on-exec", (fcntl(fds.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
    fd_pass_done(&fds);
    CHECK_OK("send", ipc_send(client, IPC_LOG_READY, &ready, NULL, 0, &e), &e);
    CHECK("the wrong way", ipc_receive(server, IPC_DOWN, m, &fds, NULL) == ERR_INVALID);
    CHECK("a stray datagram", send(client, "hi", 2, 0) == 2 &&
                                  ipc_receive(server, IPC_DOWN, m, &fds, NULL) == ERR_INVALID);
    fd_close(passed);
    fd_close(fd_take(&client));
    CHECK("closed", ipc_receive(server, IPC_DOWN, m, &fds, NULL) == ERR_NOT_FOUND);
    mem_free(m);
}

/* As many as there are now, so that not one more fits. */
static void allow_no_more_descriptors(struct rlimit *before)
{
    AUTO(fd) int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK("limit", getrlimit(RLIMIT_NOFILE, before) == 0);
    struct rlimit none = { (rlim_t)next, before->rlim_max };
    CHECK("limit", setrlimit(RLIMIT_NOFILE, &none) == 0);
}

static void a_message_arrives_without_descriptors_when_none_are_left(void **state)
{
    (void)state;
    int pair[2];
    struct error e = { 0 };
    struct rlimit before;
    CHECK("pair", socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    struct ipc_log_ready ready = { .allocation = { 1, 2 }, .attempt = 3, .size = 4 };
    union ipc_message *m = mem_new(1, sizeof(*m));
    struct fd_pass fds = { 0 };
    for (int is_short = 1; is_short >= 0; is_short--) {
        CHECK_OK("send", ipc_send(pair[0], IPC_LOG_READY, &ready, &pair[0], 1, &e), &e);
        if (is_short == 1)
            allow_no_more_descriptors(&before);
        CHECK_OK("receive", ipc_receive(pair[1], IPC_UP, m, &fds, &e), &e);
        CHECK("the message", m->log_ready.size == 4);
        CHECK("its descriptor",
              fds.is_cut == (is_short == 1) && fds.count == (is_short == 1 ? 0 : 1));
        CHECK("limit", setrlimit(RLIMIT_NOFILE, &before) == 0);
    }
    fd_pass_done(&fds);
    CHECK_OK("send",
             ipc_send(pair[0], IPC_LOG_AGAIN,
                      &(struct ipc_log_again){ .allocation = { 1, 2 }, .attempt = 3 }, &pair[0], 1,
                      &e),
             &e);
    CHECK("the privileged half takes none",
          ipc_receive(pair[1], IPC_DOWN, m, &fds, NULL) == ERR_INVALID);
    mem_free(m);
    fd_close(pair[0]);
    fd_close(pair[1]);
}

static void a_full_socket_says_so(void **state)
{
    (void)state;
    int pair[2];
    CHECK("pair", socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    struct ipc_observed *observed = mem_new(1, sizeof(*observed));
    enum err rc = ERR_OK;
    for (int i = 0; i < 10000 && rc == ERR_OK; i++)
        rc = ipc_send(pair[0], IPC_OBSERVED, observed, NULL, 0, NULL);
    CHECK("full", rc == ERR_UNAVAILABLE);
    fd_close(pair[1]);
    CHECK("gone", ipc_send(pair[0], IPC_OBSERVED, observed, NULL, 0, NULL) == ERR_IO);
    fd_close(pair[0]);
    mem_free(observed);
}

static void another_user_is_refused(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    char path[128];
    AUTO(fd) int listener = -1;
    AUTO(fd) int client = -1;
    int server = -1;
    struct error e = { 0 };
    (void)snprintf(path, sizeof(path), "%s/s", dir.path);
    CHECK_OK("listen", ipc_listen(path, getuid(), &listener, &e), &e);
    CHECK_OK("connect", ipc_connect(path, getuid(), &client, &e), &e);
    CHECK("accept",
          ipc_accept(listener, getuid() + 1, &server, NULL) == ERR_DENIED && server == -1);
    int other = -1;
    CHECK("connect", ipc_connect(path, getuid() + 1, &other, NULL) == ERR_DENIED && other == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tag_passes_one_way_and_with_its_size_only),
        cmocka_unit_test(fields_out_of_range_are_refused),
        cmocka_unit_test(random_messages_never_read_beyond),
        cmocka_unit_test(texts_are_cut_between_characters),
        cmocka_unit_test(messages_and_descriptors_arrive),
        cmocka_unit_test(a_message_arrives_without_descriptors_when_none_are_left),
        cmocka_unit_test(a_full_socket_says_so),
        cmocka_unit_test(another_user_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
