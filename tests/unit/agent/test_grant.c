#include <sodium.h>

#include "agent/identity.h"
#include "sample.h"
#include "unit/test.h"
#include "unit/test_dir.h"
#include "wire/grant.h"

static const struct id node = { 0x1111, 0x2222 };

/* Both halves of the key: what a controller has. */
struct signer {
    struct identity identity;
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
};

static void sha256(void *self, struct str bytes, struct grant_digest *out)
{
    (void)self;
    (void)crypto_hash_sha256(out->bytes, (const unsigned char *)bytes.data, bytes.size);
}

static void sign(void *self, struct str bytes, uint8_t out[GRANT_SIGNATURE_SIZE])
{
    const struct signer *signer = self;
    (void)crypto_sign_detached(out, NULL, (const unsigned char *)bytes.data, bytes.size,
                               signer->secret);
}

static struct grant_crypto signing(struct signer *signer)
{
    (void)crypto_sign_keypair(signer->identity.controller_key, signer->secret);
    return (struct grant_crypto){ signer, sha256, sign, NULL };
}

static void encode_one(struct signer *signer, struct grant *grant, struct buf *out)
{
    struct grant_crypto crypto = signing(signer);
    struct grant_set set = {
        .node = node, .epoch = 5, .generation = 6, .issued_ns = 7, .count = 1, .grants = grant
    };
    struct error e = { 0 };
    CHECK_OK("encode", grant_set_encode(&set, &crypto, out, &e), &e);
}

static void a_set_comes_back_as_it_was(void **state)
{
    (void)state;
    struct signer signer;
    struct grant_crypto crypto = signing(&signer);
    struct grant grants[3] = { sample_grant(1), sample_grant(2), sample_grant(3) };
    grants[2].is_stop = true;
    grants[2].stop_cause = 17;
    grants[1].on_contact_loss = GRANT_KEEP;
    grants[1].fence_after_s = 0;
    struct grant_set set = {
        .node = node, .epoch = 5, .generation = 6, .issued_ns = -7, .count = 3, .grants = grants
    };
    AUTO(buf) struct buf bytes = { 0 };
    struct error e = { 0 };
    CHECK_OK("encode", grant_set_encode(&set, &crypto, &bytes, &e), &e);
    CHECK("size", bytes.size == GRANT_HEADER_SIZE + 3 * GRANT_SIZE + GRANT_SIGNATURE_SIZE);

    struct grant_crypto verifying = identity_crypto(&signer.identity);
    AUTO(grant_set) struct grant_set found = { 0 };
    CHECK_OK("decode", grant_set_decode(buf_str(&bytes), node, &verifying, &found, &e), &e);
    CHECK("header", found.epoch == 5 && found.generation == 6 && found.issued_ns == -7);
    CHECK("count", found.count == 3);
    for (size_t i = 0; i < 3; i++) {
        uint8_t before[GRANT_SIZE];
        uint8_t after[GRANT_SIZE];
        grant_encode(&grants[i], before);
        grant_encode(&found.grants[i], after);
        CHECK("every field", memcmp(before, after, GRANT_SIZE) == 0);
    }
    CHECK("stop", found.grants[2].is_stop && found.grants[2].stop_cause == 17);
    CHECK("devices",
          found.grants[0].devices[1].index == 3 && found.grants[0].devices[1].milli == 500);
}

static void no_mutated_byte_is_accepted(void **state)
{
    (void)state;
    struct signer signer;
    struct grant grant = sample_grant(1);
    AUTO(buf) struct buf bytes = { 0 };
    encode_one(&signer, &grant, &bytes);
    struct grant_crypto verifying = identity_crypto(&signer.identity);
    size_t accepted = 0;
    for (size_t at = 0; at < bytes.size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            AUTO(grant_set) struct grant_set found = { 0 };
            bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
            accepted +=
                grant_set_decode(buf_str(&bytes), node, &verifying, &found, NULL) == ERR_OK ? 1 : 0;
            bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
        }
    }
    for (size_t size = 0; size < bytes.size; size++) {
        AUTO(grant_set) struct grant_set found = { 0 };
        struct str cut = { bytes.data, size };
        accepted += grant_set_decode(cut, node, &verifying, &found, NULL) == ERR_OK ? 1 : 0;
    }
    CHECK("accepted", accepted == 0);
}

