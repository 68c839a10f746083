#include "wire/grant.h"

#include <assert.h>
#include <string.h>

enum { SET_MAGIC = 0x53475242 };     /* "BRGS" */
enum { PAYLOAD_MAGIC = 0x50475242 }; /* "BRGP" */
enum { TICKET_MAGIC = 0x54475242 };  /* "BRGT" */
enum { CONTACT_MAGIC = 0x43475242 }; /* "BRGC" */

enum { FLAG_STOP = 1, FLAG_TTY = 1, VOLUME_READ_ONLY = 1, LOSS_SHIFT = 8 };

static_assert(GRANT_SIZE == 880, "the layout of version 1");
static_assert(GRANT_HEADER_SIZE == 56, "the layout of version 1");

/* Little-endian output to a buffer that is known to be large enough. */
struct writer {
    uint8_t *at;
};

static void put(struct writer *w, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        w->at[i] = (uint8_t)(value >> (8 * i));
    w->at += size;
}

static void put_bytes(struct writer *w, const void *bytes, size_t size)
{
    memcpy(w->at, bytes, size);
    w->at += size;
}

static void put_id(struct writer *w, struct id id)
{
    put(w, id.hi, 8);
    put(w, id.lo, 8);
}

/* Input that remembers that it ran short, so that a caller checks once, at the end. */
struct reader {
    const uint8_t *at;
    size_t left;
    bool is_short;
};

static struct reader reader_of(struct str bytes)
{
    return (struct reader){ (const uint8_t *)bytes.data, bytes.size, false };
}

static const uint8_t *get_bytes(struct reader *r, size_t size)
{
    if (r->left < size) {
        r->is_short = true;
        r->left = 0;
        return NULL;
    }
    const uint8_t *bytes = r->at;
    r->at += size;
    r->left -= size;
    return bytes;
}

