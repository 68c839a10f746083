/*
 * mem.h - the heap, an arena for one request or cycle, and a pool for long-lived state.
 *
 * Out of memory ends the process: the store is the truth. Hence every size that comes from outside
 * is limited before it gets here. mem.c is the only file that calls malloc.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

/* Zeroed; never NULL. */
void *mem_new(size_t count, size_t size);

/* Like realloc of `count` items; the new tail is not cleared; never NULL for count > 0. */
void *mem_resize(void *mem, size_t count, size_t size);
/* Room for `want` items, at least doubling `*capacity` when it grows: what vec_reserve calls. */
void *mem_grow(void *mem, size_t *capacity, size_t want, size_t size);
void mem_free(void *mem);
char *mem_strdup(const char *text);
DEFINE_CLEANUP(mem, char *, mem_free)

/*
 * Arena: allocations of one request or one scheduling cycle, dropped as a whole. An all-zero struct
 * is a valid empty arena.
 */
struct arena_chunk;
struct arena {
    struct arena_chunk *head; /* owned */
    size_t used;              /* bytes handed out since the last reset */
};

void *arena_new(struct arena *arena, size_t count, size_t size); /* zeroed, aligned for any type */
char *arena_dup(struct arena *arena, const void *bytes, size_t size); /* adds a NUL after them */
char *arena_format(struct arena *arena, const char *fmt, ...) PRINTF(2, 3);
void arena_reset(struct arena *arena); /* keeps one chunk for the next use */
void arena_done(struct arena *arena);
DEFINE_CLEANUP_AT(arena, struct arena, arena_done)

/*
 * Pool: long-lived objects of one owner, in size classes with free lists. Freeing needs
 * the size the object was made with. pool_done frees all of it at once. An all-zero
 * struct is a valid empty pool.
 */
enum { POOL_CLASSES = 74 };
struct pool {
    void *free_list[POOL_CLASSES];
    struct arena_chunk *head; /* owned */
    size_t used;              /* bytes in live objects */
    size_t held;              /* bytes taken from the heap */
};

void *pool_new(struct pool *pool, size_t size);            /* zeroed */
void pool_free(struct pool *pool, void *mem, size_t size); /* NULL is a no-op */
void *pool_dup(struct pool *pool, const void *bytes, size_t size);
void pool_done(struct pool *pool);

/* A growable typed array. VEC(struct foo) foos = { 0 }; vec_push(&foos, foo); vec_done(&foos); */
#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }
#define vec_reserve(vec, want)                                                                     \
    ((vec)->items = mem_grow((vec)->items, &(vec)->capacity, (want), sizeof(*(vec)->items)))
#define vec_push(vec, item)                                                                        \
    do {                                                                                           \
        vec_reserve((vec), (vec)->count + 1);                                                      \
        (vec)->items[(vec)->count++] = (item);                                                     \
    } while (0)
#define vec_done(vec)                                                                              \
    do {                                                                                           \
        mem_free((vec)->items);                                                                    \
        (vec)->items = NULL;                                                                       \
        (vec)->count = 0;                                                                          \
        (vec)->capacity = 0;                                                                       \
    } while (0)

#endif
