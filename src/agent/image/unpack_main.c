/*
 * berth-unpack - takes one layer, or one JSON text of an image, apart inside of a sandbox.
 *
 * The agent starts it; see unpack_protocol.h. It is a program of its own so that nothing of the
 * agent is in its memory: what a bad archive could make it give away is the archive.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/image/layer.h"
#include "agent/image/sandbox.h"
#include "agent/image/unpack_protocol.h"
#include "os/fd.h"

static enum err receive_go(struct unpack_go *out, struct error *e)
{
    ssize_t got;
    do {
        got = recv(UNPACK_FD_CONTROL, out, sizeof(*out), 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(*out) || out->task >= UNPACK_TASK_COUNT)
        return err_set(e, ERR_INVALID, "berth-unpack is started by berth-agent, not by hand");
    out->name[sizeof(out->name) - 1] = '\0';
    return ERR_OK;
}

static enum err parse_text(const struct unpack_go *go, struct str json, struct unpack_result *out,
                           struct error *e)
{
    if (go->task == UNPACK_TASK_INDEX) {
        bool is_index = false;
        const char *name = go->name[0] != '\0' ? go->name : NULL;
        enum err rc = image_index_parse(json, name, &out->manifest, &is_index, e);
        out->is_index = is_index;
        return rc;
    }
    if (go->task == UNPACK_TASK_MANIFEST)
        return image_manifest_parse(json, &out->image, e);

    struct image_digest ids[IMAGE_LAYERS_MAX];
    size_t count = 0;
    enum err rc = image_diff_ids_parse(json, ids, &count, e);
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        out->image.layers[i].diff_id = ids[i];
    out->image.layer_count = count;
    return rc;
}

static enum err read_and_parse(const struct unpack_go *go, struct unpack_result *out,
                               struct error *e)
{
    AUTO(mem) char *text = mem_new(IMAGE_JSON_MAX + 1, 1);
    size_t size = 0;
    enum err rc = fd_read_full(UNPACK_FD_DATA, text, IMAGE_JSON_MAX + 1, &size, e);
    return rc == ERR_OK ? parse_text(go, (struct str){ text, size }, out, e) : rc;
}

static enum err serve(struct unpack_result *out, struct error *e)
{
    enum err rc = sandbox_unshare(e);
    struct unpack_hello hello = { .magic = UNPACK_MAGIC, .code = rc };
    memcpy(hello.text, e->text, sizeof(hello.text) - 1);
    if (send(UNPACK_FD_CONTROL, &hello, sizeof(hello), MSG_NOSIGNAL) < 0)
        return err_errno(e, "speak to the agent");
    if (rc != ERR_OK)
        return rc;
    struct unpack_go go;
    rc = receive_go(&go, e);
    if (rc == ERR_OK)
        rc = sandbox_enter(UNPACK_FD_DIR, go.limits.layer_bytes, e);
    if (rc != ERR_OK)
        return rc;
    if (go.task == UNPACK_TASK_LAYER)
        return layer_unpack(UNPACK_FD_DATA, UNPACK_FD_DIR, &go.limits, &out->layer, e);
    return read_and_parse(&go, out, e);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc != 1) {
        (void)fputs("berth-unpack is started by berth-agent, not by hand\n", stderr);
        return 2;
    }
    layer_prepare();
    struct error e = { 0 };
    static struct unpack_result result;
    result.code = serve(&result, &e);
    result.number = e.number;
    memcpy(result.text, e.text, sizeof(result.text) - 1);
    ssize_t put = send(UNPACK_FD_CONTROL, &result, sizeof(result), MSG_NOSIGNAL);
    _exit(put == (ssize_t)sizeof(result) && result.code == ERR_OK ? 0 : 1);
}
