/*
 * store_bench.c - how fast the SQLite store is on this disk: commits of several sizes as a multiple
 * of the disk's own fdatasync rate in the same run, then a long history (a million ended workloads
 * unless told otherwise), and what it does to opening, appending, listing and trimming.
 *
 *     store_bench DIRECTORY [WORKLOADS]
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/random.h"
#include "store/query.h"

enum { STEPS = 8, RUN_SECONDS = 3, SAMPLES_MAX = 100000, SPEC_BYTES = 400 };

static _Noreturn void fail(const struct error *e)
{
    (void)fprintf(stderr, "store_bench: %s\n", e->text);
    exit(EXIT_FAILURE); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static double seconds_since(struct mono start)
{
    return (double)(clock_monotonic().ns - start.ns) / (double)NS_PER_S;
}

/* ---- a life of workloads: each is submitted, granted, started, run, ended, billed, forgotten - */

struct life {
    struct id tenant, project, node;
    uint64_t sequence;
    uint64_t steps; /* made so far: STEPS a workload */
    struct id workload, allocation;
    struct wall wall;
    char spec[SPEC_BYTES];
};

static struct event life_event(struct life *life, enum event_type type)
{
    life->wall.ns += NS_PER_MS;
    return (struct event){
        .sequence = ++life->sequence,
        .type = type,
        .version = 1,
        .at = { life->wall.ns },
        .wall = life->wall,
        .actor = { .role = ROLE_MEMBER, .tenant = life->tenant, .name = STR("amber") },
        .request = random_id(),
        .tenant = life->tenant,
    };
}

static struct event submitted(struct life *life)
{
    struct event ev = life_event(life, EV_WORKLOAD_SUBMITTED);
    life->workload = random_id();
    ev.workload_submitted = (struct workload_record){
        .id = life->workload,
        .project = life->project,
        .name = STR("train"),
        .user = STR("amber"),
        .state = WL_QUEUED,
        .cause = CAUSE_WAITING_FOR_CAPACITY,
    };
    return ev;
}

static struct event granted(struct life *life)
{
    struct event ev = life_event(life, EV_ALLOCATION_GRANTED);
    life->allocation = random_id();
    ev.allocation_granted = (struct allocation_record){
        .id = life->allocation,
        .workload = life->workload,
        .project = life->project,
        .node = life->node,
        .attempt = 1,
        .charge_milli = 1000,
        .state = AL_STARTING,
    };
    return ev;
}

static struct event workload_step(struct life *life, enum workload_state state, enum cause cause)
{
    struct event ev = life_event(life, EV_WORKLOAD_CHANGED);
    ev.workload_changed = (struct workload_changed){
        .workload = life->workload,
        .state = state,
        .cause = cause,
        .attempt = 1,
    };
    return ev;
}

static struct event allocation_step(struct life *life, enum allocation_state state)
{
    struct event ev = life_event(life, EV_ALLOCATION_CHANGED);
    ev.allocation_changed = (struct allocation_changed){
        .allocation = life->allocation,
        .state = state,
        .has_segment = state == AL_CLEANING,
    };
    ev.allocation_changed.segment = (struct segment){
        .allocation = life->allocation,
        .workload = life->workload,
        .project = life->project,
        .tenant = life->tenant,
        .charge_milli = 1000,
        .start = life->wall,
        .duration_ms = 60000,
        .amount_micros = 1000,
        .cause = CAUSE_EXITED,
    };
    return ev;
}

static struct event next_event(struct life *life)
{
    struct event ev;
    switch (life->steps++ % STEPS) {
    case 0:
        return submitted(life);
    case 1:
        return granted(life);
    case 2:
        return workload_step(life, WL_STARTING, CAUSE_NONE);
    case 3:
        return allocation_step(life, AL_RUNNING);
    case 4:
        return workload_step(life, WL_RUNNING, CAUSE_NONE);
    case 5:
        return allocation_step(life, AL_CLEANING);
    case 6:
        return workload_step(life, WL_SUCCEEDED, CAUSE_EXITED);
    default:
        ev = life_event(life, EV_WORKLOAD_FORGOTTEN);
        ev.removed.id = life->workload;
        return ev;
    }
}

static void append(struct store *store, struct life *life, size_t count)
{
    struct error e;
    struct event *events = mem_new(count, sizeof(*events));
    struct store_event *stored = mem_new(count, sizeof(*stored));
    for (size_t i = 0; i < count; i++) {
        events[i] = next_event(life);
        bool is_submission = events[i].type == EV_WORKLOAD_SUBMITTED;
        stored[i].event = &events[i];
        stored[i].object = STR("wl_00000000000000000000000000");
        stored[i].body = (struct str){ life->spec, is_submission ? SPEC_BYTES : SPEC_BYTES / 4 };
    }
    struct store_batch batch = {
        .events = stored,
        .event_count = count,
        .clock = { STR("boot"), life->wall.ns, { life->wall.ns }, life->wall },
    };
    if (store->vtable->append(store, &batch, &e) != ERR_OK ||
        store->vtable->maintain(store, 1000, &e) != ERR_OK)
        fail(&e);
    mem_free(events);
    mem_free(stored);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static double samples[SAMPLES_MAX];

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double percentile(size_t count, size_t per_cent)
{
    qsort(samples, count, sizeof(samples[0]), compare_doubles);
    return samples[MIN_OF(count * per_cent / 100, count - 1)] * 1000;
}

/* What the disk can do: a page appended and forced, over and over. */
static double measure_disk(const char *directory)
{
    char path[512];
    char page[4096] = { 0 };
    struct error e;
    (void)snprintf(path, sizeof(path), "%s/raw", directory);
    AUTO(fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)err_errno(&e, "open %s", path);
        fail(&e);
    }
    size_t count = 0;
    struct mono start = clock_monotonic();
    while (seconds_since(start) < RUN_SECONDS && count < SAMPLES_MAX) {
        struct mono before = clock_monotonic();
        if (fd_write_full(fd, page, sizeof(page), &e) != ERR_OK)
            fail(&e);
        if (fdatasync(fd) != 0)
            fail(&e);
        samples[count++] = seconds_since(before);
    }
    double rate = (double)count / seconds_since(start);
    printf("raw 4 KiB append + fdatasync: %.0f/s, p50 %.2f ms, p99 %.2f ms\n", rate,
           percentile(count, 50), percentile(count, 99));
    (void)unlink(path);
    return rate;
}

