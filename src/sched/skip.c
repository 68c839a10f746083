#include "sched/skip.h"

#include <assert.h>

int skip_compare(struct skip_key a, struct skip_key b)
{
    if (a.major != b.major)
        return a.major < b.major ? -1 : 1;
    if (a.minor != b.minor)
        return a.minor < b.minor ? -1 : 1;
    if (a.tie != b.tie)
        return a.tie < b.tie ? -1 : 1;
    return 0;
}

/* A quarter of the entries reach each next level. */
WRAPS static size_t height_of(struct skip_key key)
{
    uint64_t mixed =
        (key.minor ^ key.tie * 0x9e3779b97f4a7c15u ^ (uint64_t)key.major) * 0xff51afd7ed558ccdu;
    mixed ^= mixed >> 32;
    mixed *= 0xc4ceb9fe1a85ec53u;
    mixed ^= mixed >> 29;
    size_t height = 1;
    for (; height < SKIP_HEIGHT && (mixed & 3) == 0; mixed >>= 2)
        height++;
    return height;
}

static size_t node_size(size_t height)
{
    return sizeof(struct skip_node) + height * sizeof(struct skip_node *);
}

/* For every level, the link behind which the key belongs. */
static void find_links(struct skip_list *list, struct skip_key key,
                       struct skip_node **links[SKIP_HEIGHT])
{
    struct skip_node **at = list->first;
    for (size_t level = SKIP_HEIGHT; level-- > 0;) {
        while (at[level] != NULL && skip_compare(at[level]->key, key) < 0)
            at = at[level]->next;
        links[level] = &at[level];
    }
}

struct skip_node *skip_insert(struct skip_list *list, struct pool *pool, struct skip_key key,
                              void *item)
{
    struct skip_node **links[SKIP_HEIGHT];
    find_links(list, key, links);
    assert(*links[0] == NULL || skip_compare((*links[0])->key, key) != 0);
    size_t height = height_of(key);
    struct skip_node *node = pool_new(pool, node_size(height));
    node->key = key;
    node->item = item;
    node->height = height;
    for (size_t level = 0; level < height; level++) {
        node->next[level] = *links[level];
        *links[level] = node;
    }
    list->count++;
    return node;
}

void skip_remove(struct skip_list *list, struct pool *pool, struct skip_key key)
{
    struct skip_node **links[SKIP_HEIGHT];
    find_links(list, key, links);
    struct skip_node *node = *links[0];
    assert(node != NULL && skip_compare(node->key, key) == 0);
    for (size_t level = 0; level < node->height; level++)
        *links[level] = node->next[level];
    list->count--;
    pool_free(pool, node, node_size(node->height));
}

struct skip_node *skip_find(const struct skip_list *list, struct skip_key key)
{
    struct skip_node *const *at = list->first;
    for (size_t level = SKIP_HEIGHT; level-- > 0;) {
        while (at[level] != NULL && skip_compare(at[level]->key, key) < 0)
            at = at[level]->next;
    }
    struct skip_node *node = at[0];
    return node != NULL && skip_compare(node->key, key) == 0 ? node : NULL;
}
