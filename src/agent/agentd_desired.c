#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"

/*
 * What is remembered of the newest accepted set: enough to refuse every older and every
 * other one. It is of the node that this machine was then: one that joins again is
 * another, whose orders begin anew.
 */
struct stamp_record {
    uint32_t magic;
    uint32_t version;
    uint64_t epoch;
    uint64_t generation;
    struct grant_digest digest;
    struct id node;
    uint64_t check;
};
enum { STAMP_MAGIC = 0x4d544142, STAMP_VERSION = 2 }; /* "BATM" */
enum { AGAIN_FIRST_S = 2, AGAIN_MAX_S = 30 };
/* A sector is written as a whole or not at all: half a stamp is never found. */
static_assert(sizeof(struct stamp_record) <= 512, "a stamp fits the smallest sector");
static const uint8_t stamp_key[16] = "berth stamp    1";

static uint64_t stamp_check(const struct stamp_record *record)
{
    return siphash(stamp_key, record, offsetof(struct stamp_record, check));
}

enum err desired_load_stamp(struct agentd *agentd, struct error *e)
{
    AUTO(buf) struct buf bytes = { 0 };
    enum err rc = file_read(agentd->stamp_path, sizeof(struct stamp_record), &bytes, e);
    if (rc == ERR_NOT_FOUND)
        return ERR_OK; /* nothing was accepted yet */
    if (rc != ERR_OK)
        return rc;
    struct stamp_record record = { 0 };
    if (bytes.size == sizeof(record))
        memcpy(&record, bytes.data, sizeof(record));
    if (record.magic != STAMP_MAGIC || record.version != STAMP_VERSION ||
        record.check != stamp_check(&record))
        return err_set(e, ERR_CORRUPT,
                       "%s is damaged: the node cannot tell old orders from new ones; let it join "
                       "again",
                       agentd->stamp_path);
    if (!id_eq(record.node, agentd->identity.node))
        return ERR_OK; /* it has joined again since */
    agentd->stamp = (struct grant_stamp){ record.epoch, record.generation };
    agentd->stamp_digest = record.digest;
    return ERR_OK;
}

/* In its place: nothing of the file system changes with it, so that one wait for the disk is
 * enough. False: it may be there or not, and is not known to be durable. */
static bool overwrite_stamp(const struct agentd *agentd, struct str bytes)
{
    struct stat found;
    return agentd->stamp_fd >= 0 && fstat(agentd->stamp_fd, &found) == 0 && found.st_nlink == 1 &&
           found.st_size == (off_t)bytes.size &&
           pwrite(agentd->stamp_fd, bytes.data, bytes.size, 0) == (ssize_t)bytes.size &&
           fdatasync(agentd->stamp_fd) == 0;
}

/* The first one, and after a disk has failed, as a new file: an fsync that failed is not
 * asked again. */
