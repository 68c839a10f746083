/*
 * Who a node is: the certificate it gets when it joins, renews while it works, and shows with each
 * connection.
 *
 * A node speaks with its present certificate. One that it renewed becomes the present one when it
 * is shown for the first time; until then the answer to the renewal may have been lost, and the old
 * one counts. Whatever is older than the present one speaks for nobody: it is of a machine in whose
 * place another has joined, or a copy.
 */
#include <assert.h>
#include <string.h>

#include "controller/nodes_internal.h"
#include "identity/token.h"
#include "os/clock.h"
#include "os/log.h"

enum {
    DAY_S = 24 * 3600,
    CERTIFICATE_S = DAY_S,   /* short-lived: a lost key is worth little */
    RENEWABLE_S = 90 * DAY_S /* after its end */
};

/* ---- certificates ---------------------------------------------------------------------------- */

/* A certificate that goes out when the node's record of it is durable. */
struct issuing {
    struct engine_waiter waiter;
    struct nodes *nodes;
    uint64_t session; /* which may be gone when it settles */
    bool is_renewal;
    struct id node;
    struct buf certificate; /* owned */
};

static struct session *session_find(const struct nodes *nodes, uint64_t number)
{
    for (struct session *s = nodes->first; s != NULL; s = s->next) {
        if (s->number == number)
            return s;
    }
    return NULL;
}

static void joined_send(const struct issuing *issuing, struct session *session)
{
    const struct nodes *nodes = issuing->nodes;
    char key[2 * KEYS_PUBLIC_BYTES + 1];
    hex_encode(nodes->o.keys->grant_public, KEYS_PUBLIC_BYTES, key);
    const struct joined_message joined = {
        .protocol = PROTOCOL_MAX,
        .node = issuing->node,
        .certificate = buf_str(&issuing->certificate),
        .authority = buf_str(&nodes->o.keys->ca_pem),
        .grant_key = str_of(key),
        .epoch = engine_state(nodes->o.engine)->epoch,
    };
    session_send(session, MESSAGE_JOINED, &joined);
}

static void renewed_send(const struct issuing *issuing, struct session *session)
{
    const struct renewed_message renewed = {
        .certificate = buf_str(&issuing->certificate),
        .authority = buf_str(&issuing->nodes->o.keys->ca_pem),
    };
    session_send(session, MESSAGE_RENEWED, &renewed);
}

static void issuing_settled(struct engine_waiter *waiter, enum err rc, const struct error *why)
{
    struct issuing *issuing = (struct issuing *)(void *)waiter;
    struct session *session = session_find(issuing->nodes, issuing->session);
    if (session != NULL && rc != ERR_OK)
        session_refuse(session, REFUSE_BUSY, why != NULL ? why->text : "try again");
    else if (session != NULL && issuing->is_renewal)
        renewed_send(issuing, session);
    else if (session != NULL)
        joined_send(issuing, session);
    buf_done(&issuing->certificate);
    mem_free(issuing);
}

/* What the record says about when it is made stands in the certificate, too. */
static enum err issue(struct session *session, struct id node, bool is_renewal, struct str request,
                      struct error *e)
{
    struct nodes *nodes = session->nodes;
    const struct node *found = state_node(engine_state(nodes->o.engine), node);
    char name[ID_TEXT_MAX];
    const struct ca_client_options options = {
        .name = str_of(id_text(ID_NODE, node, name)),
        .now = is_renewal ? found->r.next_certified : found->r.certified,
        .lifetime_s = CERTIFICATE_S,
    };
    AUTO(buf) struct buf certificate = { 0 };
    enum err rc = ca_issue_client(nodes->o.keys->ca, request, &options, &certificate, e);
    if (rc != ERR_OK)
        return rc;
    struct issuing *issuing = mem_new(1, sizeof(*issuing));
    *issuing = (struct issuing){ .waiter.settled = issuing_settled,
                                 .nodes = nodes,
                                 .session = session->number,
                                 .is_renewal = is_renewal,
                                 .node = node,
                                 .certificate = certificate };
    certificate = (struct buf){ 0 };
    engine_wait(nodes->o.engine, &issuing->waiter);
    nodes->o.on_decided(nodes->o.arg);
    return ERR_OK;
}

