#include "agent/net_files.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identity.h"
#include "base/mem.h"
#include "net/ca.h"
#include "net/link.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "wire/link.h"

enum { PEM_MAX = 64 * 1024, JOIN_TIMEOUT_MS = 20000 };

void net_identity_done(struct net_identity *identity)
{
    buf_done(&identity->authority);
    buf_done(&identity->certificate);
    if (identity->key.size > 0)
        sodium_memzero(identity->key.data, identity->key.size);
    buf_done(&identity->key);
}

static const char *path_of(struct arena *arena, const char *dir, const char *name)
{
    return arena_format(arena, "%s/%s", dir, name);
}

static enum err read_one(const char *dir, const char *name, struct buf *out, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    enum err rc = file_read(path_of(&arena, dir, name), PEM_MAX, out, e);
    if (rc == ERR_NOT_FOUND)
        return err_set(e, ERR_NOT_FOUND,
                       "%s/%s is missing: this node has not joined, see `berth-agent join --help`",
                       dir, name);
    return rc;
}

static enum err write_one(const char *dir, const char *name, struct str bytes, mode_t mode,
                          struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    return file_write_atomic(path_of(&arena, dir, name), bytes, mode, e);
}

/* "NODE HOST PORT" */
static enum err address_parse(struct str text, struct net_identity *out, struct error *e)
{
    struct str rest = text;
    struct str node = str_cut(&rest, ' ');
    struct str host = str_cut(&rest, ' ');
    struct str port = str_cut(&rest, '\n');
    int64_t number = 0;
    if (!id_parse(ID_NODE, node, &out->node) || host.size == 0 || host.size >= sizeof(out->host) ||
        !str_to_i64(port, 1, 65535, &number))
        return err_set(e, ERR_CORRUPT, "the file `node` is damaged: join again");
    memcpy(out->host, host.data, host.size);
    out->host[host.size] = '\0';
    out->port = (uint16_t)number;
    return ERR_OK;
}

/* A renewal ends with this; one that was cut off before it is ended by the next load. */
static enum err key_promote(const char *dir, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    const char *to = path_of(&arena, dir, "node.key");
    return rename(path_of(&arena, dir, "node.key.new"), to) == 0 ? ERR_OK : err_errno(e, "%s", to);
}

/* A renewal replaces the certificate before the key: the key that fits it is then `key.new`. */
static enum err key_load(const char *dir, struct net_identity *out, struct error *e)
{
    uint8_t wanted[CA_FINGERPRINT_BYTES];
    uint8_t got[CA_FINGERPRINT_BYTES];
    enum err rc = ca_key_fingerprint(buf_str(&out->certificate), wanted, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "node.pem");
    rc = read_one(dir, "node.key.new", &out->key, NULL);
    if (rc == ERR_OK && ca_key_fingerprint(buf_str(&out->key), got, NULL) == ERR_OK &&
        memcmp(got, wanted, sizeof(got)) == 0)
        return key_promote(dir, e);
    buf_clear(&out->key);
    return read_one(dir, "node.key", &out->key, e);
}

enum err net_identity_load(const char *dir, struct net_identity *out, struct error *e)
{
    struct net_identity identity = { 0 };
    struct ca_certificate_info info = { 0 };
    AUTO(buf) struct buf address = { 0 };
    enum err rc = read_one(dir, "node", &address, e);
    if (rc == ERR_OK)
        rc = address_parse(buf_str(&address), &identity, e);
    if (rc == ERR_OK)
        rc = read_one(dir, "ca.pem", &identity.authority, e);
    if (rc == ERR_OK)
        rc = read_one(dir, "node.pem", &identity.certificate, e);
    if (rc == ERR_OK)
        rc = key_load(dir, &identity, e);
    if (rc == ERR_OK)
        rc = ca_certificate_read(buf_str(&identity.certificate), &info, e);
    if (rc != ERR_OK) {
        net_identity_done(&identity);
        return rc;
    }
    identity.not_before = info.not_before;
    identity.not_after = info.not_after;
    *out = identity;
    return ERR_OK;
}

int64_t net_identity_renew_in_ms(const struct net_identity *identity, struct wall there)
{
    int64_t third_ns = (identity->not_after.ns - identity->not_before.ns) / 3;
    int64_t left_ns = 0;
    if (__builtin_sub_overflow(identity->not_before.ns + third_ns, there.ns, &left_ns))
        return 0;
    return MIN_OF(MAX_OF(left_ns, INT64_C(0)), third_ns) / NS_PER_MS;
}

