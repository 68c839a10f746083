#include "os/clock.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "os/file.h"

static int64_t clock_ns(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);
    assert(rc == 0); /* only an unknown clock id can fail */
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

struct mono clock_monotonic(void)
{
    return (struct mono){ clock_ns(CLOCK_MONOTONIC) };
}

struct mono clock_boottime(void)
{
    return (struct mono){ clock_ns(CLOCK_BOOTTIME) };
}

struct wall clock_wall(void)
{
    return (struct wall){ clock_ns(CLOCK_REALTIME) };
}

int64_t clock_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

enum err clock_boot_id(char out[CLOCK_BOOT_ID_MAX], struct error *e)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    AUTO(buf) struct buf text = { 0 };
    enum err rc = file_read(path, 4096, &text, e);
    if (rc != ERR_OK)
        return rc;

    struct str id = buf_str(&text);
    id = str_cut(&id, '\n');
    if (id.size != CLOCK_BOOT_ID_MAX - 1)
        return err_set(e, ERR_IO, "%s: \"%.*s\" is not a boot id", path, STR_ARG(id));
    memcpy(out, id.data, id.size);
    out[id.size] = '\0';
    return ERR_OK;
}

int clock_poll_ms(struct mono now, struct mono deadline)
{
    if (!mono_before(now, deadline))
        return 0;
    int64_t ms = (deadline.ns - now.ns - 1) / NS_PER_MS + 1;
    return (int)MIN_OF(ms, (int64_t)INT_MAX);
}
