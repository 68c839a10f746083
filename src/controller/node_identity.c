/*
 * Who a node is: the certificate it gets when it joins, renews while it works, and shows with each
 * connection.
 */
#include "controller/nodes_internal.h"
#include "identity/token.h"
#include "os/clock.h"

enum { CERTIFICATE_S = 24 * 3600 }; /* short-lived: a lost key is worth little */

/* ---- joining and renewing --------------------------------------------------------------------- */

struct joining {
    struct engine_waiter waiter;
    struct nodes *nodes;
    struct session *session; /* checked to be alive when it settles */
    struct id node;
    struct buf certificate; /* owned */
};

static bool session_is_alive(const struct nodes *nodes, const struct session *session)
{
    for (const struct session *s = nodes->first; s != NULL; s = s->next) {
        if (s == session)
            return true;
    }
    return false;
}

static void joining_settled(struct engine_waiter *waiter, enum err rc, const struct error *why)
{
    struct joining *joining = (struct joining *)(void *)waiter;
    struct nodes *nodes = joining->nodes;
    if (session_is_alive(nodes, joining->session)) {
        if (rc != ERR_OK) {
            session_refuse(joining->session, REFUSE_BUSY, why != NULL ? why->text : "try again");
        } else {
            char key[2 * KEYS_PUBLIC_BYTES + 1];
            hex_encode(nodes->o.keys->grant_public, KEYS_PUBLIC_BYTES, key);
            const struct joined_message joined = {
                .protocol = PROTOCOL_MAX,
                .node = joining->node,
                .certificate = buf_str(&joining->certificate),
                .authority = buf_str(&nodes->o.keys->ca_pem),
                .grant_key = str_of(key),
                .epoch = engine_state(nodes->o.engine)->epoch,
            };
            session_send(joining->session, MESSAGE_JOINED, &joined);
        }
    }
    buf_done(&joining->certificate);
    mem_free(joining);
}

static enum err issue(struct session *session, struct id node, struct str request, struct buf *out,
                      struct error *e)
{
    char name[ID_TEXT_MAX];
    const struct ca_client_options options = {
        .name = str_of(id_text(ID_NODE, node, name)),
        .now = clock_wall(),
        .lifetime_s = CERTIFICATE_S,
    };
    return ca_issue_client(session->nodes->o.keys->ca, request, &options, out, e);
}

void session_join(struct session *session, const void *message)
{
    const struct join_message *join = message;
    struct nodes *nodes = session->nodes;
    struct error e = { 0 };
    int64_t protocol = 0;
    if (!session_chooses(session, join->protocol_min, join->protocol_max, &protocol))
        return;
    struct command command = { .type = CMD_NODE_JOIN,
                               .actor = { .role = ROLE_NODE_JOIN, .name = join->name } };
    command.node_join.name = join->name;
    token_digest(join->token, &command.node_join.join_secret);

    struct joining *joining = mem_new(1, sizeof(*joining));
    enum err rc = ca_key_fingerprint(join->request, command.node_join.fingerprint.bytes, &e);
    if (rc == ERR_OK)
        rc = engine_command(nodes->o.engine, &command, &e);
    if (rc == ERR_OK)
        rc = issue(session, command.new_id, join->request, &joining->certificate, &e);
    if (rc != ERR_OK) {
        mem_free(joining);
        session_refuse(session, rc == ERR_UNAVAILABLE ? REFUSE_BUSY : REFUSE_DENIED, e.text);
        return;
    }
    joining->waiter.settled = joining_settled;
    joining->nodes = nodes;
    joining->session = session;
    joining->node = command.new_id;
    engine_wait(nodes->o.engine, &joining->waiter);
    nodes->o.on_decided(nodes->o.arg);
}

void session_renew(struct session *session, const void *message)
{
    const struct renew_message *renew = message;
    struct error e = { 0 };
    AUTO(buf) struct buf certificate = { 0 };
    if (issue(session, session->node, renew->request, &certificate, &e) != ERR_OK) {
        session_refuse(session, REFUSE_DENIED, e.text);
        return;
    }
    const struct renewed_message renewed = {
        .certificate = buf_str(&certificate),
        .authority = buf_str(&session->nodes->o.keys->ca_pem),
    };
    session_send(session, MESSAGE_RENEWED, &renewed);
}

/* ---- showing it -------------------------------------------------------------------------------- */

/* Which node the certificate names, if that node exists; refuses otherwise. */
bool session_identify(struct session *session)
{
    const struct conn_peer *peer = link_peer(session->link);
    struct id node;
    if (!peer->has_certificate || !id_parse(ID_NODE, str_of(peer->name), &node)) {
        session_refuse(session, REFUSE_DENIED, "a node's certificate is needed: join first");
        return false;
    }
    if (state_node(engine_state(session->nodes->o.engine), node) == NULL) {
        session_refuse(session, REFUSE_REMOVED,
                       "this node was removed: join again with a new token");
        return false;
    }
    session->node = node;
    return true;
}