static enum err renewal_check(const struct net_identity *identity, struct str certificate,
                              struct str key, struct ca_certificate_info *info, struct error *e)
{
    uint8_t of_key[CA_FINGERPRINT_BYTES];
    char name[ID_TEXT_MAX];
    enum err rc = ca_certificate_read(certificate, info, e);
    if (rc == ERR_OK)
        rc = ca_key_fingerprint(key, of_key, e);
    if (rc != ERR_OK)
        return rc;
    if (memcmp(of_key, info->key_fingerprint, sizeof(of_key)) != 0)
        return err_set(e, ERR_INVALID, "the new certificate is of another key");
    if (strcmp(info->name, id_text(ID_NODE, identity->node, name)) != 0)
        return err_set(e, ERR_INVALID, "the new certificate names %s", info->name);
    return ERR_OK;
}

enum err net_identity_renew(const char *dir, struct net_identity *identity, struct str certificate,
                            struct str key, struct error *e)
{
    struct ca_certificate_info info;
    enum err rc = renewal_check(identity, certificate, key, &info, e);
    if (rc == ERR_OK)
        rc = write_one(dir, "node.key.new", key, 0600, e);
    if (rc == ERR_OK)
        rc = write_one(dir, "node.pem", certificate, 0644, e);
    if (rc == ERR_OK)
        rc = key_promote(dir, e);
    if (rc != ERR_OK)
        return rc;
    buf_clear(&identity->certificate);
    buf_add_str(&identity->certificate, certificate);
    sodium_memzero(identity->key.data, identity->key.size);
    buf_clear(&identity->key);
    buf_add_str(&identity->key, key);
    identity->not_before = info.not_before;
    identity->not_after = info.not_after;
    return ERR_OK;
}

/* ---- joining -------------------------------------------------------------------------------- */

struct joining {
    const struct net_join *join;
    struct loop *loop;
    struct buf key;
    struct link *link;
    bool is_done;
    enum err rc;
    struct error error;
};

static void joining_end(struct joining *joining, enum err rc)
{
    joining->rc = rc;
    joining->is_done = true;
    loop_stop(joining->loop);
}

static void joining_on_up(struct link *link, void *arg)
{
    struct joining *joining = arg;
    AUTO(buf) struct buf request = { 0 };
    enum err rc = ca_key_new(CA_KEY_P256, &joining->key, &joining->error);
    if (rc == ERR_OK)
        rc = ca_request_new(buf_str(&joining->key), str_of(joining->join->name), &request,
                            &joining->error);
    if (rc != ERR_OK) {
        joining_end(joining, rc);
        return;
    }
    const struct join_message message = {
        .protocol_min = PROTOCOL_MIN,
        .protocol_max = PROTOCOL_MAX,
        .token = str_of(joining->join->token),
        .name = str_of(joining->join->name),
        .request = buf_str(&request),
        .agent_version = STR(BERTH_VERSION),
        .wall_ns = clock_wall().ns,
    };
    AUTO(buf) struct buf bytes = { 0 };
    message_encode(MESSAGE_JOIN, &message, &bytes);
    rc = link_send(link, MESSAGE_JOIN, buf_str(&bytes));
    if (rc != ERR_OK)
        joining_end(joining, err_set(&joining->error, rc, "the request cannot be sent"));
}

/* The network half's files belong to its uid, the directory included. */
static enum err give_away(const char *dir, unsigned uid, struct error *e)
{
    static const char *const names[] = { "ca.pem", "node.pem", "node.key", "node", "." };
    AUTO(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "%s", dir);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (fchownat(fd, names[i], uid, uid, AT_SYMLINK_NOFOLLOW) != 0)
            return err_errno(e, "%s/%s", dir, names[i]);
    }
    return ERR_OK;
}

/* The directory of the privileged half may not be there before that half has run once. */
static enum err parent_make(struct arena *arena, const char *path, struct error *e)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return ERR_OK;
    return file_make_dirs(str_c(arena, (struct str){ path, (size_t)(slash - path) }), 0711, e);
}

static enum err joined_keep(struct joining *joining, const struct joined_message *joined,
                            struct error *e)
{
    const struct net_join *join = joining->join;
    AUTO(arena) struct arena arena = { 0 };
    char node[ID_TEXT_MAX];
    (void)id_text(ID_NODE, joined->node, node);
    const char *address = arena_format(&arena, "%s %s %u\n", node, join->host, join->port);
    struct identity identity = { .node = joined->node };
    if (!hex_decode(joined->grant_key, identity.controller_key, IDENTITY_KEY_SIZE))
        return err_set(e, ERR_INVALID, "the controller sent no grant key");