static enum err write_stamp(struct agentd *agentd, struct str bytes, struct error *e)
{
    if (overwrite_stamp(agentd, bytes))
        return ERR_OK;
    fd_close(agentd->stamp_fd);
    agentd->stamp_fd = -1;
    enum err rc = file_write_atomic(agentd->stamp_path, bytes, 0600, e);
    if (rc == ERR_OK) /* without it the next one is a new file again */
        agentd->stamp_fd = open(agentd->stamp_path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    return rc;
}

static enum err store_stamp(struct agentd *agentd, const struct grant_set *set,
                            const struct grant_digest *digest, struct error *e)
{
    struct stamp_record record = { 0 };
    record.magic = STAMP_MAGIC;
    record.version = STAMP_VERSION;
    record.epoch = set->epoch;
    record.generation = set->generation;
    record.digest = *digest;
    record.node = agentd->identity.node;
    record.check = stamp_check(&record);
    struct str bytes = { (const char *)&record, sizeof(record) };
    enum err rc = write_stamp(agentd, bytes, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "remember generation %llu", (unsigned long long)set->generation);
    agentd->stamp = (struct grant_stamp){ set->epoch, set->generation };
    agentd->stamp_digest = *digest;
    return ERR_OK;
}

enum err desired_begin(struct agentd *agentd, const struct ipc_desired_begin *begin,
                       struct error *e)
{
    (void)e;
    buf_clear(&agentd->incoming);
    agentd->incoming_set_bytes = begin->set_bytes;
    agentd->incoming_all_bytes = begin->all_bytes;
    return ERR_OK;
}

enum err desired_chunk(struct agentd *agentd, const struct ipc_desired_chunk *chunk,
                       struct error *e)
{
    if (chunk->offset != agentd->incoming.size ||
        chunk->size > agentd->incoming_all_bytes - agentd->incoming.size)
        return err_set(e, ERR_INVALID, "a chunk of the desired set is out of place");
    buf_add(&agentd->incoming, chunk->bytes, chunk->size);
    return ERR_OK;
}

const struct payload_entry *desired_payload(const struct agentd *agentd,
                                            const struct grant_digest *digest)
{
    const struct payload_entry *entry = id_map_get(&agentd->payload_of, digest_key(digest));
    return entry != NULL && grant_digest_eq(&entry->digest, digest) ? entry : NULL;
}

/* Payloads that the set asks for and whose attempt is not here yet, by digest_key. */
static void find_needed(const struct agentd *agentd, struct id_map *out)
{
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        struct grant *grant = &agentd->set.grants[i];
        if (attempts_find(agentd, grant->allocation, grant->attempt) == NULL)
            id_map_put(out, digest_key(&grant->payload), grant);
    }
}

static void drop_payloads(struct agentd *agentd, const struct id_map *needed)
{
    size_t kept = 0;
    for (size_t i = 0; i < agentd->payloads.count; i++) {
        struct payload_entry *entry = agentd->payloads.items[i];
        if (id_map_get(needed, digest_key(&entry->digest)) != NULL) {
            agentd->payloads.items[kept++] = entry;
            continue;
        }
        (void)id_map_remove(&agentd->payload_of, digest_key(&entry->digest));
        mem_free(entry);
    }
    agentd->payloads.count = kept;
}