/* A signature says who; these say that even the controller must make sense. The verifier
 * says yes. */
static bool yes(void *self, struct str bytes, const uint8_t signature[GRANT_SIGNATURE_SIZE])
{
    (void)self;
    (void)bytes;
    (void)signature;
    return true;
}

static void flipped_bits_under_a_good_signature_stay_canonical(void **state)
{
    (void)state;
    struct signer signer;
    struct grant grant = sample_grant(1);
    AUTO(buf) struct buf bytes = { 0 };
    encode_one(&signer, &grant, &bytes);
    struct grant_crypto trusting = { NULL, sha256, NULL, yes };
    size_t body = bytes.size - GRANT_SIGNATURE_SIZE;
    for (size_t at = 0; at < body; at++) {
        AUTO(grant_set) struct grant_set found = { 0 };
        bytes.data[at] = (char)(bytes.data[at] ^ 0x40);
        if (grant_set_decode(buf_str(&bytes), node, &trusting, &found, NULL) == ERR_OK) {
            uint8_t again[GRANT_SIZE];
            bool is_good = grant_check(&found.grants[0], NULL) == ERR_OK;
            CHECK("within, or a fault", is_good == (found.fault_count == 0));
            grant_encode(&found.grants[0], again);
            CHECK("one encoding",
                  !is_good || memcmp(again, bytes.data + GRANT_HEADER_SIZE, GRANT_SIZE) == 0);
        }
        bytes.data[at] = (char)(bytes.data[at] ^ 0x40);
    }
}

static void another_node_or_key_is_refused(void **state)
{
    (void)state;
    struct signer signer;
    struct signer other;
    struct grant grant = sample_grant(1);
    AUTO(buf) struct buf bytes = { 0 };
    encode_one(&signer, &grant, &bytes);
    (void)signing(&other);
    struct grant_crypto mine = identity_crypto(&signer.identity);
    struct grant_crypto theirs = identity_crypto(&other.identity);
    struct grant_set found = { 0 };
    CHECK("node", grant_set_decode(buf_str(&bytes), (struct id){ 1, 1 }, &mine, &found, NULL) ==
                      ERR_INVALID);
    CHECK("key", grant_set_decode(buf_str(&bytes), node, &theirs, &found, NULL) == ERR_DENIED);
    CHECK("untouched", found.grants == NULL && found.count == 0);
}

struct wrong_case {
    const char *name;
    void (*spoil)(struct grant *grant);
};

#define SPOIL(what, statement)                                                                     \
    static void spoil_##what(struct grant *g)                                                      \
    {                                                                                              \
        statement;                                                                                 \
    }
SPOIL(allocation, g->allocation = (struct id){ 0 })
SPOIL(attempt, g->attempt = 0)
SPOIL(rank, g->member_rank = g->member_count)
SPOIL(uid_host, g->uid_base = 0)
SPOIL(uid_top, g->uid_base = UINT32_MAX - 10)
SPOIL(uid_count, g->uid_count = 65537)
SPOIL(cpu, g->cpu_milli = 0)
SPOIL(memory, g->memory_mib = 0)
SPOIL(shm, g->shm_mib = g->memory_mib + 1)
SPOIL(pids, g->pids_max = 0)
SPOIL(grace, g->grace_s = GRANT_GRACE_MAX_S + 1)
SPOIL(cause, g->stop_cause = 1)
SPOIL(loss, g->on_contact_loss = GRANT_CONTACT_LOSS_COUNT)
SPOIL(fence, g->fence_after_s = 0)
SPOIL(fence_without, g->on_contact_loss = GRANT_KEEP)
SPOIL(devices, g->device_count = GRANT_DEVICES_MAX + 1)
SPOIL(device_twice, g->devices[1].index = g->devices[0].index)
SPOIL(milli, g->devices[0].milli = 1001)
SPOIL(no_milli, g->devices[0].milli = 0)
SPOIL(flags, g->devices[0].flags = 1)
SPOIL(slice, (g->devices[0].milli = 250,
              g->devices[0].flags = grant_slice_flags((struct grant_slice){ 7, 2, 1 })))
SPOIL(whole_slice, (g->devices[0].milli = 1000,
                    g->devices[0].flags = grant_slice_flags((struct grant_slice){ 0, 2, 2 })))