static uint64_t get(struct reader *r, size_t size)
{
    const uint8_t *bytes = get_bytes(r, size);
    uint64_t value = 0;
    for (size_t i = 0; bytes != NULL && i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static uint32_t get_u32(struct reader *r)
{
    return (uint32_t)get(r, 4);
}

static struct id get_id(struct reader *r)
{
    uint64_t hi = get(r, 8);
    return (struct id){ hi, get(r, 8) };
}

static void get_digest(struct reader *r, struct grant_digest *out)
{
    const uint8_t *bytes = get_bytes(r, GRANT_DIGEST_SIZE);
    if (bytes != NULL)
        memcpy(out->bytes, bytes, GRANT_DIGEST_SIZE);
}

bool grant_digest_eq(const struct grant_digest *a, const struct grant_digest *b)
{
    return memcmp(a->bytes, b->bytes, GRANT_DIGEST_SIZE) == 0;
}

void grant_set_done(struct grant_set *set)
{
    mem_free(set->grants);
    mem_free(set->faults);
    *set = (struct grant_set){ 0 };
}

enum grant_order grant_order(struct grant_stamp stored, struct grant_stamp offered)
{
    if (offered.epoch != stored.epoch)
        return offered.epoch > stored.epoch ? GRANT_NEWER : GRANT_OLDER;
    if (offered.generation != stored.generation)
        return offered.generation > stored.generation ? GRANT_NEWER : GRANT_OLDER;
    return GRANT_SAME;
}

/* Checks */

struct range {
    const char *field;
    uint64_t value;
    uint64_t min;
    uint64_t max;
};

static enum err check_ranges(const struct range *ranges, size_t count, struct error *e)
{
    for (size_t i = 0; i < count; i++) {
        const struct range *r = &ranges[i];
        if (r->value < r->min || r->value > r->max)
            return err_field(e, r->field, "%s: %llu is not in %llu..%llu", r->field,
                             (unsigned long long)r->value, (unsigned long long)r->min,
                             (unsigned long long)r->max);
    }
    return ERR_OK;
}

static enum err check_uids(uint32_t base, uint32_t count, struct error *e)
{
    const struct range ranges[] = {
        { "uid_base", base, GRANT_UID_MIN, UINT32_MAX - GRANT_UID_COUNT_MAX },
        { "uid_count", count, 1, GRANT_UID_COUNT_MAX },
    };
    return check_ranges(ranges, COUNT_OF(ranges), e);
}

enum { SLICE_BITS = 4, SLICES_OF_MEMORY = 8, SLICES_OF_COMPUTE = 7 };

uint32_t grant_slice_flags(struct grant_slice slice)
{
    return slice.size | slice.start << SLICE_BITS | slice.compute << 2 * SLICE_BITS;
}

struct grant_slice grant_slice_of(const struct grant_device *device)
{
    const uint32_t mask = (1u << SLICE_BITS) - 1;
    return (struct grant_slice){ .size = device->flags & mask,
                                 .start = device->flags >> SLICE_BITS & mask,
                                 .compute = device->flags >> 2 * SLICE_BITS & mask };
}

/* No bits but those of a partition, and one that a device can have. */
static bool are_flags_known(const struct grant_device *device)
{
    const struct grant_slice slice = grant_slice_of(device);
    if (device->flags == 0)
        return true;
    return grant_slice_flags(slice) == device->flags && slice.size > 0 && slice.compute > 0 &&
           slice.start + slice.size <= SLICES_OF_MEMORY && slice.compute <= SLICES_OF_COMPUTE &&
           device->milli < 1000;
}

static enum err check_devices(const struct grant *grant, struct error *e)
{
    for (uint32_t i = 0; i < grant->device_count; i++) {
        const struct grant_device *device = &grant->devices[i];
        if (device->milli < 1 || device->milli > 1000)
            return err_field(e, "devices", "device %u: milli %u is not in 1..1000", device->index,
                             device->milli);
        if (!are_flags_known(device))
            return err_field(e, "devices", "device %u: unknown flags", device->index);
        for (uint32_t k = 0; k < i; k++)
            if (grant->devices[k].index == device->index)
                return err_field(e, "devices", "device %u is granted twice", device->index);
    }
    return ERR_OK;
}

static enum err check_volumes(const struct grant *grant, struct error *e)
{
    for (uint32_t i = 0; i < grant->volume_count; i++) {
        if (id_is_none(grant->volumes[i].volume))
            return err_field(e, "volumes", "volume %u has no id", i);
        for (uint32_t k = 0; k < i; k++)
            if (grant_digest_eq(&grant->volumes[k].target, &grant->volumes[i].target))
                return err_field(e, "volumes", "two volumes have the same target");
    }
    return ERR_OK;
}

enum err grant_check(const struct grant *grant, struct error *e)
{
    if (id_is_none(grant->allocation) || id_is_none(grant->workload) || id_is_none(grant->tenant))
        return err_field(e, "allocation", "a grant names an allocation, a workload and a tenant");
    if (grant_digest_is_none(&grant->payload))
        return err_field(e, "payload", "a grant has a payload");

    bool is_fence = grant->on_contact_loss == GRANT_FENCE;
    const struct range ranges[] = {
        { "attempt", grant->attempt, 1, UINT32_MAX },
        { "member_count", grant->member_count, 1, GRANT_MEMBERS_MAX },
        { "member_rank", grant->member_rank, 0, (uint64_t)MAX_OF(grant->member_count, 1U) - 1 },
        { "cpu_milli", grant->cpu_milli, GRANT_CPU_MILLI_MIN, GRANT_CPU_MILLI_MAX },
        { "memory_mib", grant->memory_mib, 1, GRANT_MEMORY_MIB_MAX },
        { "pids_max", grant->pids_max, 1, 4194304 },
        { "shm_mib", grant->shm_mib, 0, grant->memory_mib },
        { "time_limit_s", grant->time_limit_s, 0, 10U * 366 * 86400 },
        { "grace_s", grant->grace_s, 0, GRANT_GRACE_MAX_S },
        { "stop_cause", grant->stop_cause, 0, grant->is_stop ? UINT16_MAX : 0 },
        { "on_contact_loss", grant->on_contact_loss, 0, GRANT_CONTACT_LOSS_COUNT - 1 },
        { "fence_after_s", grant->fence_after_s, is_fence ? 1 : 0, is_fence ? 30U * 86400 : 0 },
        { "device_count", grant->device_count, 0, GRANT_DEVICES_MAX },
        { "volume_count", grant->volume_count, 0, GRANT_VOLUMES_MAX },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    if (rc == ERR_OK)
        rc = check_uids(grant->uid_base, grant->uid_count, e);
    if (rc == ERR_OK)
        rc = check_devices(grant, e);
    return rc != ERR_OK ? rc : check_volumes(grant, e);
}

static bool uids_overlap(const struct grant *a, const struct grant *b)
{
    return a->uid_base < b->uid_base + b->uid_count && b->uid_base < a->uid_base + a->uid_count;
}

/* Pairs: at most a few thousand grants, and a comparison is a few instructions. */
static enum err check_allocations(const struct grant_set *set, struct error *e)
{
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (id_eq(set->grants[i].allocation, set->grants[k].allocation))
                return err_field(e, "allocation", "grant %u names the allocation of %u", i, k);
    return ERR_OK;
}

/* Grant `i` against all before it. */
static enum err check_sharing(const struct grant_set *set, uint32_t i, struct error *e)
{
    const struct grant *a = &set->grants[i];
    for (uint32_t k = 0; k < i; k++) {
        const struct grant *b = &set->grants[k];
        if (!id_eq(a->tenant, b->tenant) && uids_overlap(a, b))
            return err_field(e, "uid_base", "grants %u and %u: two tenants share uids", i, k);
    }
    return ERR_OK;
}

enum err grant_set_check(const struct grant_set *set, struct error *e)
{
    if (id_is_none(set->node))
        return err_field(e, "node", "a set is for a node");
    if (set->count > GRANT_SET_MAX)
        return err_set(e, ERR_LIMIT, "%u grants are more than %d", set->count, GRANT_SET_MAX);
    for (uint32_t i = 0; i < set->count; i++) {
        enum err rc = grant_check(&set->grants[i], e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "grant %u", i);
    }
    enum err rc = check_allocations(set, e);
    for (uint32_t i = 0; rc == ERR_OK && i < set->count; i++)
        rc = check_sharing(set, i, e);
    return rc;
}

/* Grants */

static void put_device(struct writer *w, const struct grant_device *device)
{
    put(w, device->index, 2);
    put(w, device->milli, 2);
    put(w, device->minor, 4);
    put(w, device->memory_mib, 4);
    put(w, device->flags, 4);
}

static void put_volume(struct writer *w, const struct grant_volume *volume)
{
    put_id(w, volume->volume);
    put(w, volume->is_read_only ? VOLUME_READ_ONLY : 0, 4);
    put_bytes(w, volume->target.bytes, GRANT_DIGEST_SIZE);
}

void grant_encode(const struct grant *grant, uint8_t out[GRANT_SIZE])
{
    static const struct grant_device no_device;
    static const struct grant_volume no_volume;
    const uint32_t words[] = {
        grant->attempt,
        grant->member_rank,
        grant->member_count,
        grant->uid_base,
        grant->uid_count,
        grant->cpu_milli,
        grant->memory_mib,
        grant->pids_max,
        grant->shm_mib,
        grant->time_limit_s,
        grant->grace_s,
        grant->fence_after_s,
        grant->device_count,
        grant->volume_count,
        (grant->is_stop ? FLAG_STOP : 0U) | (uint32_t)grant->on_contact_loss << LOSS_SHIFT,
        grant->stop_cause,
    };
    struct writer w = { out };
    put_id(&w, grant->allocation);
    put_id(&w, grant->workload);
    put_id(&w, grant->tenant);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        put(&w, words[i], 4);
    for (uint32_t i = 0; i < GRANT_DEVICES_MAX; i++)
        put_device(&w, i < grant->device_count ? &grant->devices[i] : &no_device);
    for (uint32_t i = 0; i < GRANT_VOLUMES_MAX; i++)
        put_volume(&w, i < grant->volume_count ? &grant->volumes[i] : &no_volume);
    put_bytes(&w, grant->image.bytes, GRANT_DIGEST_SIZE);
    put_bytes(&w, grant->payload.bytes, GRANT_DIGEST_SIZE);
    put_bytes(&w, grant->upload.bytes, GRANT_DIGEST_SIZE);
    assert(w.at == out + GRANT_SIZE);
}

static void get_words(struct reader *r, struct grant *out)
{
    uint32_t *const fields[] = {
        &out->attempt,      &out->member_rank,  &out->member_count, &out->uid_base,
        &out->uid_count,    &out->cpu_milli,    &out->memory_mib,   &out->pids_max,
        &out->shm_mib,      &out->time_limit_s, &out->grace_s,      &out->fence_after_s,
        &out->device_count, &out->volume_count,
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        *fields[i] = get_u32(r);
}

static void get_device(struct reader *r, struct grant_device *out)
{
    out->index = (uint16_t)get(r, 2);
    out->milli = (uint16_t)get(r, 2);
    out->minor = get_u32(r);
    out->memory_mib = get_u32(r);
    out->flags = get_u32(r);
}

static void get_volume(struct reader *r, struct grant_volume *out)
{
    out->volume = get_id(r);
    out->is_read_only = (get_u32(r) & VOLUME_READ_ONLY) != 0;
    get_digest(r, &out->target);
}

/* One meaning has one encoding: flags and unused slots that encode differently are refused. */
static bool is_canonical(const struct grant *grant, const uint8_t bytes[GRANT_SIZE])
{
    uint8_t again[GRANT_SIZE];
    grant_encode(grant, again);
    return memcmp(again, bytes, GRANT_SIZE) == 0;
}

/* As it stands there, whatever it says. */
static struct grant read_grant(const uint8_t bytes[GRANT_SIZE])
{
    struct reader r = { bytes, GRANT_SIZE, false };
    struct grant grant = { 0 };
    grant.allocation = get_id(&r);
    grant.workload = get_id(&r);
    grant.tenant = get_id(&r);
    get_words(&r, &grant);
    uint32_t flags = get_u32(&r);
    uint32_t cause = get_u32(&r);
    grant.is_stop = (flags & FLAG_STOP) != 0;
    grant.on_contact_loss = (enum grant_contact_loss)((flags >> LOSS_SHIFT) & 0xff);
    grant.stop_cause = (uint16_t)cause;
    for (uint32_t i = 0; i < GRANT_DEVICES_MAX; i++)
        get_device(&r, &grant.devices[i]);
    for (uint32_t i = 0; i < GRANT_VOLUMES_MAX; i++)
        get_volume(&r, &grant.volumes[i]);
    get_digest(&r, &grant.image);
    get_digest(&r, &grant.payload);
    get_digest(&r, &grant.upload);
    return grant;
}

enum err grant_decode(const uint8_t bytes[GRANT_SIZE], struct grant *out, struct error *e)
{
    struct grant grant = read_grant(bytes);
    enum err rc = grant_check(&grant, e);
    if (rc != ERR_OK)
        return rc;
    if (!is_canonical(&grant, bytes))
        return err_set(e, ERR_INVALID, "a grant has bits that version %d does not know",
                       GRANT_VERSION);
    *out = grant;
    return ERR_OK;
}

/* Sets */

static void set_header(const struct grant_set *set, uint8_t out[GRANT_HEADER_SIZE])
{
    struct writer w = { out };
    put(&w, SET_MAGIC, 4);
    put(&w, GRANT_VERSION, 4);
    put_id(&w, set->node);
    put(&w, set->epoch, 8);
    put(&w, set->generation, 8);
    put(&w, (uint64_t)set->issued_ns, 8);
    put(&w, set->count, 4);
    put(&w, GRANT_SIZE, 4);
}

enum err grant_set_encode(const struct grant_set *set, const struct grant_crypto *crypto,
                          struct buf *out, struct error *e)
{
    enum err rc = grant_set_check(set, e);
    if (rc != ERR_OK)
        return rc;

    size_t start = out->size;
    size_t body = GRANT_HEADER_SIZE + (size_t)set->count * GRANT_SIZE;
    buf_reserve(out, body + GRANT_SIGNATURE_SIZE);
    uint8_t *at = (uint8_t *)out->data + start;
    set_header(set, at);
    for (uint32_t i = 0; i < set->count; i++)
        grant_encode(&set->grants[i], at + GRANT_HEADER_SIZE + (size_t)i * GRANT_SIZE);
    crypto->sign(crypto->self, (struct str){ (const char *)at, body }, at + body);
    out->size = start + body + GRANT_SIGNATURE_SIZE;
    out->data[out->size] = '\0';
    return ERR_OK;
}

static enum err check_magic(struct reader *r, uint32_t magic, const char *what, struct error *e)
{
    uint32_t found = get_u32(r);
    uint32_t version = get_u32(r);
    if (r->is_short || found != magic)
        return err_set(e, ERR_INVALID, "these bytes are no %s", what);
    if (version != GRANT_VERSION)
        return err_set(e, ERR_INVALID, "%s version %u is not %d", what, version, GRANT_VERSION);
    return ERR_OK;
}

/* Splits off and checks the signature. Nothing else is looked at before. */
static enum err open_signed(struct str bytes, const struct grant_crypto *crypto, const char *what,
                            struct reader *out, struct error *e)
{
    if (bytes.size < GRANT_SIGNATURE_SIZE)
        return err_set(e, ERR_INVALID, "%zu bytes are no %s", bytes.size, what);
    struct str body = { bytes.data, bytes.size - GRANT_SIGNATURE_SIZE };
    if (!crypto->verify(crypto->self, body, (const uint8_t *)bytes.data + body.size))
        return err_set(e, ERR_DENIED, "the %s is not signed by the controller this node joined",
                       what);
    *out = reader_of(body);
    return ERR_OK;
}

static enum err read_header(struct reader *r, struct id node, struct grant_set *out,
                            struct error *e)
{
    enum err rc = check_magic(r, SET_MAGIC, "desired set", e);
    if (rc != ERR_OK)
        return rc;
    out->node = get_id(r);
    out->epoch = get(r, 8);
    out->generation = get(r, 8);
    out->issued_ns = (int64_t)get(r, 8);
    out->count = get_u32(r);
    uint32_t size = get_u32(r);
    if (r->is_short || size != GRANT_SIZE || out->count > GRANT_SET_MAX ||
        r->left != (size_t)out->count * GRANT_SIZE)
        return err_set(e, ERR_INVALID, "the desired set has the wrong length");
    if (!id_eq(out->node, node))
        return err_set(e, ERR_INVALID, "the desired set is for another node");
    return ERR_OK;
}

/* What is left of a grant that cannot be taken: enough to answer for it, and nothing to act on. */
static void set_fault(struct grant_set *set, uint32_t index, const struct error *why)
{
    const struct grant given = set->grants[index];
    set->grants[index] = (struct grant){
        .allocation = given.allocation,
        .workload = given.workload,
        .tenant = given.tenant,
        .attempt = given.attempt,
        .grace_s = MIN_OF(given.grace_s, (uint32_t)GRANT_GRACE_MAX_S),
        .is_stop = given.is_stop,
        .stop_cause = given.stop_cause,
    };
    if (set->faults == NULL)
        set->faults = mem_new(set->count, sizeof(*set->faults));
    struct grant_fault *fault = &set->faults[set->fault_count++];
    fault->index = index;
    size_t size = MIN_OF(strlen(why->text), sizeof(fault->text) - 1);
    memcpy(fault->text, why->text, size);
    fault->text[size] = '\0';
}

/* Takes each grant, or notes what is wrong with it. ERR_INVALID: not even whose it is can
 * be told. */
static enum err take_grants(struct grant_set *set, const uint8_t *at, struct error *e)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const uint8_t *bytes = at + (size_t)i * GRANT_SIZE;
        struct error why = { 0 };
        enum err rc = grant_decode(bytes, &set->grants[i], &why);
        if (rc == ERR_OK) {
            rc = check_sharing(set, i, &why);
        } else {
            set->grants[i] = read_grant(bytes);
            const struct grant *given = &set->grants[i];
            if (id_is_none(given->allocation) || given->attempt == 0)
                return err_wrap(e, err_set(e, rc, "%s", why.text), "grant %u", i);
        }
        if (rc != ERR_OK)
            set_fault(set, i, &why);
    }
    return check_allocations(set, e);
}

enum err grant_set_decode(struct str bytes, struct id node, const struct grant_crypto *crypto,
                          struct grant_set *out, struct error *e)
{
    if (bytes.size > GRANT_SET_BYTES_MAX)
        return err_set(e, ERR_LIMIT, "a desired set of %zu bytes is too large", bytes.size);
    struct reader r = { 0 };
    enum err rc = open_signed(bytes, crypto, "desired set", &r, e);
    if (rc != ERR_OK)
        return rc;

    AUTO(grant_set) struct grant_set set = { 0 };
    rc = read_header(&r, node, &set, e);
    if (rc != ERR_OK)
        return rc;
    set.grants = mem_new(MAX_OF(set.count, 1U), sizeof(*set.grants));
    rc = take_grants(&set, r.at, e);
    if (rc != ERR_OK)
        return rc;
    *out = set;
    set.grants = NULL;
    set.faults = NULL;
    return ERR_OK;
}

/* Payloads */

static bool has_nul(struct str s)
{
    return s.size > 0 && memchr(s.data, '\0', s.size) != NULL;
}

/* A path that cannot leave where it starts: absolute, and no ".." between slashes. */
static bool is_safe_path(struct str path)
{
    if (path.size < 1 || path.size > PAYLOAD_PATH_MAX || path.data[0] != '/')
        return false;
    struct str rest = path;
    while (rest.size > 0)
        if (str_is(str_cut(&rest, '/'), ".."))
            return false;
    return true;
}

static bool is_hostname(struct str name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_plain && (i == 0 || (c != '-' && c != '.')))
            return false;
    }
    return name.size > 0;
}

