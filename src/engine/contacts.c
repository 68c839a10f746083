#include "engine/contacts.h"

enum { LOOK_EVERY_S = 1 };

struct contact {
    struct mono seen;
    struct contact *next;
};

struct contacts {
    struct id_map by_node;
    struct contact *all; /* owned; nodes are few and ids are never reused */
    struct mono started;
    struct mono look_at;
};

struct contacts *contacts_new(void)
{
    return mem_new(1, sizeof(struct contacts));
}

static void contacts_clear(struct contacts *contacts)
{
    while (contacts->all != NULL) {
        struct contact *next = contacts->all->next;
        mem_free(contacts->all);
        contacts->all = next;
    }
    id_map_done(&contacts->by_node);
}

void contacts_free(struct contacts *contacts)
{
    if (contacts == NULL)
        return;
    contacts_clear(contacts);
    mem_free(contacts);
}

void contacts_start(struct contacts *contacts, const struct state *state, struct mono now)
{
    contacts_clear(contacts);
    contacts->started = now;
    contacts->look_at = now;
    for (const struct node *node = state->first_node; node != NULL; node = node->next)
        contacts_seen(contacts, node->r.id, now);
}

void contacts_seen(struct contacts *contacts, struct id node, struct mono now)
{
    struct contact *contact = id_map_get(&contacts->by_node, node);
    if (contact == NULL) {
        contact = mem_new(1, sizeof(*contact));
        contact->next = contacts->all;
        contacts->all = contact;
        id_map_put(&contacts->by_node, node, contact);
    }
    contact->seen = now;
}

static enum node_contact contact_by_now(const struct settings_record *settings, int64_t silent_ns)
{
    if (silent_ns >= settings->lost_after_s * NS_PER_S)
        return CONTACT_LOST;
    if (silent_ns >= settings->unknown_after_s * NS_PER_S)
        return CONTACT_UNKNOWN;
    return CONTACT_OK;
}

void contacts_turn(struct contacts *contacts, const struct state *state, struct mono now,
                   void (*changed)(void *arg, struct id node, enum node_contact contact), void *arg)
{
    if (mono_before(now, contacts->look_at))
        return;
    contacts->look_at = mono_add_s(now, LOOK_EVERY_S);
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        const struct contact *contact = id_map_get(&contacts->by_node, node->r.id);
        int64_t silent_ns = now.ns - (contact != NULL ? contact->seen : contacts->started).ns;
        enum node_contact by_now = contact_by_now(&state->settings, silent_ns);
        if (node->r.contact != CONTACT_NEVER && by_now > node->r.contact)
            changed(arg, node->r.id, by_now);
    }
}

struct mono contacts_wake_at(const struct contacts *contacts)
{
    return contacts->look_at;
}