SPOIL(volumes, g->volume_count = GRANT_VOLUMES_MAX + 1)
SPOIL(volume, g->volumes[0].volume = (struct id){ 0 })
SPOIL(payload, memset(&g->payload, 0, sizeof(g->payload)))

static const struct wrong_case wrong_cases[] = {
    { "no allocation", spoil_allocation },
    { "attempt 0", spoil_attempt },
    { "rank beyond the gang", spoil_rank },
    { "uids of the host", spoil_uid_host },
    { "uids beyond the end", spoil_uid_top },
    { "too many uids", spoil_uid_count },
    { "no cpu", spoil_cpu },
    { "no memory", spoil_memory },
    { "shm beyond memory", spoil_shm },
    { "no pids", spoil_pids },
    { "endless grace", spoil_grace },
    { "a cause without a stop", spoil_cause },
    { "unknown contact loss", spoil_loss },
    { "fence without a time", spoil_fence },
    { "a fence time without fence", spoil_fence_without },
    { "too many devices", spoil_devices },
    { "a device twice", spoil_device_twice },
    { "more than a device", spoil_milli },
    { "nothing of a device", spoil_no_milli },
    { "unknown flags", spoil_flags },
    { "a partition beyond the last slice", spoil_slice },
    { "a whole device as a partition", spoil_whole_slice },
    { "too many volumes", spoil_volumes },
    { "a volume without id", spoil_volume },
    { "no payload", spoil_payload },
};

static void grants_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct grant good = sample_grant(1);
    CHECK("the sample is good", grant_check(&good, NULL) == ERR_OK);
    FOR_EACH_CASE (c, wrong_cases) {
        struct grant grant = sample_grant(1);
        struct error e = { 0 };
        c->spoil(&grant);
        CHECK(c->name, grant_check(&grant, &e) == ERR_INVALID);
        CHECK(c->name, e.text[0] != '\0' && e.field[0] != '\0');
    }
}

/* A set of two, signed as it is, of which the second is spoiled after it was checked. */
static void a_spoiled_grant_spoils_no_other(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, wrong_cases) {
        struct signer signer;
        struct error e = { 0 };
        struct grant grants[2] = { sample_grant(1), sample_grant(2) };
        struct grant_set set = {
            .node = node, .epoch = 1, .generation = 1, .count = 2, .grants = grants
        };
        struct grant_crypto trusting = { NULL, sha256, NULL, yes };
        AUTO(buf) struct buf bytes = { 0 };
        AUTO(grant_set) struct grant_set found = { 0 };
        struct grant_crypto crypto = signing(&signer);
        CHECK_OK("encode", grant_set_encode(&set, &crypto, &bytes, &e), &e);
        c->spoil(&grants[1]);
        grant_encode(&grants[1], (uint8_t *)bytes.data + GRANT_HEADER_SIZE + GRANT_SIZE);
        enum err rc = grant_set_decode(buf_str(&bytes), node, &trusting, &found, &e);
        if (id_is_none(grants[1].allocation) || grants[1].attempt == 0) {
            CHECK(c->name, rc == ERR_INVALID && found.grants == NULL);
            continue;
        }
        CHECK_OK(c->name, rc, &e);
        CHECK(c->name, grant_check(&found.grants[0], NULL) == ERR_OK);
        if (found.fault_count ==
            0) /* an array that is too long for its slots is cut by its encoding */
            continue;
        CHECK(c->name, found.fault_count == 1 && found.faults[0].index == 1);
        CHECK(c->name, found.faults[0].text[0] != '\0');
        CHECK(c->name, id_eq(found.grants[1].allocation, grants[1].allocation) &&
                           found.grants[1].attempt == grants[1].attempt);
        CHECK(c->name, found.grants[1].device_count == 0 && found.grants[1].volume_count == 0 &&
                           found.grants[1].cpu_milli == 0);
    }
}

