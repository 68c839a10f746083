#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A small first one for requests; larger ones as it grows, so that a batch has few. */
enum { FIRST_CHUNK_BYTES = 4 * 1024, CHUNK_BYTES_MAX = 256 * 1024, ALIGNMENT = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of `bytes` */
    size_t used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

void *mem_new(size_t count, size_t size)
{
    void *mem = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (mem == NULL)
        abort();
    return mem;
}

void *mem_resize(void *mem, size_t count, size_t size)
{
    void *grown = reallocarray(mem, count > 0 ? count : 1, size > 0 ? size : 1);
    if (grown == NULL)
        abort();
    return grown;
}

void *mem_grow(void *mem, size_t *capacity, size_t want, size_t size)
{
    if (want <= *capacity)
        return mem;
    size_t doubled = MAX_OF(want, *capacity * 2);
    *capacity = MAX_OF(doubled, (size_t)8);
    return mem_resize(mem, *capacity, size);
}

void mem_free(void *mem)
{
    free(mem);
}

char *mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = mem_new(size, 1);
    memcpy(copy, text, size);
    return copy;
}

static size_t round_up(size_t size)
{
    assert(size <= SIZE_MAX - ALIGNMENT);
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static struct arena_chunk *chunk_new(const struct arena_chunk *last, size_t at_least)
{
    size_t size = FIRST_CHUNK_BYTES;
    if (last != NULL)
        size = MIN_OF(last->size * 2, (size_t)CHUNK_BYTES_MAX);
    size = MAX_OF(at_least, size);
    struct arena_chunk *chunk = mem_resize(NULL, 1, sizeof(*chunk) + size);
    *chunk = (struct arena_chunk){ .size = size };
    return chunk;
}

static void chunks_free(struct arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        mem_free(chunk);
        chunk = next;
    }
}

/* Carves `size` bytes (already rounded) off the first chunk of the list, growing it when needed. */
static void *chunks_carve(struct arena_chunk **head, size_t size, size_t *held)
{
    struct arena_chunk *chunk = *head;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        chunk = chunk_new(*head, size);
        chunk->next = *head;
        *head = chunk;
        if (held != NULL)
            *held += chunk->size;
    }
    void *mem = chunk->bytes + chunk->used;
    chunk->used += size;
    return mem;
}

static void *carve(struct arena *arena, size_t size)
{
    size_t total = round_up(MAX_OF(size, (size_t)1));
    arena->used += total;
    return chunks_carve(&arena->head, total, NULL);
}

void *arena_new(struct arena *arena, size_t count, size_t size)
{
    size_t total = 0;
    if (__builtin_mul_overflow(count, size, &total))
        abort();
    return memset(carve(arena, total), 0, total);
}

char *arena_dup(struct arena *arena, const void *bytes, size_t size)
{
    assert(size < SIZE_MAX);
    char *copy = carve(arena, size + 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    copy[size] = '\0';
    return copy;
}

char *arena_format(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    va_list again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(length >= 0);
    char *text = arena_new(arena, (size_t)length + 1, 1);
    (void)vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    return text;
}

void arena_reset(struct arena *arena)
{
    struct arena_chunk *keep = arena->head;
    if (keep != NULL) {
        chunks_free(keep->next);
        keep->next = NULL;
        keep->used = 0;
        if (keep->size > CHUNK_BYTES_MAX) {
            mem_free(keep);
            keep = NULL;
        }
    }
    *arena = (struct arena){ .head = keep };
}

void arena_done(struct arena *arena)
{
    chunks_free(arena->head);
    *arena = (struct arena){ 0 };
}

/* Size classes: multiples of 16 up to 1024 (a queued workload must not lose a third of its bytes to
 * rounding), then powers of two. */
enum { FINE_BYTES = 1024, FINE_CLASSES = FINE_BYTES / ALIGNMENT };

static size_t class_of(size_t size, size_t *rounded)
{
    if (size <= FINE_BYTES) {
        *rounded = round_up(MAX_OF(size, (size_t)1));
        return *rounded / ALIGNMENT - 1;
    }
    size_t power = (size_t)FINE_BYTES * 2;
    size_t index = FINE_CLASSES;
    while (power < size && index < POOL_CLASSES) {
        power *= 2;
        index++;
    }
    *rounded = power;
    return index;
}

void *pool_new(struct pool *pool, size_t size)
{
    size_t rounded = 0;
    size_t index = class_of(size, &rounded);
    assert(index < POOL_CLASSES); /* 2^20 bytes: no object of the state is larger */
    void *mem = pool->free_list[index];
    if (mem != NULL)
        memcpy(&pool->free_list[index], mem, sizeof(void *));
    else
        mem = chunks_carve(&pool->head, rounded, &pool->held);
    pool->used += rounded;
    memset(mem, 0, rounded);
    return mem;
}

void pool_free(struct pool *pool, void *mem, size_t size)
{
    if (mem == NULL)
        return;
    size_t rounded = 0;
    size_t index = class_of(size, &rounded);
    assert(index < POOL_CLASSES && pool->used >= rounded);
    memcpy(mem, &pool->free_list[index], sizeof(void *));
    pool->free_list[index] = mem;
    pool->used -= rounded;
}

void *pool_dup(struct pool *pool, const void *bytes, size_t size)
{
    void *mem = pool_new(pool, size);
    if (size > 0)
        memcpy(mem, bytes, size);
    return mem;
}

void pool_done(struct pool *pool)
{
    chunks_free(pool->head);
    *pool = (struct pool){ 0 };
}
