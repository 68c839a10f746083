/*
 * berth-images - what takes long with images, as a program of its own: berth-agentd starts it for
 * each import and each collection, and goes on meanwhile.
 *
 *   berth-images image  STORE UNPACKER TENANT DIGEST PATH          into the store
 *   berth-images upload STORE UNPACKER TENANT DIGEST PATH NOTES    the same for a tarball: NOTES/<hex of
 *                                                                  DIGEST> says which
 *                                                                  image it became
 *   berth-images gc     STORE MAX_BYTES MAX_AGE_S [KEEP...]        KEEP: digests that are about to be used
 *
 * It reads once, and compares the digest of what it read: what the network half changes meanwhile
 * changes nothing. On failure the reason is on stdout, and the exit status is 1.
 */
#include "agent/images_main.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/import.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/random.h"

enum { COPY_STEP = 64 * 1024, USAGE_STATUS = 2 };

enum import_argument {
    ARG_VERB = 1,
    ARG_STORE,
    ARG_UNPACKER,
    ARG_TENANT,
    ARG_DIGEST,
    ARG_PATH,
    ARG_NOTES
};
enum gc_argument { ARG_MAX_BYTES = 3, ARG_MAX_AGE, ARG_KEEP };

static enum err parse_digest(const char *hex, struct image_digest *out, struct error *e)
{
    if (!hex_decode(str_of(hex), out->bytes, sizeof(out->bytes)))
        return err_set(e, ERR_INVALID, "\"%.80s\" is no digest", hex);
    return ERR_OK;
}

/* Copies what is hashed and hashes what is copied. */
static enum err copy_checked(const char *from, const char *to, const struct image_digest *wanted,
                             struct error *e)
{
    AUTO(fd) int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in < 0)
        return err_errno(e, "open %s", from);
    AUTO(fd) int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return err_errno(e, "make %s", to);
    AUTO(image_hash) struct image_hash *hash = image_hash_new();
    static uint8_t bytes[COPY_STEP];
    for (size_t got = COPY_STEP; got == COPY_STEP;) {
        enum err rc = fd_read_full(in, bytes, sizeof(bytes), &got, e);
        if (rc == ERR_OK)
            rc = fd_write_full(out, bytes, got, e);
        if (rc != ERR_OK)
            return rc;
        image_hash_add(hash, bytes, got);
    }
    struct image_digest found = image_hash_end(hash);
    return image_digest_eq(&found, wanted)
               ? ERR_OK
               : err_set(e, ERR_CORRUPT, "the upload does not have the digest it was asked by");
}

static enum err import_upload(struct image_store *store, char **argv,
                              const struct image_digest *wanted, struct error *e)
{
    AUTO(buf) struct buf copy = { 0 };
    AUTO(buf) struct buf note = { 0 };
    char hex[IMAGE_DIGEST_HEX_MAX];
    struct image_digest image;
    buf_format(&copy, "%s/%016llx.tar", argv[ARG_NOTES], (unsigned long long)random_u64());
    buf_format(&note, "%s/%s", argv[ARG_NOTES], image_digest_hex(wanted, hex));
    const struct image_import import = { .kind = IMAGE_SOURCE_TARBALL,
                                         .path = copy.data,
                                         .tenant = argv[ARG_TENANT] };
    enum err rc = copy_checked(argv[ARG_PATH], copy.data, wanted, e);
    if (rc == ERR_OK)
        rc = image_import(store, &import, &image, e);
    (void)unlink(copy.data); /* it may not be there */
    if (rc != ERR_OK)
        return rc;
    return file_write_atomic(note.data, str_of(image_digest_hex(&image, hex)), 0600, e);
}

static enum err import_image(struct image_store *store, char **argv,
                             const struct image_digest *wanted, struct error *e)
{
    struct image_digest image;
    const struct image_import import = { .kind = IMAGE_SOURCE_GUESS,
                                         .path = argv[ARG_PATH],
                                         .tenant = argv[ARG_TENANT],
                                         .wanted = wanted };
    return image_import(store, &import, &image, e);
}

static enum err run_import(char **argv, bool is_upload, struct error *e)
{
    AUTO(image_store) struct image_store *store = NULL;
    struct image_digest wanted;
    const struct image_store_options options = { .path = argv[ARG_STORE],
                                                 .unpacker = argv[ARG_UNPACKER][0] != '\0'
                                                                 ? argv[ARG_UNPACKER]
                                                                 : NULL };
    enum err rc = parse_digest(argv[ARG_DIGEST], &wanted, e);
    if (rc == ERR_OK)
        rc = image_store_open(&store, &options, e);
    if (rc != ERR_OK)
        return rc;
    return is_upload ? import_upload(store, argv, &wanted, e)
                     : import_image(store, argv, &wanted, e);
}

static enum err run_gc(int argc, char **argv, bool *is_over, struct error *e)
{
    AUTO(image_store) struct image_store *store = NULL;
    AUTO(arena) struct arena arena = { 0 };
    struct image_digest *keep = arena_new(&arena, (size_t)argc, sizeof(*keep));
    struct image_gc policy = { .now = clock_wall(), .keep = keep };
    struct image_gc_result result = { 0 };
    if (!str_to_i64(str_of(argv[ARG_MAX_BYTES]), -1, INT64_MAX, &policy.max_bytes) ||
        !str_to_i64(str_of(argv[ARG_MAX_AGE]), -1, INT64_MAX, &policy.max_age_s))
        return err_set(e, ERR_INVALID, "gc takes two numbers");
    for (int i = ARG_KEEP; i < argc; i++) {
        enum err rc = parse_digest(argv[i], &keep[policy.keep_count++], e);
        if (rc != ERR_OK)
            return rc;
    }
    const struct image_store_options options = { .path = argv[ARG_STORE], .unpacker = "" };
    enum err rc = image_store_open(&store, &options, e);
    if (rc == ERR_OK)
        rc = image_store_gc(store, &policy, &result, e);
    *is_over = policy.max_bytes >= 0 && result.bytes_left > policy.max_bytes;
    return rc;
}

int main(int argc, char **argv)
{
    bool is_gc = argc > ARG_MAX_AGE && strcmp(argv[ARG_VERB], "gc") == 0;
    bool is_image = argc == ARG_PATH + 1 && strcmp(argv[ARG_VERB], "image") == 0;
    bool is_upload = argc == ARG_NOTES + 1 && strcmp(argv[ARG_VERB], "upload") == 0;
    if (!is_gc && !is_image && !is_upload) {
        (void)fputs("berth-images is started by berth-agentd; see berth-agentd(8)\n", stderr);
        return USAGE_STATUS;
    }
    (void)umask(0077);
    struct error e = { 0 };
    bool is_over = false;
    enum err rc = is_gc ? run_gc(argc, argv, &is_over, &e) : run_import(argv, is_upload, &e);
    if (rc != ERR_OK) {
        (void)fputs(e.text, stdout);
        return err_is_shortage(&e) ? IMAGES_NOT_NOW : EXIT_FAILURE;
    }
    return is_over ? IMAGES_STORE_IS_OVER : EXIT_SUCCESS;
}
