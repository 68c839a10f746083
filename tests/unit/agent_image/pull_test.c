/* Pulls with a stand-in for skopeo: arguments, credentials, progress, failures, clean-up. */
#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>

#include "agent/image/pull.h"
#include "os/file.h"
#include "unit/test_dir.h"

enum { DEADLINE_MS = 20000 };

struct world {
    struct test_dir dir;
    char skopeo[256];
    char layout[256];
    char seen[256]; /* what the stand-in wrote down */
};

/* A shell script in skopeo's place; $SEEN is expanded here, as it gets no environment of ours. */
static void world_init(struct world *world, const char *script)
{
    struct error e;
    world->dir = test_dir_new();
    test_dir_path(&world->dir, "layout", world->layout);
    test_dir_path(&world->dir, "seen", world->seen);
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "#!/bin/sh\nseen=%s\nlayout=%s\n%s\n", world->seen, world->layout, script);
    CHECK_OK("script",
             file_write_atomic(test_dir_path(&world->dir, "skopeo", world->skopeo), buf_str(&text),
                               0700, &e),
             &e);
}

static void world_done(struct world *world)
{
    test_dir_remove(&world->dir);
}
DEFINE_CLEANUP_AT(world, struct world, world_done)

static enum err pull(const struct world *world, const struct image_pull_request *given,
                     struct error *e)
{
    struct image_pull_request request = *given;
    request.layout = world->layout;
    request.work_dir = world->dir.path;
    request.skopeo = world->skopeo;
    AUTO(image_pull) struct image_pull *pull = NULL;
    enum err rc = image_pull_start(&pull, &request, e);
    bool is_done = false;
    while (rc == ERR_OK && !is_done) {
        struct pollfd poll_fd = { .fd = image_pull_fd(pull), .events = POLLIN };
        /* With a limit on bytes the end is not the only thing to look for. */
        int ready = poll(&poll_fd, 1, request.max_bytes > 0 ? 20 : DEADLINE_MS);
        CHECK("in time", ready > 0 || request.max_bytes > 0);
        rc = image_pull_poll(pull, &is_done, e);
    }
    return rc;
}

/* Private directories of pulls. */
static size_t count_left(const struct world *world)
{
    size_t left = 0;
    DIR *dir = opendir(world->dir.path);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        left += strncmp(entry->d_name, "pull-", 5) == 0;
    (void)closedir(dir);
    return left;
}

static void read_seen(const struct world *world, struct buf *out)
{
    struct error e;
    CHECK_OK("seen", file_read(world->seen, 65536, out, &e), &e);
}

#define BLOB "00000000000000000000000000000000000000000000000000000000000000ab"

static const char good_script[] =
    "for a in \"$@\"; do echo \"arg $a\"; done >$seen\n"
    "env >>$seen\n"
    "stat -c 'mode %a' \"$HOME\" \"$HOME/auth.json\" >>$seen\n"
    "cat \"$HOME/auth.json\" >>$seen\n"
    "mkdir -p $layout && echo blob >$layout/" BLOB "\n"
    "printf '{\"mediaType\":\"application/vnd.docker.distribution.manifest.v2+json\"}' "
    ">$layout/manifest.json; echo 'Directory Transport Version: 1.1' >$layout/version\n";

static void credentials_travel_in_a_private_file(void **state)
{
    (void)state;
    struct error e;
    AUTO(world) struct world world;
    world_init(&world, good_script);
    (void)setenv("SECRET_OF_THE_AGENT", "hidden",
                 1); /* NOLINT(concurrency-mt-unsafe): one thread */
    const struct image_pull_request request = { .reference = "registry.test:5000/team/app:1",
                                                .user = "robot",
                                                .password = "pa:ss\"w" };
    CHECK_OK("pull", pull(&world, &request, &e), &e);
    AUTO(buf) struct buf seen = { 0 };
    read_seen(&world, &seen);
    CHECK("reference", strstr(seen.data, "arg docker://registry.test:5000/team/app:1\n") != NULL);
    CHECK("verified", strstr(seen.data, "arg --src-tls-verify=true\n") != NULL);
    CHECK("private", strstr(seen.data, "mode 700\nmode 600\n") != NULL);
    CHECK("file", strstr(seen.data, "{\"auths\":{\"registry.test:5000\":{\"auth\":"
                                    "\"cm9ib3Q6cGE6c3Midw==\"}}}") != NULL);
    CHECK("nowhere else", strstr(seen.data, "pa:ss") == NULL);
    CHECK("not ours", strstr(seen.data, "SECRET_OF_THE_AGENT") == NULL);
    CHECK("gone", count_left(&world) == 0);
    char path[256];
    CHECK("kept", access(test_dir_path(&world.dir, "layout/blobs/sha256/" BLOB, path), F_OK) == 0);
}