    enum err rc = file_make_dirs(join->dir, 0700, e);
    if (rc == ERR_OK)
        rc = parent_make(&arena, join->identity, e);
    if (rc == ERR_OK)
        rc = identity_write(join->identity, &identity, e);
    if (rc == ERR_OK)
        rc = write_one(join->dir, "ca.pem", joined->authority, 0644, e);
    if (rc == ERR_OK)
        rc = write_one(join->dir, "node.key", buf_str(&joining->key), 0600, e);
    if (rc == ERR_OK)
        rc = write_one(join->dir, "node.pem", joined->certificate, 0644, e);
    if (rc == ERR_OK)
        rc = write_one(join->dir, "node", str_of(address), 0644, e); /* last: now it has joined */
    return rc == ERR_OK ? give_away(join->dir, join->uid, e) : rc;
}

static void joining_on_message(struct link *link, uint16_t type, struct str payload, void *arg)
{
    struct joining *joining = arg;
    AUTO(arena) struct arena arena = { 0 };
    const struct schema *schema = message_schema((enum message_type)type);
    if ((type != MESSAGE_JOINED && type != MESSAGE_REFUSE) || schema == NULL)
        return;
    void *message = arena_new(&arena, 1, schema->size);
    enum err rc =
        message_decode((enum message_type)type, payload, &arena, message, &joining->error);
    if (rc == ERR_OK && type == MESSAGE_REFUSE) {
        const struct refuse_message *refuse = message;
        rc = err_set(&joining->error, ERR_DENIED, "the controller refuses: %.*s",
                     STR_ARG(refuse->detail));
    } else if (rc == ERR_OK) {
        rc = joined_keep(joining, message, &joining->error);
    }
    joining_end(joining, rc);
    link_close(link, "joined");
}

static void joining_on_down(struct link *link, const char *why, void *arg)
{
    struct joining *joining = arg;
    (void)link;
    joining->link = NULL;
    if (!joining->is_done)
        joining_end(joining,
                    err_set(&joining->error, ERR_UNAVAILABLE, "%s:%u cannot be reached: %s",
                            joining->join->host, joining->join->port, why));
}

static const struct link_events joining_events = {
    .on_up = joining_on_up,
    .on_message = joining_on_message,
    .on_down = joining_on_down,
};

static enum err joining_run(struct joining *joining, struct tls_context *tls, struct error *e)
{
    const struct conn_dial_options dial = {
        .host = joining->join->host,
        .port = joining->join->port,
        .tls = tls,
        .timeout_ms = JOIN_TIMEOUT_MS,
    };
    static const struct link_options options = { .message_bytes_max = 1024 * 1024 };
    joining->link = link_dial(joining->loop, &dial, &options, &joining_events, joining);
    struct mono deadline = mono_add_s(clock_monotonic(), JOIN_TIMEOUT_MS / 1000);
    while (!joining->is_done || joining->link != NULL) {
        if (mono_before(deadline, clock_monotonic()) && !joining->is_done)
            joining_end(joining, err_set(&joining->error, ERR_UNAVAILABLE,
                                         "the controller did not answer in time"));
        if (joining->is_done && joining->link != NULL)
            link_close(joining->link, "done");
        enum err rc = loop_turn(joining->loop, 200, e);
        if (rc != ERR_OK)
            return rc;
    }
    if (joining->rc != ERR_OK && e != NULL)
        *e = joining->error;
    return joining->rc;
}

enum err net_join(const struct net_join *join, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    struct stat info;
    if (stat(path_of(&arena, join->dir, "node"), &info) == 0)
        return err_set(e, ERR_CONFLICT,
                       "%s/node exists: this node has joined; to join anew, drain and remove it at "
                       "the controller, then remove that file",
                       join->dir);
    const struct tls_client_options options = {
        .ca_pem = join->ca_pem,
        .pin = join->ca_pem.size == 0 ? join->pin : NULL,
        .protocol = TLS_PROTOCOL_LINK,
        .ignores_time = true,
    };
    AUTO(tls_context) struct tls_context *tls = NULL;
    AUTO(loop) struct loop *loop = NULL;
    enum err rc = tls_client_new(&options, &tls, e);
    if (rc == ERR_OK)
        rc = loop_new(&loop, e);
    if (rc != ERR_OK)
        return rc;
    struct joining joining = { .join = join, .loop = loop };
    rc = joining_run(&joining, tls, e);
    if (joining.key.size > 0)
        sodium_memzero(joining.key.data, joining.key.size);
    buf_done(&joining.key);
    return rc;
}