static void of_two_tenants_on_the_same_uids_the_second_is_at_fault(void **state)
{
    (void)state;
    struct signer signer;
    struct error e = { 0 };
    struct grant grants[2] = { sample_grant(1), sample_grant(2) };
    struct grant_set set = {
        .node = node, .epoch = 1, .generation = 1, .count = 2, .grants = grants
    };
    struct grant_crypto trusting = { NULL, sha256, NULL, yes };
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(grant_set) struct grant_set found = { 0 };
    struct grant_crypto crypto = signing(&signer);
    CHECK_OK("encode", grant_set_encode(&set, &crypto, &bytes, &e), &e);
    grants[1].tenant = (struct id){ 4, 4 };
    grant_encode(&grants[1], (uint8_t *)bytes.data + GRANT_HEADER_SIZE + GRANT_SIZE);
    CHECK_OK("decode", grant_set_decode(buf_str(&bytes), node, &trusting, &found, &e), &e);
    CHECK("fault", found.fault_count == 1 && found.faults[0].index == 1 &&
                       strstr(found.faults[0].text, "uids") != NULL);
    CHECK("harmless", found.grants[1].uid_count == 0);
}

static void pairs_that_clash_are_refused(void **state)
{
    (void)state;
    struct grant twice[2] = { sample_grant(1), sample_grant(1) };
    struct grant_set set = {
        .node = node, .epoch = 1, .generation = 1, .count = 2, .grants = twice
    };
    CHECK("the same allocation", grant_set_check(&set, NULL) == ERR_INVALID);
    struct grant tenants[2] = { sample_grant(1), sample_grant(2) };
    tenants[1].tenant = (struct id){ 4, 4 };
    set.grants = tenants;
    CHECK("two tenants, the same uids", grant_set_check(&set, NULL) == ERR_INVALID);
    tenants[1].uid_base += 65535;
    CHECK("one uid of them", grant_set_check(&set, NULL) == ERR_INVALID);
    tenants[1].uid_base += 1;
    CHECK("side by side", grant_set_check(&set, NULL) == ERR_OK);
}

struct order_case {
    const char *name;
    struct grant_stamp stored, offered;
    enum grant_order order;
};
static const struct order_case order_cases[] = {
    { "the first", { 0, 0 }, { 1, 1 }, GRANT_NEWER },
    { "the next", { 1, 1 }, { 1, 2 }, GRANT_NEWER },
    { "the same", { 3, 9 }, { 3, 9 }, GRANT_SAME },
    { "an earlier one", { 3, 9 }, { 3, 8 }, GRANT_OLDER },
    { "a new epoch starts over", { 3, 9 }, { 4, 1 }, GRANT_NEWER },
    { "an old epoch with a high generation", { 3, 9 }, { 2, 100 }, GRANT_OLDER },
    { "the largest numbers",
      { UINT64_MAX, UINT64_MAX - 1 },
      { UINT64_MAX, UINT64_MAX },
      GRANT_NEWER },
};

static void epoch_goes_before_generation(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, order_cases)
        CHECK(c->name, grant_order(c->stored, c->offered) == c->order);
}

static const struct str args[] = { { "/bin/echo", 9 }, { "a\x1b\n", 3 } };
static const struct str env[] = { { "A=1", 3 }, { "B=", 2 } };
static const struct str hosts[] = { { "m-0", 3 }, { "m-1.example", 11 } };
static const struct str targets[] = { { "/data", 5 } };

static struct grant_payload sample_payload(void)
{
    return (struct grant_payload){ .working_dir = STR("/work"),
                                   .hostname = STR("box"),
                                   .upload_path = STR("/code"),
                                   .master_port = 29500,
                                   .arg_count = 2,
                                   .args = args,
                                   .env_count = 2,
                                   .env = env,
                                   .host_count = 2,
                                   .hosts = hosts,
                                   .volume_count = 1,
                                   .volume_targets = targets };
}

static void a_payload_fits_its_grant_alone(void **state)
{
    (void)state;
    struct grant_payload payload = sample_payload();
    struct grant grant = sample_grant(1);
    struct grant_crypto crypto = { NULL, sha256, NULL, yes };
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    struct grant_payload found = { 0 };
    struct error e = { 0 };
    CHECK_OK("encode", grant_payload_encode(&payload, &bytes, &e), &e);
    CHECK("another payload",
          grant_payload_open(buf_str(&bytes), &grant, &crypto, &arena, &found, NULL) == ERR_DENIED);
    sha256(NULL, buf_str(&bytes), &grant.payload);
    CHECK("another target", grant_payload_open(buf_str(&bytes), &grant, &crypto, &arena, &found,
                                               NULL) == ERR_INVALID);
    sha256(NULL, targets[0], &grant.volumes[0].target);
    CHECK_OK("open", grant_payload_open(buf_str(&bytes), &grant, &crypto, &arena, &found, &e), &e);
    CHECK("args", found.arg_count == 2 && str_eq(found.args[1], args[1]));
    CHECK("hosts", found.host_count == 2 && str_is(found.hosts[1], "m-1.example"));
    CHECK("port", found.master_port == 29500 && str_is(found.upload_path, "/code"));
    memset(&grant.upload, 0, sizeof(grant.upload));
    CHECK("a path without an upload", grant_payload_open(buf_str(&bytes), &grant, &crypto, &arena,
                                                         &found, NULL) == ERR_INVALID);
}