static bool is_variable(struct str variable)
{
    const char *equals = variable.size > 0 ? memchr(variable.data, '=', variable.size) : NULL;
    return equals != NULL && equals != variable.data;
}

static enum err check_strings(const struct str *strings, uint32_t count, const char *what,
                              struct error *e)
{
    for (uint32_t i = 0; i < count; i++) {
        if (has_nul(strings[i]) || !str_is_utf8(strings[i]))
            return err_field(e, what, "%s %u is not UTF-8 without NUL", what, i);
        if (str_is(STR("env"), what) && !is_variable(strings[i]))
            return err_field(e, what, "env %u is not NAME=value", i);
    }
    return ERR_OK;
}

static enum err check_paths(const struct grant_payload *payload, struct error *e)
{
    struct str singles[] = { payload->working_dir, payload->upload_path };
    for (size_t i = 0; i < COUNT_OF(singles); i++)
        if (singles[i].size > 0 && !is_safe_path(singles[i]))
            return err_field(e, i == 0 ? "working_dir" : "upload_path",
                             "\"%.*s\" is not an absolute path without \"..\"",
                             (int)MIN_OF(singles[i].size, (size_t)100), singles[i].data);
    for (uint32_t i = 0; i < payload->volume_count; i++)
        if (!is_safe_path(payload->volume_targets[i]) || payload->volume_targets[i].size == 1)
            return err_field(e, "volumes", "target %u is not a directory below \"/\"", i);
    return ERR_OK;
}

