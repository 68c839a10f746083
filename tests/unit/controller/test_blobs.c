#include <string.h>

#include "controller/blobs.h"
#include "os/fd.h"
#include "unit/test.h"
#include "unit/test_dir.h"

static const struct digest any;
/* SHA-256 of "abc": FIPS 180-2, appendix B.1. */
static const char abc_hex[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static enum err put(struct blobs *blobs, struct str bytes, const struct digest *expected,
                    struct digest *digest)
{
    AUTO(blob_writer) struct blob_writer *writer = NULL;
    struct error e = { 0 };
    int64_t size = 0;
    CHECK_OK("new", blob_writer_new(blobs, 1024 * 1024 * 8, 0, &writer, &e), &e);
    enum err rc = blob_writer_add(writer, bytes, &e);
    if (rc == ERR_OK)
        rc = blob_writer_seal(writer, expected, digest, &size, &e);
    bool is_new = false;
    return rc == ERR_OK ? blob_writer_publish(writer, &is_new, &e) : rc;
}

static void test_put_and_get(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(blobs) struct blobs *blobs = NULL;
    struct error e = { 0 };
    struct digest digest;
    struct digest abc;
    int64_t size = 0;
    char bytes[4] = "";
    CHECK_OK("open", blobs_open(dir.path, 1, &blobs, &e), &e);
    CHECK("hex", hex_decode(str_of(abc_hex), abc.bytes, DIGEST_BYTES));
    CHECK("absent", !blobs_has(blobs, &abc));
    CHECK("put", put(blobs, STR("abc"), &abc, &digest) == ERR_OK);
    CHECK("digest", memcmp(&digest, &abc, sizeof(abc)) == 0 && blobs_has(blobs, &abc));
    CHECK("again", put(blobs, STR("abc"), &any, &digest) == ERR_OK && blobs_bytes(blobs) == 3);
    AUTO(fd) int fd = -1;
    CHECK_OK("read", blobs_read(blobs, &abc, &fd, &size, &e), &e);
    CHECK("bytes", size == 3 && read(fd, bytes, 3) == 3 && strcmp(bytes, "abc") == 0);
}

static void test_is_there_only_when_published(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(blobs) struct blobs *blobs = NULL;
    AUTO(blob_writer) struct blob_writer *writer = NULL;
    struct error e = { 0 };
    struct digest digest;
    int64_t size = 0;
    bool is_new = false;
    CHECK_OK("open", blobs_open(dir.path, 1, &blobs, &e), &e);
    CHECK_OK("new", blob_writer_new(blobs, 1024, 0, &writer, &e), &e);
    CHECK_OK("add", blob_writer_add(writer, STR("abc"), &e), &e);
    CHECK_OK("seal", blob_writer_seal(writer, &any, &digest, &size, &e), &e);
    CHECK("sealed is not there", !blobs_has(blobs, &digest) && blobs_bytes(blobs) == 0);
    CHECK("but can be looked at", access(blob_writer_path(writer), R_OK) == 0);
    CHECK_OK("publish", blob_writer_publish(writer, &is_new, &e), &e);
    CHECK("published is", is_new && blobs_has(blobs, &digest) && blobs_bytes(blobs) == 3);
    blobs_remove(blobs, &digest);
    CHECK("removed is not", !blobs_has(blobs, &digest) && blobs_bytes(blobs) == 0);
    blobs_remove(blobs, &digest); /* nor is it twice */
    CHECK("and counted once", blobs_bytes(blobs) == 0);
}

static void test_refusals(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(blobs) struct blobs *blobs = NULL;
    struct error e = { 0 };
    struct digest digest;
    struct digest abc;
    int fd = -1;
    int64_t size = 0;
    static char large[1024 * 1024 + 1];
    CHECK_OK("open", blobs_open(dir.path, 1, &blobs, &e), &e);
    CHECK("hex", hex_decode(str_of(abc_hex), abc.bytes, DIGEST_BYTES));
    CHECK("other bytes", put(blobs, STR("abd"), &abc, &digest) == ERR_INVALID);
    CHECK("quota", put(blobs, (struct str){ large, sizeof(large) }, &any, &digest) == ERR_LIMIT);
    CHECK("nothing was stored", blobs_bytes(blobs) == 0 && !blobs_has(blobs, &abc));
    CHECK("absent", blobs_read(blobs, &abc, &fd, &size, NULL) == ERR_NOT_FOUND && fd == -1);
}

/* Many uploads at once share the room that one would have had alone. */
static void test_uploads_together_keep_the_quota(void **state)
{
    (void)state;
    enum { WRITERS = 4, PIECE = 96 * 1024, QUOTA = 1024 * 1024 };
    static char piece[PIECE];
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(blobs) struct blobs *blobs = NULL;
    struct blob_writer *writers[WRITERS] = { 0 };
    struct error e = { 0 };
    int64_t added = 0;
    enum err rc = ERR_OK;
    CHECK_OK("open", blobs_open(dir.path, 1, &blobs, &e), &e);
    for (size_t i = 0; i < WRITERS; i++)
        CHECK_OK("new", blob_writer_new(blobs, QUOTA, QUOTA, &writers[i], &e), &e);
    for (size_t i = 0; rc == ERR_OK; i = (i + 1) % WRITERS) {
        rc = blob_writer_add(writers[i], (struct str){ piece, sizeof(piece) }, &e);
        added += rc == ERR_OK ? PIECE : 0;
    }
    CHECK("refused for the quota", rc == ERR_LIMIT && strstr(e.text, "blob_quota_mib") != NULL);
    CHECK("not before it is full", added <= QUOTA && added + PIECE > QUOTA);
    struct blob_writer *late = NULL;
    CHECK("nor is more begun", blob_writer_new(blobs, QUOTA, PIECE, &late, &e) == ERR_LIMIT);
    for (size_t i = 0; i < WRITERS; i++)
        blob_writer_free(writers[i]);
    CHECK_OK("their room comes back", blob_writer_new(blobs, QUOTA, QUOTA, &late, &e), &e);
    blob_writer_free(late);
}

static void test_published_bytes_count_once(void **state)
{
    (void)state;
    enum { HALF = 512 * 1024 };
    static char bytes[HALF];
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(blobs) struct blobs *blobs = NULL;
    struct digest digest;
    struct error e = { 0 };
    CHECK_OK("open", blobs_open(dir.path, 1, &blobs, &e), &e);
    CHECK("half", put(blobs, (struct str){ bytes, HALF }, &any, &digest) == ERR_OK);
    CHECK("again", put(blobs, (struct str){ bytes, HALF }, &any, &digest) == ERR_OK);
    bytes[0] = 1;
    CHECK("the other half", put(blobs, (struct str){ bytes, HALF }, &any, &digest) == ERR_OK);
    CHECK("full", blobs_bytes(blobs) == 2 * (int64_t)HALF);
    CHECK("no byte more", put(blobs, STR("x"), &any, &digest) == ERR_LIMIT);
    blobs_remove(blobs, &digest);
    CHECK("room again", put(blobs, STR("x"), &any, &digest) == ERR_OK);
}

static void test_interrupted_upload_leaves_nothing(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    struct error e = { 0 };
    struct digest digest;
    {
        AUTO(blobs) struct blobs *blobs = NULL;
        CHECK_OK("open", blobs_open(dir.path, 1, &blobs, &e), &e);
        CHECK("put", put(blobs, STR("abc"), &any, &digest) == ERR_OK);
        char path[512]; /* what a crash in the middle of an upload leaves */
        (void)snprintf(path, sizeof(path), "%s/incoming-crashed", dir.path);
        FILE *file = fopen(path, "we");
        CHECK("a leftover", file != NULL && fputs("half", file) >= 0 && fclose(file) == 0);
    }
    AUTO(blobs) struct blobs *blobs = NULL;
    char path[512];
    CHECK_OK("open again", blobs_open(dir.path, 1, &blobs, &e), &e);
    (void)snprintf(path, sizeof(path), "%s/incoming-crashed", dir.path);
    CHECK("gone", access(path, F_OK) != 0);
    CHECK("what was whole is there", blobs_has(blobs, &digest) && blobs_bytes(blobs) == 3);
}

static bool keep_one(void *arg, const struct digest *digest)
{
    return memcmp(arg, digest, sizeof(*digest)) == 0;
}

static void test_collect(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(blobs) struct blobs *blobs = NULL;
    struct error e = { 0 };
    struct digest kept;
    struct digest unused;
    CHECK_OK("open", blobs_open(dir.path, 1, &blobs, &e), &e);
    CHECK("put", put(blobs, STR("kept"), &any, &kept) == ERR_OK);
    CHECK("put", put(blobs, STR("unused"), &any, &unused) == ERR_OK);
    struct stat info;
    CHECK("dir", stat(dir.path, &info) == 0);
    CHECK("too young", blobs_collect(blobs, info.st_mtim.tv_sec, 100, keep_one, &kept) == 0);
    CHECK("one goes", blobs_collect(blobs, info.st_mtim.tv_sec + 200, 100, keep_one, &kept) == 1);
    CHECK("the right one", blobs_has(blobs, &kept) && !blobs_has(blobs, &unused));
    CHECK("counted", blobs_bytes(blobs) == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_and_get),
        cmocka_unit_test(test_is_there_only_when_published),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_uploads_together_keep_the_quota),
        cmocka_unit_test(test_published_bytes_count_once),
        cmocka_unit_test(test_interrupted_upload_leaves_nothing),
        cmocka_unit_test(test_collect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