/* Whatever kind it is of: written anew it would have another digest. */
static void a_manifest_stays_byte_for_byte(void **state)
{
    (void)state;
    struct error e;
    AUTO(world) struct world world;
    AUTO(buf) struct buf index = { 0 };
    AUTO(buf) struct buf manifest = { 0 };
    AUTO(buf) struct buf seen = { 0 };
    static const char text[] =
        "{\"mediaType\":\"application/vnd.docker.distribution.manifest.v2+json\"}";
    struct image_digest digest = image_digest_of(text, sizeof(text) - 1);
    char hex[IMAGE_DIGEST_HEX_MAX];
    char name[100];
    char path[256];
    world_init(&world, good_script);
    const struct image_pull_request request = { .reference = "registry.test/app:1" };
    CHECK_OK("pull", pull(&world, &request, &e), &e);
    (void)snprintf(name, sizeof(name), "layout/blobs/sha256/%s", image_digest_hex(&digest, hex));
    CHECK_OK("manifest", file_read(test_dir_path(&world.dir, name, path), 4096, &manifest, &e), &e);
    CHECK("same bytes", str_is(buf_str(&manifest), text));
    CHECK_OK("index",
             file_read(test_dir_path(&world.dir, "layout/index.json", path), 4096, &index, &e), &e);
    CHECK("named by its digest", strstr(index.data, hex) != NULL);
    CHECK("and its kind", strstr(index.data, "vnd.docker.distribution.manifest.v2+json") != NULL);
    CHECK("a layout", access(test_dir_path(&world.dir, "layout/oci-layout", path), F_OK) == 0);
    read_seen(&world, &seen);
    CHECK("asked for", strstr(seen.data, "arg --preserve-digests\n") != NULL);

    AUTO(world) struct world strange;
    world_init(&strange,
               "mkdir -p $layout; printf '{\"mediaType\":\"text/x\"}' >$layout/manifest.json");
    CHECK("another kind", pull(&strange, &request, &e) == ERR_INVALID);
    CHECK("leaves nothing", access(strange.layout, F_OK) != 0 && count_left(&strange) == 0);
}

static void without_credentials_there_are_none(void **state)
{
    (void)state;
    struct error e;
    AUTO(world) struct world world;
    world_init(&world, good_script);
    const struct image_pull_request request = { .reference = "debian:12", .is_plain_http = true };
    CHECK_OK("pull", pull(&world, &request, &e), &e);
    AUTO(buf) struct buf seen = { 0 };
    read_seen(&world, &seen);
    CHECK("empty", strstr(seen.data, "auths") == NULL);
    CHECK("asked for", strstr(seen.data, "arg --src-tls-verify=false\n") != NULL);
}

static void failures_say_why_and_leave_nothing(void **state)
{
    (void)state;
    struct error e;
    AUTO(world) struct world world;
    world_init(&world, "mkdir -p $layout; echo first >&2; echo 'manifest unknown' >&2; exit 1");
    const struct image_pull_request request = { .reference = "debian:12" };
    CHECK("fails", pull(&world, &request, &e) == ERR_UNAVAILABLE);
    CHECK("why", strcmp(e.text, "manifest unknown") == 0);
    CHECK("gone", access(world.layout, F_OK) != 0 && count_left(&world) == 0);

    AUTO(world) struct world silent;
    world_init(&silent, "exit 3");
    CHECK("fails", pull(&silent, &request, &e) == ERR_UNAVAILABLE);
    CHECK("why", strstr(e.text, "status 3") != NULL);
}

static void too_large_an_image_is_stopped(void **state)
{
    (void)state;
    struct error e;
    AUTO(world) struct world world;
    world_init(&world, "mkdir -p $layout; head -c 100000 /dev/zero "
                       ">$layout/x; exec sleep 1000");
    const struct image_pull_request request = { .reference = "debian:12", .max_bytes = 50000 };
    CHECK("stopped", pull(&world, &request, &e) == ERR_LIMIT);
    CHECK("gone", access(world.layout, F_OK) != 0 && count_left(&world) == 0);
}

static void a_pull_can_be_given_up(void **state)
{
    (void)state;
    struct error e;
    AUTO(world) struct world world;
    world_init(&world, "mkdir -p $layout; exec sleep 1000");
    const struct image_pull_request request = { .reference = "debian:12",
                                                .layout = world.layout,
                                                .work_dir = world.dir.path,
                                                .skopeo = world.skopeo };
    struct image_pull *pull = NULL;
    bool is_done = true;
    CHECK_OK("start", image_pull_start(&pull, &request, &e), &e);
    CHECK_OK("poll", image_pull_poll(pull, &is_done, &e), &e);
    CHECK("runs", !is_done && image_pull_bytes(pull) == 0);
    image_pull_free(pull);
    CHECK("gone", access(world.layout, F_OK) != 0 && count_left(&world) == 0);
}

static void bad_requests_start_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *reference;
        const char *layout; /* NULL: the usual one */
        const char *user;
    } cases[] = {
        { "an option", "--help", NULL, NULL },
        { "nothing", "", NULL, NULL },
        { "a blank", "debian 12", NULL, NULL },
        { "a line break", "debian\n12", NULL, NULL },
        { "a quote", "debian\"12", NULL, NULL },
        { "a path", "/etc/passwd", NULL, NULL },
        { "a layout with a colon", "debian:12", "/tmp/a:b", NULL },
        { "a relative layout", "debian:12", "layout", NULL },
        { "a layout that is there", "debian:12", "/", NULL },
        { "a user with a colon", "debian:12", NULL, "a:b" },
    };
    AUTO(world) struct world world;
    world_init(&world, "touch $seen");
    FOR_EACH_CASE (c, cases) {
        struct error e = { 0 };
        struct image_pull *pull = NULL;
        const struct image_pull_request request = {
            .reference = c->reference,
            .layout = c->layout != NULL ? c->layout : world.layout,
            .work_dir = world.dir.path,
            .skopeo = world.skopeo,
            .user = c->user,
        };
        CHECK(c->name, image_pull_start(&pull, &request, &e) != ERR_OK && e.text[0] != '\0');
    }
    CHECK("not started", access(world.seen, F_OK) != 0 && count_left(&world) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_travel_in_a_private_file),
        cmocka_unit_test(a_manifest_stays_byte_for_byte),
        cmocka_unit_test(without_credentials_there_are_none),
        cmocka_unit_test(failures_say_why_and_leave_nothing),
        cmocka_unit_test(too_large_an_image_is_stopped),
        cmocka_unit_test(a_pull_can_be_given_up),
        cmocka_unit_test(bad_requests_start_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