static enum err payload_check(const struct grant_payload *payload, struct error *e)
{
    const struct range ranges[] = {
        { "args", payload->arg_count, 1, PAYLOAD_ARGS_MAX },
        { "env", payload->env_count, 0, PAYLOAD_ENV_MAX },
        { "hosts", payload->host_count, 0, PAYLOAD_HOSTS_MAX },
        { "volumes", payload->volume_count, 0, GRANT_VOLUMES_MAX },
        { "hostname", payload->hostname.size, 0, PAYLOAD_HOSTNAME_MAX },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    if (rc == ERR_OK)
        rc = check_paths(payload, e);
    if (rc == ERR_OK)
        rc = check_strings(&payload->working_dir, 1, "working_dir", e);
    if (rc == ERR_OK)
        rc = check_strings(&payload->upload_path, 1, "upload_path", e);
    if (rc == ERR_OK)
        rc = check_strings(payload->args, payload->arg_count, "args", e);
    if (rc == ERR_OK)
        rc = check_strings(payload->env, payload->env_count, "env", e);
    if (rc == ERR_OK)
        rc = check_strings(payload->volume_targets, payload->volume_count, "volumes", e);
    if (rc != ERR_OK)
        return rc;
    if (payload->hostname.size > 0 && !is_hostname(payload->hostname))
        return err_field(e, "hostname", "the host name has other characters than a-z 0-9 - .");
    for (uint32_t i = 0; i < payload->host_count; i++)
        if (payload->hosts[i].size > 253 || !is_hostname(payload->hosts[i]))
            return err_field(e, "hosts", "host %u is not a host name", i);
    return ERR_OK;
}

static void add_u32(struct buf *out, uint32_t value)
{
    uint8_t bytes[4];
    struct writer w = { bytes };
    put(&w, value, 4);
    buf_add(out, bytes, sizeof(bytes));
}

static void add_strings(struct buf *out, const struct str *strings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        add_u32(out, (uint32_t)strings[i].size);
        buf_add_str(out, strings[i]);
    }
}