static uint32_t read_u32(const char *bytes)
{
    const uint8_t *b = (const uint8_t *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void keep_payload(struct agentd *agentd, const struct grant_digest *digest, struct str bytes)
{
    struct payload_entry *entry = mem_new(1, sizeof(*entry) + bytes.size + 1);
    entry->digest = *digest;
    entry->size = bytes.size;
    memcpy(entry->bytes, bytes.data, bytes.size);
    vec_push(&agentd->payloads, entry);
    id_map_put(&agentd->payload_of, digest_key(digest), entry);
}

void desired_keep_payload(struct agentd *agentd, struct str bytes)
{
    struct grant_digest digest;
    agentd->crypto.sha256(agentd->crypto.self, bytes, &digest);
    if (id_map_get(&agentd->payload_of, digest_key(&digest)) == NULL)
        keep_payload(agentd, &digest, bytes);
}

/* Keeps the payloads that are needed. Nothing here is trusted: the digest in the grant decides. */
static enum err take_payloads(struct agentd *agentd, const struct id_map *needed, struct str frames,
                              struct error *e)
{
    while (frames.size > 0) {
        uint32_t size = frames.size >= 4 ? read_u32(frames.data) : UINT32_MAX;
        if (size > PAYLOAD_MAX || size > frames.size - 4)
            return err_set(e, ERR_INVALID, "the payloads have the wrong length");
        struct grant_digest digest;
        struct str bytes = { frames.data + 4, size };
        agentd->crypto.sha256(agentd->crypto.self, bytes, &digest);
        frames.data += 4 + (size_t)size;
        frames.size -= 4 + (size_t)size;
        if (id_map_get(needed, digest_key(&digest)) == NULL ||
            id_map_get(&agentd->payload_of, digest_key(&digest)) != NULL)
            continue;
        keep_payload(agentd, &digest, bytes);
    }
    return ERR_OK;
}

struct wanted *desired_wanted(const struct agentd *agentd, struct id allocation, uint32_t attempt)
{
    for (uint32_t i = 0; i < agentd->set.count; i++)
        if (id_eq(agentd->set.grants[i].allocation, allocation) &&
            agentd->set.grants[i].attempt == attempt)
            return &agentd->wanted[i];
    return NULL;
}

unsigned desired_stop_cause(const struct agentd *agentd, const struct grant *grant)
{
    const struct wanted *wanted = desired_wanted(agentd, grant->allocation, grant->attempt);
    return wanted != NULL ? agentd->set.grants[wanted - agentd->wanted].stop_cause : 0;
}

static void note_why(struct agentd *agentd, struct wanted *wanted, const char *why)
{
    ipc_text_set(wanted->why, why);
    wanted->is_changed = true; /* the text, where the reason is the same */
    agentd->is_dirty = true;
}

void desired_refuse(struct agentd *agentd, struct wanted *wanted, const char *why)
{
    wanted->ready.is_hopeless = true;
    note_why(agentd, wanted, why);
}

void desired_put_off(struct agentd *agentd, struct wanted *wanted, const char *why)
{
    int64_t pause_s = MIN_OF((int64_t)AGAIN_FIRST_S << MIN_OF(wanted->tries, 8U), AGAIN_MAX_S);
    wanted->tries++;
    wanted->ready.again_at = mono_add_s(clock_boottime(), pause_s);
    wanted->is_image_asked = wanted->is_upload_asked = false;
    note_why(agentd, wanted, why);
}

/* What was found out about a grant stays true under a newer set. */
static void carry_notes(const struct agentd *agentd, const struct grant_set *set,
                        struct wanted *wanted)
{
    struct id_map before = { 0 };
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        const struct grant *old = &agentd->set.grants[i];
        id_map_put(&before, attempt_key(old->allocation, old->attempt), &agentd->wanted[i]);
    }
    for (uint32_t i = 0; i < set->count; i++) {
        const struct grant *grant = &set->grants[i];
        const struct wanted *note =
            id_map_get(&before, attempt_key(grant->allocation, grant->attempt));
        if (note != NULL)
            wanted[i] = *note;
        else
            wanted[i].noted = REC_KIND_COUNT;
        wanted[i].ready.why = wanted[i].why;
        wanted[i].is_changed = true;
    }
    id_map_done(&before);
}

/* What is signed and yet cannot be is an end that the controller hears of. What runs goes on. */
static void refuse_faults(struct agentd *agentd)
{
    for (uint32_t i = 0; i < agentd->set.fault_count; i++) {
        const struct grant_fault *fault = &agentd->set.faults[i];
        char id[ID_TEXT_MAX];
        log_warning(
            "a grant cannot be taken", LOG_STR("why", fault->text),
            LOG_STR("allocation",
                    id_text(ID_ALLOCATION, agentd->set.grants[fault->index].allocation, id)));
        desired_refuse(agentd, &agentd->wanted[fault->index], fault->text);
    }
}

static void adopt(struct agentd *agentd, struct grant_set *set)
{
    struct wanted *wanted = mem_new(MAX_OF(set->count, 1U), sizeof(*wanted));
    carry_notes(agentd, set, wanted);
    grant_set_done(&agentd->set);
    mem_free(agentd->wanted);
    agentd->set = *set;
    agentd->wanted = wanted;
    agentd->has_set = true;
    set->grants = NULL;
    set->faults = NULL;
    refuse_faults(agentd);
}

static enum err judge(struct agentd *agentd, struct grant_set *set, struct str bytes,
                      struct error *e)
{
    struct grant_stamp offered = { set->epoch, set->generation };
    struct grant_digest digest;
    agentd->crypto.sha256(agentd->crypto.self, bytes, &digest);
    switch (grant_order(agentd->stamp, offered)) {
    case GRANT_OLDER:
        return err_set(
            e, ERR_CONFLICT, "epoch %llu generation %llu is older than the accepted %llu/%llu",
            (unsigned long long)set->epoch, (unsigned long long)set->generation,
            (unsigned long long)agentd->stamp.epoch, (unsigned long long)agentd->stamp.generation);
    case GRANT_SAME:
        if (!grant_digest_eq(&digest, &agentd->stamp_digest))
            return err_set(e, ERR_CONFLICT, "generation %llu was accepted with other content",
                           (unsigned long long)set->generation);
        break;
    case GRANT_NEWER: {
        enum err rc = store_stamp(agentd, set, &digest, e);
        if (rc != ERR_OK)
            return rc;
        break;
    }
    }
    adopt(agentd, set);
    return ERR_OK;
}

static enum err decide(struct agentd *agentd, struct grant_set *set, struct error *e)
{
    if (agentd->incoming_all_bytes == 0 || agentd->incoming.size != agentd->incoming_all_bytes)
        return err_set(e, ERR_INVALID, "the desired set is not complete");
    struct str all = buf_str(&agentd->incoming);
    struct str bytes = { all.data, agentd->incoming_set_bytes };
    enum err rc = grant_set_decode(bytes, agentd->identity.node, &agentd->crypto, set, e);
    if (rc != ERR_OK)
        return rc;
    rc = judge(agentd, set, bytes, e);
    if (rc != ERR_OK)
        return rc;
    struct str rest = { all.data + bytes.size, all.size - bytes.size };
    struct id_map needed = { 0 };
    find_needed(agentd, &needed);
    drop_payloads(agentd, &needed);
    rc = take_payloads(agentd, &needed, rest, e);
    id_map_done(&needed);
    return rc;
}

void desired_end(struct agentd *agentd)
{
    struct error e = { 0 };
    AUTO(grant_set) struct grant_set set = { 0 };
    enum err rc = decide(agentd, &set, &e);
    struct ipc_desired_result result = {
        .epoch = set.epoch,
        .generation = set.generation,
        .code = (uint32_t)rc,
    };
    if (rc != ERR_OK) {
        ipc_text_set(result.text, e.text);
        log_warning("desired set refused", LOG_ERR(&e));
    } else {
        contact_look(agentd);
        desired_refresh(agentd);
    }
    buf_done(&agentd->incoming);
    agentd->incoming_all_bytes = 0;
    agentd->is_dirty = true;
    peer_send(agentd, IPC_DESIRED_RESULT, &result, NULL);
}

static bool has_image(const struct agentd *agentd, const struct grant *grant,
                      const struct grant_digest *digest)
{
    struct image_digest image;
    char tenant[ID_TEXT_MAX];
    memcpy(image.bytes, digest->bytes, sizeof(image.bytes));
    return image_store_has(agentd->images, &image) &&
           image_store_is_permitted(agentd->images, id_text(ID_TENANT, grant->tenant, tenant),
                                    &image);
}

/* Without an image there is only the root that an operator named for tests. */
static bool has_root(const struct agentd *agentd, const struct grant *grant)
{
    return grant_digest_is_none(&grant->image) ? agentd->options.rootfs != NULL
                                               : has_image(agentd, grant, &grant->image);
}

static bool has_upload(const struct agentd *agentd, const struct grant *grant,
                       struct grant_digest *image)
{
    return grant_digest_is_none(&grant->upload) ||
           (import_find_upload(agentd, &grant->upload, image) && has_image(agentd, grant, image));
}

void desired_refresh(struct agentd *agentd)
{
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        const struct grant *grant = &agentd->set.grants[i];
        struct wanted *wanted = &agentd->wanted[i];
        struct rec_ready *ready = &wanted->ready;
        if (attempts_find(agentd, grant->allocation, grant->attempt) != NULL)
            continue;
        ready->has_payload = desired_payload(agentd, &grant->payload) != NULL;
        ready->has_image = ready->has_image || has_root(agentd, grant);
        ready->has_upload = ready->has_upload || has_upload(agentd, grant, &wanted->upload_image);
    }
}

void desired_forget_images(struct agentd *agentd)
{
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        struct wanted *wanted = &agentd->wanted[i];
        if (wanted->ready.has_image || wanted->ready.has_upload)
            wanted->is_image_asked = wanted->is_upload_asked = false;
        wanted->ready.has_image = false;
        wanted->ready.has_upload = false;
    }
}

void desired_done(struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->payloads.count; i++)
        mem_free(agentd->payloads.items[i]);
    vec_done(&agentd->payloads);
    id_map_done(&agentd->payload_of);
    grant_set_done(&agentd->set);
    mem_free(agentd->wanted);
    buf_done(&agentd->incoming);
}
