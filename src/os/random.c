#include "os/random.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

void random_bytes(void *out, size_t size)
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