static void a_cut_or_changed_payload_never_reads_beyond(void **state)
{
    (void)state;
    struct grant_payload payload = sample_payload();
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    struct grant_payload found;
    CHECK("encode", grant_payload_encode(&payload, &bytes, NULL) == ERR_OK);
    for (size_t size = 0; size < bytes.size; size++) {
        char *exact = mem_new(1, size + 1); /* so that a sanitizer sees one byte too many */
        memcpy(exact, bytes.data, size);
        CHECK("cut",
              grant_payload_decode((struct str){ exact, size }, &arena, &found, NULL) != ERR_OK);
        mem_free(exact);
    }
    for (size_t at = 0; at < bytes.size; at++) {
        bytes.data[at] = (char)~bytes.data[at];
        (void)!grant_payload_decode(buf_str(&bytes), &arena, &found, NULL);
        bytes.data[at] = (char)~bytes.data[at];
    }
}

struct payload_case {
    const char *name;
    const char *arg, *variable, *dir, *target, *host;
    size_t arg_size; /* 0: as long as the text */
};
static const struct payload_case payload_cases[] = {
    { "NUL in an argument", "a\0b", "A=1", "/", "/d", "h", 3 },
    { "no UTF-8", "\xff", "A=1", "/", "/d", "h", 0 },
    { "a variable without =", "a", "A", "/", "/d", "h", 0 },
    { "a variable without name", "a", "=1", "/", "/d", "h", 0 },
    { "a relative directory", "a", "A=1", "x", "/d", "h", 0 },
    { "a directory that climbs", "a", "A=1", "/x/../y", "/d", "h", 0 },
    { "a target that climbs", "a", "A=1", "/", "/d/..", "h", 0 },
    { "the root as a target", "a", "A=1", "/", "/", "h", 0 },
    { "a host name with a space", "a", "A=1", "/", "/d", "h h", 0 },
    { "a host name that is an option", "a", "A=1", "/", "/d", "-h", 0 },
};

static void payloads_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, payload_cases) {
        struct str arg = str_of(c->arg);
        struct str variable = str_of(c->variable);
        struct str target = str_of(c->target);
        struct str host = str_of(c->host);
        arg.size = c->arg_size > 0 ? c->arg_size : arg.size;
        struct grant_payload payload = { .working_dir = str_of(c->dir),
                                         .arg_count = 1,
                                         .args = &arg,
                                         .env_count = 1,
                                         .env = &variable,
                                         .host_count = 1,
                                         .hosts = &host,
                                         .volume_count = 1,
                                         .volume_targets = &target };
        AUTO(buf) struct buf bytes = { 0 };
        CHECK(c->name, grant_payload_encode(&payload, &bytes, NULL) == ERR_INVALID);
    }
    struct grant_payload empty = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    CHECK("no argument", grant_payload_encode(&empty, &bytes, NULL) == ERR_INVALID);
}