static size_t strings_size(const struct str *strings, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += MIN_OF(strings[i].size, (size_t)PAYLOAD_MAX) + 4;
    return size;
}

enum err grant_payload_encode(const struct grant_payload *payload, struct buf *out, struct error *e)
{
    enum err rc = payload_check(payload, e);
    if (rc != ERR_OK)
        return rc;

    const struct str singles[] = { payload->working_dir, payload->hostname, payload->upload_path };
    size_t size = 7 * 4 + strings_size(singles, COUNT_OF(singles)) +
                  strings_size(payload->args, payload->arg_count) +
                  strings_size(payload->env, payload->env_count) +
                  strings_size(payload->hosts, payload->host_count) +
                  strings_size(payload->volume_targets, payload->volume_count);
    if (size > PAYLOAD_MAX)
        return err_set(e, ERR_LIMIT, "arguments and environment: %zu bytes are more than %d", size,
                       PAYLOAD_MAX);

    add_u32(out, PAYLOAD_MAGIC);
    add_u32(out, GRANT_VERSION);
    add_u32(out, payload->arg_count);
    add_u32(out, payload->env_count);
    add_u32(out, payload->host_count);
    add_u32(out, payload->volume_count);
    add_u32(out, payload->master_port);
    add_strings(out, singles, COUNT_OF(singles));
    add_strings(out, payload->args, payload->arg_count);
    add_strings(out, payload->env, payload->env_count);
    add_strings(out, payload->hosts, payload->host_count);
    add_strings(out, payload->volume_targets, payload->volume_count);
    return ERR_OK;
}

