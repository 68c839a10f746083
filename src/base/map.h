/*
 * map.h - hash maps from an id or a string to a borrowed pointer. They cannot be iterated: an order
 * that depends on hashing has no way into a decision. Whoever needs an order keeps a list.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/base.h"
#include "base/id.h"
#include "base/str.h"

struct id_slot {
    struct id key;
    void *value; /* NULL: empty */
};

/* All-zero is a valid empty map. */
struct id_map {
    struct id_slot *slots; /* owned */
    size_t capacity;       /* a power of two, or 0 */
    size_t count;
};

void *id_map_get(const struct id_map *map, struct id key); /* NULL: absent */
/* Replaces. `value` is not NULL. */
void id_map_put(struct id_map *map, struct id key, void *value);
void *id_map_remove(struct id_map *map, struct id key); /* what was there, or NULL */
void id_map_done(struct id_map *map);

struct str_slot {
    struct str key; /* borrowed from the value, which must keep it as long as it is in the map */
    void *value;    /* NULL: empty */
    uint64_t hash;
};

/* All-zero is a valid empty map; `hash_key` may be set before first use against chosen keys. */
struct str_map {
    struct str_slot *slots; /* owned */
    size_t capacity;
    size_t count;
    uint8_t hash_key[16];
};

void *str_map_get(const struct str_map *map, struct str key);
void str_map_put(struct str_map *map, struct str key, void *value);
void *str_map_remove(struct str_map *map, struct str key);
void str_map_done(struct str_map *map);

#endif
