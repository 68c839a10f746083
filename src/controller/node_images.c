/* Images and uploads: where a node gets the bytes of what it is to run, and those alone. */
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "controller/nodes_internal.h"
#include "controller/registry.h"
#include "os/fd.h"

enum { BLOB_CHUNK = 60 * 1024 };

/* Does something on this node run from this image or upload? Only then may it have the bytes. */
static bool node_uses(const struct node *node, const struct digest *image,
                      const struct digest *upload)
{
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        const struct workload_record *w = &a->workload->r;
        if (image != NULL && memcmp(&w->image, image, sizeof(*image)) == 0)
            return true;
        if (upload != NULL && memcmp(&w->upload, upload, sizeof(*upload)) == 0)
            return true;
    }
    return false;
}

static const struct image *image_of(const struct state *state, const struct digest *manifest,
                                    struct id tenant)
{
    for (const struct image *i = state->first_image; i != NULL; i = i->next) {
        bool is_visible = id_is_none(i->r.tenant) || id_eq(i->r.tenant, tenant);
        if (is_visible && memcmp(&i->r.manifest, manifest, sizeof(*manifest)) == 0)
            return i;
    }
    return NULL;
}

static bool source_blob(struct str source, struct digest *out)
{
    static const struct str prefix = { IMAGE_BLOB_PREFIX, sizeof(IMAGE_BLOB_PREFIX) - 1 };
    return str_starts(source, prefix) &&
           hex_decode((struct str){ source.data + prefix.size, source.size - prefix.size },
                      out->bytes, DIGEST_BYTES);
}

/* By digest: a tag may have moved since the image was named. */
static void source_registry(const struct session *session, const struct image *image,
                            struct arena *arena, struct buf *password,
                            struct image_source_message *out)
{
    const struct nodes *nodes = session->nodes;
    /* The login of the image's tenant at the registry its reference starts with. */
    const struct credential *credential = state_credential_at(
        engine_state(nodes->o.engine), image->r.tenant, registry_host(image->r.source));
    enum reach reach = REACH_PUBLIC;
    struct error e = { 0 };
    if (registry_judge(image->r.source, &nodes->o.registries, &reach, &e) != ERR_OK) {
        /* It was named before an operator said so. */
        out->kind = IMAGE_SOURCE_NONE;
        out->detail = str_copy(arena, str_of(e.text));
        return;
    }
    out->kind = IMAGE_SOURCE_REGISTRY;
    out->is_named = reach > REACH_PUBLIC;
    out->size_bytes = image->r.size_bytes;
    out->reference = str_of(registry_by_digest(image->r.source, &image->r.manifest, arena));
    if (credential != NULL &&
        keys_open(nodes->o.keys, credential->r.sealed, password, NULL) == ERR_OK) {
        out->username = credential->r.username;
        out->password = buf_str(password);
    }
}

void session_image_wanted(struct session *session, const void *message)
{
    const struct image_wanted_message *wanted = message;
    const struct state *state = engine_state(session->nodes->o.engine);
    const struct node *node = state_node(state, session->node);
    struct image_source_message source = { .manifest = wanted->manifest };
    AUTO(buf) struct buf password = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    const struct image *image = NULL;

    if (node != NULL && node_uses(node, &wanted->manifest, NULL))
        image = image_of(state, &wanted->manifest, wanted->tenant);
    if (image == NULL) {
        source.kind = IMAGE_SOURCE_NONE;
        source.detail = STR("the image was removed");
    } else if (source_blob(image->r.source, &source.blob)) {
        source.kind = IMAGE_SOURCE_BLOB;
        source.size_bytes = image->r.size_bytes;
    } else {
        source_registry(session, image, &arena, &password, &source);
    }
    session_send(session, MESSAGE_IMAGE_SOURCE, &source);
    if (password.size > 0)
        sodium_memzero(password.data, password.size);
}

/* ---- how far they are ------------------------------------------------------------------------ */

/* Does something on this node wait for this image to start? */
static bool node_waits_for(const struct node *node, const struct digest *manifest)
{
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        if (a->r.state == AL_STARTING &&
            memcmp(&a->workload->r.image, manifest, sizeof(*manifest)) == 0)
            return true;
    }
    return false;
}

static struct image_coming *coming_find(const struct session *session,
                                        const struct digest *manifest)
{
    for (size_t i = 0; i < session->coming.count; i++) {
        if (memcmp(&session->coming.items[i].manifest, manifest, sizeof(*manifest)) == 0)
            return &session->coming.items[i];
    }
    return NULL;
}