static struct str get_str(struct reader *r)
{
    size_t size = get_u32(r);
    const uint8_t *bytes = get_bytes(r, size);
    return (struct str){ (const char *)bytes, bytes != NULL ? size : 0 };
}

static const struct str *get_strings(struct reader *r, struct arena *arena, uint32_t count)
{
    struct str *strings = arena_new(arena, MAX_OF(count, 1U), sizeof(*strings));
    for (uint32_t i = 0; i < count; i++)
        strings[i] = get_str(r);
    return strings;
}

enum err grant_payload_decode(struct str bytes, struct arena *arena, struct grant_payload *out,
                              struct error *e)
{
    if (bytes.size > PAYLOAD_MAX)
        return err_set(e, ERR_LIMIT, "a payload of %zu bytes is too large", bytes.size);
    struct reader r = reader_of(bytes);
    enum err rc = check_magic(&r, PAYLOAD_MAGIC, "payload", e);
    if (rc != ERR_OK)
        return rc;

    struct grant_payload payload = { 0 };
    payload.arg_count = get_u32(&r);
    payload.env_count = get_u32(&r);
    payload.host_count = get_u32(&r);
    payload.volume_count = get_u32(&r);
    uint32_t port = get_u32(&r);
    if (port > UINT16_MAX || payload.arg_count > PAYLOAD_ARGS_MAX ||
        payload.env_count > PAYLOAD_ENV_MAX || payload.host_count > PAYLOAD_HOSTS_MAX ||
        payload.volume_count > GRANT_VOLUMES_MAX)
        return err_set(e, ERR_INVALID, "the payload counts more than it may");
    payload.master_port = (uint16_t)port;
    payload.working_dir = get_str(&r);
    payload.hostname = get_str(&r);
    payload.upload_path = get_str(&r);
    payload.args = get_strings(&r, arena, payload.arg_count);
    payload.env = get_strings(&r, arena, payload.env_count);
    payload.hosts = get_strings(&r, arena, payload.host_count);
    payload.volume_targets = get_strings(&r, arena, payload.volume_count);
    if (r.is_short || r.left != 0)
        return err_set(e, ERR_INVALID, "the payload has the wrong length");
    rc = payload_check(&payload, e);
    if (rc == ERR_OK)
        *out = payload;
    return rc;
}

