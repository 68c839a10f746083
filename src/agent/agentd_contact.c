/*
 * The lease of fenced work: that the controller has heard of this node lately. The network half
 * is not believed in this, or one that was taken over could keep work alive for ever that the
 * controller has long placed elsewhere. So agentd asks by a challenge, a number that was never
 * used, and the controller signs it into a contact with the newest set it has made for the
 * node. The lease then counts from the moment the challenge was made, which is before the
 * heartbeat that carried it.
 *
 * A contact that names a set which is not here yet waits for it: as long as the network half keeps
 * that set back, nothing is extended.
 */
#include <string.h>

#include "agent/agentd.h"
#include "os/log.h"
#include "os/random.h"

enum { CHALLENGE_EVERY_S = 1 };

static bool has_fenced_work(const struct agentd *agentd)
{
    for (uint32_t i = 0; i < agentd->set.count; i++)
        if (agentd->set.grants[i].on_contact_loss == GRANT_FENCE)
            return true;
    for (size_t i = 0; i < agentd->attempts.count; i++)
        if (agentd->attempts.items[i]->grant.on_contact_loss == GRANT_FENCE)
            return true;
    return false;
}

/* At once when a set brings the first fenced work: that cannot start without a lease. */
bool contact_next(struct agentd *agentd, struct ipc_challenge *out)
{
    struct contacts *contacts = &agentd->contacts;
    struct mono now = clock_boottime();
    bool is_new_set = contacts->looked.epoch != agentd->stamp.epoch ||
                      contacts->looked.generation != agentd->stamp.generation;
    if (mono_before(now, contacts->challenge_at) ||
        (!is_new_set && mono_before(now, contacts->look_at)))
        return false;
    contacts->looked = agentd->stamp;
    contacts->look_at = mono_add_s(now, CHALLENGE_EVERY_S);
    if (!has_fenced_work(agentd))
        return false;
    struct challenge *challenge = &contacts->ring[contacts->next++ % CHALLENGES_KEPT];
    *challenge = (struct challenge){ .number = random_id(), .made_at = now };
    contacts->challenge_at = contacts->look_at;
    *out = (struct ipc_challenge){ .number = challenge->number };
    return true;
}

static void extend_lease(struct agentd *agentd, struct mono from)
{
    struct error e = { 0 };
    struct attempt_lease lease;
    if (!mono_before(agentd->lease, from))
        return; /* a lease never gets shorter */
    memset(&lease, 0, sizeof(lease));
    lease.sent_ns = from.ns;
    memcpy(lease.boot_id, agentd->boot_id, sizeof(agentd->boot_id));
    if (attempt_write_lease(agentd->lease_path, &lease, &e) != ERR_OK)
        log_error("the lease cannot be renewed", LOG_ERR(&e));
    else
        agentd->lease = from;
    agentd->is_dirty = true;
}

/* After a new set, and after a contact. */
void contact_look(struct agentd *agentd)
{
    for (size_t i = 0; i < CHALLENGES_KEPT; i++) {
        struct challenge *challenge = &agentd->contacts.ring[i];
        if (!challenge->is_answered || challenge->newest.epoch != agentd->stamp.epoch ||
            challenge->newest.generation > agentd->stamp.generation)
            continue;
        challenge->is_answered = false;
        extend_lease(agentd, challenge->made_at);
    }
}

void contact_take(struct agentd *agentd, const struct ipc_contact *message)
{
    struct error e = { 0 };
    struct contact contact;
    if (contact_decode(message->bytes, agentd->identity.node, &agentd->crypto, &contact, &e) !=
        ERR_OK) {
        log_warning("a contact was refused", LOG_ERR(&e));
        return;
    }
    for (size_t i = 0; i < CHALLENGES_KEPT; i++) {
        struct challenge *challenge = &agentd->contacts.ring[i];
        if (!id_eq(challenge->number, contact.challenge))
            continue;
        challenge->number = (struct id){ 0 }; /* answered once */
        challenge->newest = contact.newest;
        challenge->is_answered = true;
    }
    contact_look(agentd);
}
