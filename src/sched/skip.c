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
    return sizeof(struct skip_node) + height * sizeof(struct skip_link);
}

/* Where a key belongs: for every level the link it stands behind, and how many entries come before
 * the owner of that link, it included. */
struct place {
    struct skip_link *links[SKIP_HEIGHT];
    size_t ranks[SKIP_HEIGHT];
};

static void find_place(struct skip_list *list, struct skip_key key, struct place *out)
{
    struct skip_link *at = list->first;
    size_t rank = 0;
    for (size_t left = SKIP_HEIGHT; left > 0; left--) {
        size_t level = left - 1;
        while (at[level].next != NULL && skip_compare(at[level].next->key, key) < 0) {
            rank += at[level].width;
            at = at[level].next->links;
        }
        out->links[level] = &at[level];
        out->ranks[level] = rank;
    }
}

struct skip_node *skip_insert(struct skip_list *list, struct pool *pool, struct skip_key key,
                              void *item)
{
    struct place place;
    find_place(list, key, &place);
    const struct skip_node *behind = place.links[0]->next;
    assert(behind == NULL || skip_compare(behind->key, key) != 0);
    size_t height = height_of(key);
    struct skip_node *node = pool_new(pool, node_size(height));
    node->key = key;
    node->item = item;
    node->height = height;
    for (size_t level = 0; level < height; level++) {
        size_t before = place.ranks[0] - place.ranks[level];
        node->links[level] =
            (struct skip_link){ place.links[level]->next, place.links[level]->width - before };
        *place.links[level] = (struct skip_link){ node, before + 1 };
    }
    for (size_t level = height; level < SKIP_HEIGHT; level++)
        place.links[level]->width++;
    list->count++;
    return node;
}

void skip_remove(struct skip_list *list, struct pool *pool, struct skip_key key)
{
    struct place place;
    find_place(list, key, &place);
    struct skip_node *node = place.links[0]->next;
    assert(node != NULL && skip_compare(node->key, key) == 0);
    for (size_t level = 0; level < node->height; level++) {
        place.links[level]->next = node->links[level].next;
        place.links[level]->width--; /* of the entry itself: never 0 */
        place.links[level]->width += node->links[level].width;
    }
    for (size_t level = node->height; level < SKIP_HEIGHT; level++)
        place.links[level]->width--;
    list->count--;
    pool_free(pool, node, node_size(node->height));
}

struct skip_node *skip_find(const struct skip_list *list, struct skip_key key)
{
    const struct skip_link *at = list->first;
    for (size_t left = SKIP_HEIGHT; left > 0; left--) {
        size_t level = left - 1;
        while (at[level].next != NULL && skip_compare(at[level].next->key, key) < 0)
            at = at[level].next->links;
    }
    struct skip_node *node = at[0].next;
    return node != NULL && skip_compare(node->key, key) == 0 ? node : NULL;
}

size_t skip_rank(const struct skip_list *list, struct skip_key key)
{
    const struct skip_link *at = list->first;
    size_t rank = 0;
    for (size_t left = SKIP_HEIGHT; left > 0; left--) {
        size_t level = left - 1;
        while (at[level].next != NULL && skip_compare(at[level].next->key, key) < 0) {
            rank += at[level].width;
            at = at[level].next->links;
        }
    }
    return rank;
}
