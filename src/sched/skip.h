/*
 * skip.h - an ordered list with logarithmic insertion, removal and counting (a skip list). The
 * height of an entry is a hash of its key, so equal histories build equal lists.
 */
#ifndef SCHED_SKIP_H
#define SCHED_SKIP_H

#include "base/mem.h"

enum { SKIP_HEIGHT = 12 };

/* Ordered by major, then minor, then tie; no two entries of a list have equal keys. */
struct skip_key {
    int64_t major;
    uint64_t minor;
    uint64_t tie;
};

struct skip_link {
    struct skip_node *next; /* NULL: the end */
    size_t width;           /* entries it leads past, the next one included */
};

struct skip_node {
    struct skip_key key;
    void *item;
    size_t height;
    struct skip_link links[]; /* links[0] leads to the neighbour */
};

/* All-zero is a valid empty list. */
struct skip_list {
    struct skip_link first[SKIP_HEIGHT];
    size_t count;
};

int skip_compare(struct skip_key a, struct skip_key b);
struct skip_node *skip_insert(struct skip_list *list, struct pool *pool, struct skip_key key,
                              void *item);
void skip_remove(struct skip_list *list, struct pool *pool,
                 struct skip_key key);                                          /* must be there */
struct skip_node *skip_find(const struct skip_list *list, struct skip_key key); /* NULL: absent */
size_t skip_rank(const struct skip_list *list, struct skip_key key); /* entries before the key */

static inline struct skip_node *skip_first(const struct skip_list *list)
{
    return list->first[0].next;
}

static inline struct skip_node *skip_next(const struct skip_node *node)
{
    return node->links[0].next;
}

#endif
