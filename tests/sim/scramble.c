/*
 * scramble.c - for LD_PRELOAD: an allocator under which nothing may depend on addresses. Blocks
 * come from one region from its end to its beginning, at distances that vary, and are full of junk;
 * none is used twice. What a program prints under it has to be what it prints without.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 16 };
static const size_t region_bytes = (size_t)64 << 30; /* of addresses: pages come when used */
static unsigned char *low, *next;
static uint64_t junk = 0x9e3779b97f4a7c15u;

void *malloc(size_t size);
void free(void *block);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void *reallocarray(void *block, size_t count, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);

static void *take(size_t size, size_t alignment)
{
    if (low == NULL) {
        void *map = mmap(NULL, region_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED)
            return NULL;
        low = map;
        next = low + region_bytes;
    }
    junk = junk * 6364136223846793005u + 1442695040888963407u;
    size_t gap = (size_t)(junk >> 60) * 16;
    size_t left = (size_t)(next - low);
    if (size + alignment + gap + 2 * (size_t)HEADER > left) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned char *block = next - gap - size;
    block -= (uintptr_t)block % alignment;
    memset(block, (int)(junk >> 52 & 0xff), size);
    memcpy(block - HEADER, &size, sizeof(size));
    next = block - HEADER;
    return block;
}

void *malloc(size_t size)
{
    return take(size, 16);
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *block = take(bytes, 16);
    return block != NULL ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *block, size_t size)
{
    size_t old = 0;
    void *moved = take(size, 16);
    if (block == NULL || moved == NULL)
        return moved;
    memcpy(&old, (unsigned char *)block - HEADER, sizeof(old));
    return memcpy(moved, block, old < size ? old : size);
}

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc(block, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = take(size, alignment);
    return *out != NULL ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return take(size, alignment);
}