static void refuse_to_issue(struct session *session, enum err rc, const struct error *e)
{
    session_refuse(session, rc == ERR_UNAVAILABLE ? REFUSE_BUSY : REFUSE_DENIED, e->text);
}

/* A machine that had the name before may still be connected: it speaks for the node no more. */
static void join_replaces(const struct nodes *nodes, struct id node)
{
    const struct session *old = id_map_get(&nodes->by_node, node);
    if (old != NULL)
        link_abort(old->link, "another machine has joined as this node");
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

    enum err rc = ca_key_fingerprint(join->request, command.node_join.fingerprint.bytes, &e);
    if (rc == ERR_OK)
        rc = engine_command(nodes->o.engine, &command, &e);
    if (rc == ERR_OK) {
        /* Not the command's new id: a node that was set up anew keeps its own. */
        struct id node = state_node_by_name(engine_state(nodes->o.engine), join->name)->r.id;
        join_replaces(nodes, node);
        rc = issue(session, node, false, join->request, &e);
    }
    if (rc != ERR_OK)
        refuse_to_issue(session, rc, &e);
}

void session_renew(struct session *session, const void *message)
{
    const struct renew_message *renew = message;
    struct nodes *nodes = session->nodes;
    struct error e = { 0 };
    int64_t ended_ns = clock_wall().ns - link_peer(session->link)->not_after.ns;
    if (ended_ns > RENEWABLE_S * NS_PER_S) {
        session_refuse(session, REFUSE_DENIED,
                       "the certificate ended more than 90 days ago: join again with a new token");
        return;
    }
    struct command command = { .type = CMD_NODE_RENEW, .actor = session_actor(session) };
    enum err rc = ca_key_fingerprint(renew->request, command.node_renew.fingerprint.bytes, &e);
    if (rc == ERR_OK)
        rc = engine_command(nodes->o.engine, &command, &e);
    if (rc == ERR_OK)
        rc = issue(session, session->node, true, renew->request, &e);
    if (rc != ERR_OK)
        refuse_to_issue(session, rc, &e);
}

/* ---- showing it ------------------------------------------------------------------------------ */

/* From now on it is the node's present one, and nothing older counts. */
static void certificate_shown(struct session *session, const struct digest *fingerprint,
                              struct wall issued)
{
    struct command command = { .type = CMD_NODE_RENEW };
    command.node_renew.fingerprint = *fingerprint;
    command.node_renew.issued = issued;
    session_command(session, &command);
}

bool session_identify(struct session *session)
{
    const struct conn_peer *peer = link_peer(session->link);
    struct id id;
    if (!peer->has_certificate || !id_parse(ID_NODE, str_of(peer->name), &id)) {
        session_refuse(session, REFUSE_DENIED, "a node's certificate is needed: join first");
        return false;
    }
    const struct node *node = state_node(engine_state(session->nodes->o.engine), id);
    if (node == NULL) {
        session_refuse(session, REFUSE_REMOVED,
                       "this node was removed: join again with a new token");
        return false;
    }
    struct digest fingerprint;
    static_assert(sizeof(fingerprint.bytes) == CA_FINGERPRINT_BYTES, "SHA-256");
    memcpy(fingerprint.bytes, peer->key_fingerprint, sizeof(fingerprint.bytes));
    enum node_certificate certificate = node_certificate(&node->r, &fingerprint, peer->issued);
    if (certificate == NODE_CERTIFICATE_OLD) {
        log_warning("a certificate of a node was shown that does not count any more",
                    LOG_SLICE("node", node->r.name), LOG_STR("address", peer->address));
        session_refuse(session, REFUSE_DENIED,
                       "this node has a newer certificate, or another machine has joined in its "
                       "place: join again with a new token");
        return false;
    }
    session->node = id;
    if (certificate == NODE_CERTIFICATE_NEWER)
        certificate_shown(session, &fingerprint, peer->issued);
    return true;
}