static void no_mutated_ticket_is_accepted(void **state)
{
    (void)state;
    struct signer signer;
    struct grant_crypto crypto = signing(&signer);
    struct ticket ticket = { node,        9,    { 7, 8 }, { 1, 2 }, { 3, 4 }, { 5, 6 },
                             TICKET_EXEC, true, 1,        100000,   65536,    { { 7 } } };
    uint8_t bytes[TICKET_SIZE];
    struct error e = { 0 };
    CHECK_OK("encode", ticket_encode(&ticket, &crypto, bytes, &e), &e);
    struct grant_crypto verifying = identity_crypto(&signer.identity);
    struct ticket found;
    CHECK_OK("decode", ticket_decode(bytes, node, &verifying, &found, &e), &e);
    CHECK("fields", found.epoch == 9 && id_eq(found.run, ticket.run) && found.is_tty &&
                        found.kind == TICKET_EXEC && id_eq(found.object, ticket.object) &&
                        found.payload.bytes[0] == 7);
    size_t accepted = 0;
    for (size_t at = 0; at < TICKET_SIZE; at++) {
        bytes[at] ^= 1;
        accepted += ticket_decode(bytes, node, &verifying, &found, NULL) == ERR_OK ? 1 : 0;
        bytes[at] ^= 1;
    }
    CHECK("accepted", accepted == 0);
    CHECK("another node",
          ticket_decode(bytes, (struct id){ 9, 9 }, &verifying, &found, NULL) == ERR_INVALID);
    ticket.run = (struct id){ 0 };
    CHECK("no run", ticket_encode(&ticket, &crypto, bytes, NULL) == ERR_INVALID);
    ticket.run = (struct id){ 7, 8 };
    ticket.kind = TICKET_VOLUME_GET;
    CHECK("a terminal for a volume", ticket_encode(&ticket, &crypto, bytes, NULL) == ERR_INVALID);
}

static void no_mutated_contact_is_accepted(void **state)
{
    (void)state;
    struct signer signer;
    struct grant_crypto crypto = signing(&signer);
    struct contact contact = { node, { 9, 8 }, { 1, 2 } };
    uint8_t bytes[CONTACT_SIZE];
    struct error e = { 0 };
    CHECK_OK("encode", contact_encode(&contact, &crypto, bytes, &e), &e);
    struct grant_crypto verifying = identity_crypto(&signer.identity);
    struct contact found;
    CHECK_OK("decode", contact_decode(bytes, node, &verifying, &found, &e), &e);
    CHECK("fields", found.newest.epoch == 9 && found.newest.generation == 8 &&
                        id_eq(found.challenge, contact.challenge));
    size_t accepted = 0;
    for (size_t at = 0; at < CONTACT_SIZE; at++) {
        bytes[at] ^= 1;
        accepted += contact_decode(bytes, node, &verifying, &found, NULL) == ERR_OK ? 1 : 0;
        bytes[at] ^= 1;
    }
    CHECK("accepted", accepted == 0);
    CHECK("another node",
          contact_decode(bytes, (struct id){ 9, 9 }, &verifying, &found, NULL) == ERR_INVALID);
    contact.challenge = (struct id){ 0 };
    CHECK("no challenge", contact_encode(&contact, &crypto, bytes, NULL) == ERR_INVALID);
}

static void an_identity_is_read_as_it_was_written(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    char path[128];
    struct identity identity = { node, { 1, 2, 3 } };
    struct identity found = { 0 };
    struct error e = { 0 };
    (void)snprintf(path, sizeof(path), "%s/identity", dir.path);
    CHECK("absent", identity_read(path, &found, &e) == ERR_NOT_FOUND);
    CHECK_OK("write", identity_write(path, &identity, &e), &e);
    CHECK_OK("read", identity_read(path, &found, &e), &e);
    CHECK("the same", memcmp(&found, &identity, sizeof(found)) == 0);
    CHECK("cut", truncate(path, 40) == 0 && identity_read(path, &found, &e) == ERR_CORRUPT);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_comes_back_as_it_was),
        cmocka_unit_test(no_mutated_byte_is_accepted),
        cmocka_unit_test(flipped_bits_under_a_good_signature_stay_canonical),
        cmocka_unit_test(another_node_or_key_is_refused),
        cmocka_unit_test(grants_that_make_no_sense_are_refused),
        cmocka_unit_test(a_spoiled_grant_spoils_no_other),
        cmocka_unit_test(of_two_tenants_on_the_same_uids_the_second_is_at_fault),
        cmocka_unit_test(pairs_that_clash_are_refused),
        cmocka_unit_test(epoch_goes_before_generation),
        cmocka_unit_test(a_payload_fits_its_grant_alone),
        cmocka_unit_test(a_cut_or_changed_payload_never_reads_beyond),
        cmocka_unit_test(payloads_that_make_no_sense_are_refused),
        cmocka_unit_test(no_mutated_ticket_is_accepted),
        cmocka_unit_test(no_mutated_contact_is_accepted),
        cmocka_unit_test(an_identity_is_read_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
