/*
 * domain.c - racks and blocks: which nodes stand together.
 *
 * A rack is what its label says, within its block; nodes without a label are one rack with the
 * others of their pool, and likewise one block. A domain is there as long as it has nodes.
 */
#include <string.h>

#include "sched/internal.h"

/* Two hashes of what it is called; names of racks, blocks and pools never meet. */
static struct id key_of(const struct node_record *r, enum domain_kind kind, bool *is_labelled)
{
    static const uint8_t keys[2][16] = { "berth domain one", "berth domain two" };
    AUTO(buf) struct buf text = { 0 };
    struct str label = kind == DOMAIN_RACK ? r->rack : r->block;
    *is_labelled = label.size > 0;
    buf_add_str(&text, r->block);
    buf_add_char(&text, *is_labelled ? '/' : '!');
    if (*is_labelled)
        buf_add_str(&text, label);
    else
        buf_add(&text, &r->pool, sizeof(r->pool));
    return (struct id){ siphash(keys[0], text.data, text.size),
                        siphash(keys[1], text.data, text.size) };
}

static struct sdomain *domain_for(struct sched *sched, enum domain_kind kind, struct id key)
{
    struct sdomain *domain = id_map_get(&sched->domain_of[kind], key);
    if (domain != NULL)
        return domain;
    domain = pool_new(&sched->pool, sizeof(*domain));
    domain->key = key;
    domain->next = sched->domains[kind];
    if (domain->next != NULL)
        domain->next->prev = domain;
    sched->domains[kind] = domain;
    id_map_put(&sched->domain_of[kind], key, domain);
    return domain;
}

static void drop_if_empty(struct sched *sched, enum domain_kind kind, struct sdomain *domain)
{
    if (domain->first != NULL)
        return;
    *(domain->prev != NULL ? &domain->prev->next : &sched->domains[kind]) = domain->next;
    if (domain->next != NULL)
        domain->next->prev = domain->prev;
    (void)id_map_remove(&sched->domain_of[kind], domain->key);
    pool_free(&sched->pool, domain, sizeof(*domain));
}

void domain_leave(struct sched *sched, struct snode *node)
{
    for (size_t kind = 0; kind < DOMAIN_KINDS; kind++) {
        struct sdomain *domain = node->domains[kind];
        struct snode *next = node->next_in[kind];
        struct snode *prev = node->prev_in[kind];
        if (domain == NULL)
            continue;
        *(prev != NULL ? &prev->next_in[kind] : &domain->first) = next;
        if (next != NULL)
            next->prev_in[kind] = prev;
        node->domains[kind] = NULL;
        if (domain->first != NULL)
            index_note(sched, domain->first); /* what it says of its nodes may have changed */
        drop_if_empty(sched, (enum domain_kind)kind, domain);
    }
}

void domain_enter(struct sched *sched, struct snode *node)
{
    domain_leave(sched, node);
    for (size_t kind = 0; kind < DOMAIN_KINDS; kind++) {
        bool is_labelled = false;
        struct id key = key_of(&node->node->r, (enum domain_kind)kind, &is_labelled);
        struct sdomain *domain = domain_for(sched, (enum domain_kind)kind, key);
        domain->is_labelled = is_labelled;
        node->domains[kind] = domain;
        node->prev_in[kind] = NULL;
        node->next_in[kind] = domain->first;
        if (domain->first != NULL)
            domain->first->prev_in[kind] = node;
        domain->first = node;
    }
}

static enum domain_kind kind_of(enum topology topology)
{
    return topology == TOPOLOGY_RACK ? DOMAIN_RACK : DOMAIN_BLOCK;
}

static bool is_kind(enum topology topology)
{
    return topology == TOPOLOGY_RACK || topology == TOPOLOGY_BLOCK;
}

struct sdomain *domain_at(const struct snode *node, enum topology topology)
{
    return is_kind(topology) ? node->domains[kind_of(topology)] : NULL;
}

struct sdomain *domains_of(const struct sched *sched, enum topology topology)
{
    return is_kind(topology) ? sched->domains[kind_of(topology)] : NULL;
}

struct snode *domain_next(const struct snode *node, enum topology topology)
{
    return node->next_in[kind_of(topology)];
}