enum err grant_payload_open(struct str bytes, const struct grant *grant,
                            const struct grant_crypto *crypto, struct arena *arena,
                            struct grant_payload *out, struct error *e)
{
    struct grant_digest digest;
    crypto->sha256(crypto->self, bytes, &digest);
    if (!grant_digest_eq(&digest, &grant->payload))
        return err_set(e, ERR_DENIED, "the payload is not the one the grant names");
    struct grant_payload payload = { 0 };
    enum err rc = grant_payload_decode(bytes, arena, &payload, e);
    if (rc != ERR_OK)
        return rc;
    if (payload.volume_count != grant->volume_count)
        return err_field(e, "volumes", "%u targets for %u volumes", payload.volume_count,
                         grant->volume_count);
    for (uint32_t i = 0; i < payload.volume_count; i++) {
        crypto->sha256(crypto->self, payload.volume_targets[i], &digest);
        if (!grant_digest_eq(&digest, &grant->volumes[i].target))
            return err_field(e, "volumes", "target %u is not the one the grant names", i);
    }
    if (grant_digest_is_none(&grant->upload) != (payload.upload_path.size == 0))
        return err_field(e, "upload_path", "an upload and its path go together");
    *out = payload;
    return ERR_OK;
}

/* Tickets */

static enum err ticket_check(const struct ticket *ticket, struct error *e)
{
    bool is_volume = ticket->kind == TICKET_VOLUME_GET || ticket->kind == TICKET_VOLUME_PUT;
    const struct range ranges[] = {
        { "kind", ticket->kind, 0, TICKET_KIND_COUNT - 1 },
        { "is_tty", ticket->is_tty, 0, ticket->kind == TICKET_EXEC ? 1 : 0 },
        { "attempt", ticket->attempt, is_volume ? 0 : 1, is_volume ? 0 : UINT32_MAX },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    if (rc != ERR_OK)
        return rc;
    if (id_is_none(ticket->node) || id_is_none(ticket->run) || id_is_none(ticket->id) ||
        id_is_none(ticket->object) || id_is_none(ticket->tenant))
        return err_field(e, "id",
                         "a ticket names its node and run, itself, its object and its tenant");
    return check_uids(ticket->uid_base, ticket->uid_count, e);
}

enum err ticket_encode(const struct ticket *ticket, const struct grant_crypto *crypto,
                       uint8_t out[TICKET_SIZE], struct error *e)
{
    enum err rc = ticket_check(ticket, e);
    if (rc != ERR_OK)
        return rc;
    struct writer w = { out };
    put(&w, TICKET_MAGIC, 4);
    put(&w, GRANT_VERSION, 4);
    put_id(&w, ticket->node);
    put(&w, ticket->epoch, 8);
    put_id(&w, ticket->run);
    put_id(&w, ticket->id);
    put_id(&w, ticket->object);
    put_id(&w, ticket->tenant);
    put(&w, (uint64_t)ticket->kind | (ticket->is_tty ? FLAG_TTY : 0U) << 8, 4);
    put(&w, ticket->attempt, 4);
    put(&w, ticket->uid_base, 4);
    put(&w, ticket->uid_count, 4);
    put_bytes(&w, ticket->payload.bytes, GRANT_DIGEST_SIZE);
    size_t size = TICKET_SIZE - GRANT_SIGNATURE_SIZE;
    assert(w.at == out + size);
    crypto->sign(crypto->self, (struct str){ (const char *)out, size }, w.at);
    return ERR_OK;
}

enum err ticket_decode(const uint8_t bytes[TICKET_SIZE], struct id node,
                       const struct grant_crypto *crypto, struct ticket *out, struct error *e)
{
    struct reader r = { 0 };
    enum err rc =
        open_signed((struct str){ (const char *)bytes, TICKET_SIZE }, crypto, "ticket", &r, e);
    if (rc == ERR_OK)
        rc = check_magic(&r, TICKET_MAGIC, "ticket", e);
    if (rc != ERR_OK)
        return rc;
    struct ticket ticket = { 0 };
    ticket.node = get_id(&r);
    ticket.epoch = get(&r, 8);
    ticket.run = get_id(&r);
    ticket.id = get_id(&r);
    ticket.object = get_id(&r);
    ticket.tenant = get_id(&r);
    uint32_t flags = get_u32(&r);
    ticket.kind = (enum ticket_kind)(flags & 0xff);
    ticket.is_tty = (flags >> 8 & FLAG_TTY) != 0;
    ticket.attempt = get_u32(&r);
    ticket.uid_base = get_u32(&r);
    ticket.uid_count = get_u32(&r);
    get_digest(&r, &ticket.payload);
    rc = ticket_check(&ticket, e);
    if (rc != ERR_OK)
        return rc;
    if (flags >> 9 != 0)
        return err_set(e, ERR_INVALID, "the ticket has unknown flags");
    if (!id_eq(ticket.node, node))
        return err_set(e, ERR_INVALID, "the ticket is for another node");
    *out = ticket;
    return ERR_OK;
}

/* Contacts */

enum err contact_encode(const struct contact *contact, const struct grant_crypto *crypto,
                        uint8_t out[CONTACT_SIZE], struct error *e)
{
    if (id_is_none(contact->node) || id_is_none(contact->challenge))
        return err_field(e, "challenge", "a contact names its node and a challenge");
    struct writer w = { out };
    put(&w, CONTACT_MAGIC, 4);
    put(&w, GRANT_VERSION, 4);
    put_id(&w, contact->node);
    put(&w, contact->newest.epoch, 8);
    put(&w, contact->newest.generation, 8);
    put_id(&w, contact->challenge);
    size_t size = CONTACT_SIZE - GRANT_SIGNATURE_SIZE;
    assert(w.at == out + size);
    crypto->sign(crypto->self, (struct str){ (const char *)out, size }, w.at);
    return ERR_OK;
}

enum err contact_decode(const uint8_t bytes[CONTACT_SIZE], struct id node,
                        const struct grant_crypto *crypto, struct contact *out, struct error *e)
{
    struct reader r = { 0 };
    enum err rc =
        open_signed((struct str){ (const char *)bytes, CONTACT_SIZE }, crypto, "contact", &r, e);
    if (rc == ERR_OK)
        rc = check_magic(&r, CONTACT_MAGIC, "contact", e);
    if (rc != ERR_OK)
        return rc;
    struct contact contact = { .node = get_id(&r) };
    contact.newest.epoch = get(&r, 8);
    contact.newest.generation = get(&r, 8);
    contact.challenge = get_id(&r);
    if (!id_eq(contact.node, node) || id_is_none(contact.challenge))
        return err_set(e, ERR_INVALID, "the contact is for another node");
    *out = contact;
    return ERR_OK;
}