static void measure_commits(struct store *store, struct life *life, double disk_rate)
{
    static const size_t sizes[] = { 1, 10, 100, 500 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t count = 0;
        int64_t cpu = clock_cpu_ns();
        struct mono start = clock_monotonic();
        while (seconds_since(start) < RUN_SECONDS && count < SAMPLES_MAX) {
            struct mono before = clock_monotonic();
            append(store, life, sizes[i]);
            samples[count++] = seconds_since(before);
        }
        double wall = seconds_since(start);
        double events = (double)(count * sizes[i]);
        printf("batches of %3zu: %7.0f events/s = %5.1f x fdatasync; commit p50 %.2f p99 %.2f ms; "
               "%.1f us CPU an event\n",
               sizes[i], events / wall, events / wall / disk_rate, percentile(count, 50),
               percentile(count, 99), (double)(clock_cpu_ns() - cpu) / 1000 / events);
    }
}

static struct store *open_store(const char *path)
{
    struct error e;
    struct store *store = NULL;
    uint64_t epoch = 0;
    struct mono start = clock_monotonic();
    if (store_sqlite_open(path, NULL, &store, &e) != ERR_OK)
        fail(&e);
    printf("open: %.1f ms\n", seconds_since(start) * 1000);
    if (store->vtable->claim(store, 0, &epoch, &e) != ERR_OK)
        fail(&e);
    return store;
}

static void fill(struct store *store, struct life *life, uint64_t workloads)
{
    enum { FILL_BATCH = 4000 };
    struct error e;
    bool more = true;
    struct mono start = clock_monotonic();
    uint64_t before = life->sequence;
    while (life->steps < workloads * STEPS) {
        append(store, life, FILL_BATCH);
        if (life->steps % (FILL_BATCH * 50) != 0)
            continue;
        if (store_save_snapshot(store, life->sequence, STR("state"), 10000, &e) != ERR_OK)
            fail(&e);
        for (more = true; more;)
            if (store->vtable->trim(store, life->wall, &more, &e) != ERR_OK)
                fail(&e);
    }
    double wall = seconds_since(start);
    printf("filled with %" PRIu64 " events in %.0f s: %.0f events/s, archiving included\n",
           life->sequence - before, wall, (double)(life->sequence - before) / wall);
}

static enum err count_workload(void *arg, const struct ended_workload *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    (void)e;
    ++*count;
    return ERR_OK;
}

static enum err count_event(void *arg, const struct store_row *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    (void)e;
    ++*count;
    return ERR_OK;
}

static void measure_lists(const char *path, const struct life *life)
{
    struct error e;
    size_t count = 0;
    AUTO(query) struct query *query = NULL;
    if (query_open_sqlite(path, &query, &e) != ERR_OK)
        fail(&e);
    struct query_page page = { .tenant = life->tenant, .limit = 100 };
    struct mono start = clock_monotonic();
    if (query_ended_workloads(query, &page, count_workload, &count, &e) != ERR_OK)
        fail(&e);
    printf("newest page of 100 ended workloads: %.2f ms\n", seconds_since(start) * 1000);
    page.after = life->sequence / 2;
    start = clock_monotonic();
    if (query_ended_workloads(query, &page, count_workload, &count, &e) != ERR_OK)
        fail(&e);
    printf("a page in the middle: %.2f ms\n", seconds_since(start) * 1000);
    start = clock_monotonic();
    if (query_events(query, &page, count_event, &count, &e) != ERR_OK)
        fail(&e);
    printf("100 events out of the archive: %.2f ms\n", seconds_since(start) * 1000);
}

static void print_sizes(const char *path)
{
    struct stat found = { 0 };
    struct rusage usage = { 0 };
    (void)stat(path, &found);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("file: %.1f MiB; peak memory of this process: %.1f MiB\n",
           (double)found.st_size / 1048576, (double)usage.ru_maxrss / 1024);
}

static void start_life(struct life *life)
{
    *life = (struct life){ .tenant = random_id(), .project = random_id(), .node = random_id() };
    life->wall = clock_wall();
    for (size_t i = 0; i < SPEC_BYTES; i++)
        life->spec[i] = (char)('a' + random_below(26));
}

int main(int argc, char **argv)
{
    struct error e;
    struct life life;
    char path[512];
    if (argc < 2) {
        (void)fprintf(stderr, "usage: store_bench DIRECTORY [WORKLOADS]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    uint64_t workloads = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    (void)snprintf(path, sizeof(path), "%s/bench.db", argv[1]);
    start_life(&life);
    if (store_sqlite_create(path, &e) != ERR_OK)
        fail(&e);
    double disk_rate = measure_disk(argv[1]);
    struct store *store = open_store(path);
    measure_commits(store, &life, disk_rate);
    fill(store, &life, workloads);
    print_sizes(path);
    store_free(store);
    store = open_store(path);
    disk_rate = measure_disk(argv[1]);
    measure_commits(store, &life, disk_rate);
    measure_lists(path, &life);
    print_sizes(path);
    store_free(store);
    return 0;
}
