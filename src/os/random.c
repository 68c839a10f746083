#include "os/random.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/*
 * Ids are drawn by the thousand, and a system call for each shows in profiles. So small wants
 * are met from a page that is filled at once; what was given is wiped from it. The kernel
 * empties the page in a child process (MADV_WIPEONFORK), which then begins with `left` 0: no two
 * processes give the same bytes.
 */
enum { POOL_BYTES = 4096 - sizeof(size_t), SMALL_BYTES = 64 };

struct random_pool {
    size_t left; /* bytes not yet given, at the end */
    unsigned char bytes[POOL_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct random_pool
    *pool; /* a page of its own; NULL: not made, or the kernel cannot wipe it */
static bool is_tried;

static struct random_pool *pool_make(void)
{
    void *page = mmap(NULL, sizeof(struct random_pool), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, sizeof(struct random_pool), MADV_WIPEONFORK) != 0) {
        (void)munmap(page, sizeof(struct random_pool));
        return NULL;
    }
    (void)madvise(page, sizeof(struct random_pool), MADV_DONTDUMP);
    return page;
}

static void draw(void *out, size_t size)
{
    unsigned char *at = out;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        assert(got > 0); /* no input can break it, and going on without entropy is worse */
        at += got;
        size -= (size_t)got;
    }
}

static bool draw_from_pool(void *out, size_t size)
{
    if (!is_tried)
        pool = pool_make();
    is_tried = true;
    if (pool == NULL)
        return false;
    if (pool->left < size) {
        draw(pool->bytes, POOL_BYTES);
        pool->left = POOL_BYTES;
    }
    unsigned char *from = pool->bytes + (POOL_BYTES - pool->left);
    memcpy(out, from, size);
    explicit_bzero(from, size);
    pool->left -= size;
    return true;
}

void random_bytes(void *out, size_t size)
{
    bool is_drawn = false;
    /* Only tried: in a child process a lock that another thread held stays held. */
    if (size <= SMALL_BYTES && pthread_mutex_trylock(&lock) == 0) {
        is_drawn = draw_from_pool(out, size);
        (void)pthread_mutex_unlock(&lock);
    }
    if (!is_drawn)
        draw(out, size);
}

uint64_t random_u64(void)
{
    uint64_t value;
    random_bytes(&value, sizeof(value));
    return value;
}

uint64_t random_below(uint64_t bound)
{
    assert(bound > 0);
    uint64_t fair = UINT64_MAX - UINT64_MAX % bound; /* a multiple of bound */
    uint64_t value;
    do {
        value = random_u64();
    } while (value >= fair);
    return value % bound;
}

struct id random_id(void)
{
    struct id id;
    do {
        random_bytes(&id, sizeof(id));
    } while (id_is_none(id));
    return id;
}
