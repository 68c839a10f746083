#include "base/map.h"

#include <assert.h>

#include "base/mem.h"

/* Both maps: open addressing, linear probing, load at most 3/4, removal by shifting back. */

static size_t id_home(struct id key, size_t capacity)
{
    return (size_t)(key.lo ^ (key.hi >> 7)) & (capacity - 1);
}

static size_t id_find(const struct id_map *map, struct id key)
{
    size_t i = id_home(key, map->capacity);
    while (map->slots[i].value != NULL && !id_eq(map->slots[i].key, key))
        i = (i + 1) & (map->capacity - 1);
    return i;
}

void *id_map_get(const struct id_map *map, struct id key)
{
    return map->capacity == 0 ? NULL : map->slots[id_find(map, key)].value;
}

static void id_grow(struct id_map *map)
{
    struct id_map bigger = { .capacity = map->capacity > 0 ? map->capacity * 2 : 16 };
    bigger.slots = mem_new(bigger.capacity, sizeof(*bigger.slots));
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value != NULL)
            bigger.slots[id_find(&bigger, map->slots[i].key)] = map->slots[i];
    }
    bigger.count = map->count;
    mem_free(map->slots);
    *map = bigger;
}

void id_map_put(struct id_map *map, struct id key, void *value)
{
    assert(value != NULL);
    if (map->count + 1 > map->capacity / 4 * 3)
        id_grow(map);
    struct id_slot *slot = &map->slots[id_find(map, key)];
    if (slot->value == NULL)
        map->count++;
    *slot = (struct id_slot){ key, value };
}

/* From one slot on to another, over the end if need be. */
static size_t ring_distance(size_t from, size_t to, size_t capacity)
{
    return to >= from ? to - from : to + capacity - from;
}

void *id_map_remove(struct id_map *map, struct id key)
{
    if (map->capacity == 0)
        return NULL;
    size_t hole = id_find(map, key);
    void *removed = map->slots[hole].value;
    if (removed == NULL)
        return NULL;
    map->count--;
    size_t mask = map->capacity - 1;
    for (size_t i = (hole + 1) & mask; map->slots[i].value != NULL; i = (i + 1) & mask) {
        size_t home = id_home(map->slots[i].key, map->capacity);
        if (ring_distance(home, i, map->capacity) >= ring_distance(hole, i, map->capacity)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct id_slot){ 0 };
    return removed;
}

void id_map_done(struct id_map *map)
{
    mem_free(map->slots);
    *map = (struct id_map){ 0 };
}

static size_t str_find(const struct str_map *map, struct str key, uint64_t hash)
{
    size_t i = (size_t)hash & (map->capacity - 1);
    while (map->slots[i].value != NULL &&
           (map->slots[i].hash != hash || !str_eq(map->slots[i].key, key)))
        i = (i + 1) & (map->capacity - 1);
    return i;
}

void *str_map_get(const struct str_map *map, struct str key)
{
    if (map->capacity == 0)
        return NULL;
    return map->slots[str_find(map, key, siphash(map->hash_key, key.data, key.size))].value;
}

static void str_grow(struct str_map *map)
{
    struct str_map bigger = *map;
    bigger.capacity = map->capacity > 0 ? map->capacity * 2 : 16;
    bigger.slots = mem_new(bigger.capacity, sizeof(*bigger.slots));
    for (size_t i = 0; i < map->capacity; i++) {
        const struct str_slot *slot = &map->slots[i];
        if (slot->value != NULL)
            bigger.slots[str_find(&bigger, slot->key, slot->hash)] = *slot;
    }
    mem_free(map->slots);
    *map = bigger;
}

void str_map_put(struct str_map *map, struct str key, void *value)
{
    assert(value != NULL);
    if (map->count + 1 > map->capacity / 4 * 3)
        str_grow(map);
    uint64_t hash = siphash(map->hash_key, key.data, key.size);
    struct str_slot *slot = &map->slots[str_find(map, key, hash)];
    if (slot->value == NULL)
        map->count++;
    *slot = (struct str_slot){ key, value, hash };
}

void *str_map_remove(struct str_map *map, struct str key)
{
    if (map->capacity == 0)
        return NULL;
    size_t hole = str_find(map, key, siphash(map->hash_key, key.data, key.size));
    void *removed = map->slots[hole].value;
    if (removed == NULL)
        return NULL;
    map->count--;
    size_t mask = map->capacity - 1;
    for (size_t i = (hole + 1) & mask; map->slots[i].value != NULL; i = (i + 1) & mask) {
        size_t home = (size_t)map->slots[i].hash & mask;
        if (ring_distance(home, i, map->capacity) >= ring_distance(hole, i, map->capacity)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct str_slot){ 0 };
    return removed;
}

void str_map_done(struct str_map *map)
{
    mem_free(map->slots);
    map->slots = NULL;
    map->capacity = 0;
    map->count = 0;
}
