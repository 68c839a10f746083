/*
 * contact.c - contact with nodes: lost is not failed, and many lost at once is a fault of ours.
 *
 * A node that was not heard of becomes unknown: no new work, nothing else. Declared lost, its work
 * follows on_contact_loss; the allocations stay, and keep their devices, until the node is back and
 * says that they are gone. When more than a tenth of the nodes (and at least five) fall silent
 * together, the network is the likelier culprit: nothing is declared lost until they are back or a
 * person confirms (INV-25).
 */
#include "core/lifecycle.h"

static const struct id no_tenant;

enum { STORM_NODES = 5, STORM_PERCENT = 10, STORM_WINDOW_S = 60 };

/* Silent now, or declared lost within the window. */
static bool is_in_storm(const struct decision *d, const struct node *node)
{
    if (node->r.contact == CONTACT_UNKNOWN)
        return true;
    int64_t age_ns = d->wall.ns - node->r.contact_since.ns;
    return node->r.contact == CONTACT_LOST && age_ns < STORM_WINDOW_S * NS_PER_S;
}

static bool is_storm(const struct decision *d)
{
    size_t many = MAX_OF((size_t)STORM_NODES, d->state->node_count * STORM_PERCENT / 100 + 1);
    size_t silent = 0;
    for (const struct node *node = d->state->first_node; node != NULL && silent < many;
         node = node->next)
        silent += is_in_storm(d, node);
    return silent >= many;
}

static void contact_set(struct decision *d, const struct node *node, enum node_contact contact,
                        struct str boot_id)
{
    decide_add(d, EV_NODE_CONTACT, no_tenant)->node_contact =
        (struct node_contact_event){ node->r.id, contact, boot_id };
}

static void node_lost(struct decision *d, struct node *node)
{
    const struct str unknown = { 0 };
    contact_set(d, node, CONTACT_LOST, unknown);
    for (struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        if (allocation_is_charged(allocation_image(d, a)->state))
            member_lost(d, a, AL_LOST);
    }
}

void node_gone(struct decision *d, struct node *node)
{
    for (struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
        member_lost(d, a, AL_ENDED);
}

/* Processes of the boot before are gone; what was granted but not yet reported may start afresh as
 * another attempt only, because it may have run already. */
void node_rebooted(struct decision *d, struct node *node)
{
    node_gone(d, node);
}

/* What it was made of before need not be what it is made of now: its inventory follows. */
static void facts_forget(struct decision *d, const struct node *node)
{
    struct node_record next = node->r;
    next.contact = d->command->contact.contact;
    next.boot_id = d->command->contact.boot_id;
    next.agent_version = (struct str){ 0 };
    decide_add(d, EV_NODE_SET, no_tenant)->node_set = next;
}

static bool is_rebooted(const struct node *node, struct str boot_id)
{
    return boot_id.size > 0 && node->r.boot_id.size > 0 && !str_eq(boot_id, node->r.boot_id);
}

enum err decide_node_contact(struct decision *d, struct error *e)
{
    const struct node_contact_command *command = &d->command->contact;
    struct node *node = NULL;
    enum err rc = find_own_node(d, command->node, &node, e);
    if (rc != ERR_OK)
        return rc;
    if (command->contact == CONTACT_LOST) {
        if (node->r.contact == CONTACT_LOST || is_storm(d))
            return ERR_OK;
        node_lost(d, node);
        lifecycle_settle(d);
        return ERR_OK;
    }
    bool is_new_boot = command->boot_id.size > 0 && !str_eq(command->boot_id, node->r.boot_id);
    if (command->contact == node->r.contact && !is_new_boot)
        return ERR_OK;
    contact_set(d, node, command->contact, command->boot_id);
    if (is_rebooted(node, command->boot_id)) {
        facts_forget(d, node);
        node_rebooted(d, node);
    }
    lifecycle_settle(d);
    return ERR_OK;
}

/* A person says that the node is lost, whatever the storm; by force: that its machine is off, and
 * nothing of it can still run. */
enum err decide_node_confirm_lost(struct decision *d, struct error *e)
{
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc != ERR_OK)
        return rc;
    if (node->r.contact == CONTACT_OK)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                         "node %.*s is in contact; drain or remove it instead",
                         STR_ARG(node->r.name));
    if (node->r.contact != CONTACT_LOST)
        node_lost(d, node);
    if (d->command->target.is_forced)
        node_gone(d, node);
    lifecycle_settle(d);
    return ERR_OK;
}
