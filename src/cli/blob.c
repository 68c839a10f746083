#include "cli/blob.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/fd.h"

enum { BLOCK = 64 * 1024, ANSWER_MAX = 4 * 1024 * 1024, PROGRESS_BYTES = 4 * 1024 * 1024 };

enum err blob_temporary(int *fd, struct error *e)
{
    const char *dir = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    dir = dir != NULL && dir[0] != '\0' ? dir : "/tmp";
    *fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return *fd >= 0 ? ERR_OK : err_errno(e, "a temporary file in %s", dir);
}

void blob_digest_of(struct str bytes, char hex[BLOB_HEX_MAX])
{
    uint8_t digest[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256(digest, (const unsigned char *)bytes.data, bytes.size);
    hex_encode(digest, sizeof(digest), hex);
}

enum err blob_digest(int fd, char hex[BLOB_HEX_MAX], int64_t *size_bytes, struct error *e)
{
    static char block[BLOCK];
    uint8_t digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state hash;
    off_t at = 0;
    (void)crypto_hash_sha256_init(&hash);
    for (;;) {
        ssize_t got = pread(fd, block, sizeof(block), at);
        if (got < 0)
            return err_errno(e, "read");
        if (got == 0)
            break;
        (void)crypto_hash_sha256_update(&hash, (const unsigned char *)block, (size_t)got);
        at += got;
    }
    (void)crypto_hash_sha256_final(&hash, digest);
    hex_encode(digest, sizeof(digest), hex);
    *size_bytes = at;
    return ERR_OK;
}

struct upload {
    int fd;
    off_t at;
    int64_t total, told;
    bool is_shown;
};

static enum err upload_read(void *arg, void *out, size_t size, size_t *got, struct error *e)
{
    struct upload *upload = arg;
    ssize_t count = pread(upload->fd, out, size, upload->at);
    if (count < 0)
        return err_errno(e, "read");
    upload->at += count;
    *got = (size_t)count;
    if (upload->is_shown && (upload->at - upload->told > PROGRESS_BYTES || count == 0)) {
        upload->told = upload->at;
        (void)fprintf(stderr, "\rberth: sent %lld of %lld MiB%s", (long long)(upload->at >> 20),
                      (long long)(upload->total >> 20), count == 0 ? "\n" : "");
    }
    return ERR_OK;
}

enum err blob_put(struct cli *cli, const char *target, int fd, int64_t size_bytes,
                  struct cli_answer *answer, struct error *e)
{
    struct upload upload = { .fd = fd,
                             .total = size_bytes,
                             .is_shown = !cli->is_quiet && isatty(STDERR_FILENO) == 1 &&
                                         size_bytes > PROGRESS_BYTES };
    const struct http_client_request request = {
        .method = "PUT",
        .target = str_of(target),
        .read_body = upload_read,
        .body_length = size_bytes,
        .body_arg = &upload,
    };
    AUTO(http_client_response) struct http_client_response *response = NULL;
    enum err rc = cli_open(cli, &request, &response, e);
    if (rc == ERR_OK)
        rc = http_client_read_all(response, ANSWER_MAX, &answer->body, e);
    if (rc != ERR_OK)
        return rc;
    answer->status = http_client_status(response);
    if (answer->body.size > 0)
        rc = json_read(buf_str(&answer->body), ANSWER_MAX, &answer->json, e);
    if (rc == ERR_OK && answer->status >= 400)
        rc = cli_problem(answer->status, answer->json, e);
    return rc;
}