/* Kept beside the journal: it is of the moment, and only of what waits - so there is not much. */
void session_image_progress(struct session *session, const void *message)
{
    const struct image_progress_message *progress = message;
    const struct node *node = state_node(engine_state(session->nodes->o.engine), session->node);
    session_images_settle(session);
    if (node == NULL || !node_waits_for(node, &progress->manifest))
        return;
    struct image_coming *coming = coming_find(session, &progress->manifest);
    if (coming == NULL) {
        vec_push(&session->coming, ((struct image_coming){ .manifest = progress->manifest }));
        coming = &session->coming.items[session->coming.count - 1];
    }
    coming->phase = progress->phase;
    coming->done_bytes = progress->done_bytes;
    coming->total_bytes = progress->total_bytes;
    buf_clear(&coming->detail);
    buf_add_str(&coming->detail, progress->detail);
}

void session_images_settle(struct session *session)
{
    const struct node *node = state_node(engine_state(session->nodes->o.engine), session->node);
    size_t kept = 0;
    for (size_t i = 0; i < session->coming.count; i++) {
        struct image_coming *coming = &session->coming.items[i];
        if (node != NULL && node_waits_for(node, &coming->manifest))
            session->coming.items[kept++] = *coming;
        else
            buf_done(&coming->detail);
    }
    session->coming.count = kept;
}

void session_images_forget(struct session *session)
{
    for (size_t i = 0; i < session->coming.count; i++)
        buf_done(&session->coming.items[i].detail);
    vec_done(&session->coming);
}

bool nodes_image_progress(const struct nodes *nodes, struct id node, const struct digest *manifest,
                          struct image_progress_message *out)
{
    const struct session *session = id_map_get(&nodes->by_node, node);
    const struct image_coming *coming = session != NULL ? coming_find(session, manifest) : NULL;
    if (coming == NULL)
        return false;
    *out = (struct image_progress_message){ .manifest = *manifest,
                                            .phase = coming->phase,
                                            .done_bytes = coming->done_bytes,
                                            .total_bytes = coming->total_bytes,
                                            .detail = buf_str(&coming->detail) };
    return true;
}

/* ---- streams of their bytes ------------------------------------------------------------------ */

struct blob_stream {
    struct link_stream *stream;
    int fd; /* owned */
    int64_t offset, size_bytes;
};

static void blob_stream_free(struct blob_stream *blob)
{
    fd_close(blob->fd);
    mem_free(blob);
}

static void blob_push(struct blob_stream *blob)
{
    char *chunk = mem_new(BLOB_CHUNK, 1);
    while (link_stream_room(blob->stream) > 0 && blob->offset < blob->size_bytes) {
        size_t want = MIN_OF(link_stream_room(blob->stream), (size_t)BLOB_CHUNK);
        ssize_t got = pread(blob->fd, chunk, want, blob->offset);
        if (got <= 0)
            break;
        blob->offset +=
            (int64_t)link_stream_write(blob->stream, (struct str){ chunk, (size_t)got });
    }
    mem_free(chunk);
    if (blob->offset < blob->size_bytes) {
        link_stream_want_room(blob->stream);
        return;
    }
    link_stream_close(blob->stream, LINK_CODE_OK, (struct str){ 0 });
    blob_stream_free(blob);
}

static void blob_on_room(struct link_stream *stream, void *arg)
{
    (void)stream;
    blob_push(arg);
}

static void blob_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    (void)arg;
    link_stream_credit(stream, bytes.size); /* nothing is expected; nothing is kept */
}

static void blob_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    (void)stream;
    (void)code;
    (void)text;
    blob_stream_free(arg);
}

static const struct link_stream_events blob_events = {
    .on_data = blob_on_data,
    .on_room = blob_on_room,
    .on_close = blob_on_close,
};

/* A node may have the archives of images and the uploads that its own work needs, and no others. */
static bool blob_is_allowed(struct session *session, const struct digest *digest)
{
    const struct state *state = engine_state(session->nodes->o.engine);
    const struct node *node = state_node(state, session->node);
    if (node == NULL)
        return false;
    if (node_uses(node, NULL, digest))
        return true;
    for (const struct image *i = state->first_image; i != NULL; i = i->next) {
        struct digest blob;
        if (source_blob(i->r.source, &blob) && memcmp(&blob, digest, sizeof(blob)) == 0 &&
            node_uses(node, &i->r.manifest, NULL))
            return true;
    }
    return false;
}

void session_open_blob(struct session *session, struct link_stream *stream,
                       const struct stream_header *header)
{
    int fd = -1;
    int64_t size_bytes = 0;
    struct error e = { 0 };
    if (!blob_is_allowed(session, &header->digest) ||
        blobs_read(session->nodes->o.blobs, &header->digest, &fd, &size_bytes, &e) != ERR_OK) {
        link_stream_close(stream, LINK_CODE_REFUSED, STR("no such blob"));
        return;
    }
    struct blob_stream *blob = mem_new(1, sizeof(*blob));
    *blob = (struct blob_stream){ .stream = stream,
                                  .fd = fd,
                                  .offset = (int64_t)MIN_OF(header->offset, (uint64_t)size_bytes),
                                  .size_bytes = size_bytes };
    link_stream_set_events(stream, &blob_events, blob);
    blob_push(blob);
}
