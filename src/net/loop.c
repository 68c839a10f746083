/*
 * A round: wait, serve descriptors, then timers, then posted calls, then tasks. Posted calls also
 * come between two descriptors: a worker that is done should not wait for hundreds of them before
 * it gets its next work. Tasks come last so that whatever the round caused (bytes to write,
 * connections to free) is done once, when nobody is inside a callback any more. A task queued by a
 * task waits for the next round, which then does not block.
 */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/clock.h"
#include "os/fd.h"

enum { READY_MAX = 256 };

struct post {
    void (*fn)(void *arg);
    void *arg;
};

struct work {
    struct work *next;
    struct loop *loop;
    void (*fn)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

struct loop {
    int epoll_fd;
    struct loop_watch wake; /* the eventfd */
    struct mono now;
    bool is_in_round; /* outside of one, `now` is old */
    struct epoll_event ready[READY_MAX];
    size_t ready_next; /* index of the next event to serve in this round */
    size_t ready_count;
    VEC(struct loop_timer *) heap;
    struct loop_task tasks; /* sentinel of a ring */
    size_t work_count;
    size_t thread_count;
    pthread_t threads[LOOP_WORKERS];
    atomic_bool is_stopped;
    atomic_bool has_posts; /* a hint, for looking without the lock */

    /* What follows is shared with other threads, under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    VEC(struct post) posts;
    VEC(struct post) running_posts; /* the loop's thread only; swapped with `posts` */
    struct work *work_head;
    struct work *work_tail;
    bool is_ending;
};

static void wake_up(struct loop *loop)
{
    uint64_t one = 1;
    /* It can only fail when the counter is full, and then the loop wakes up anyway. */
    if (write(loop->wake.fd, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN || errno == EINTR);
}

static void on_wake(struct loop_watch *watch, uint32_t events)
{
    (void)events;
    uint64_t count = 0;
    if (read(watch->fd, &count, sizeof(count)) < 0)
        assert(errno == EAGAIN || errno == EINTR);
}

enum err loop_new(struct loop **out, struct error *e)
{
    AUTO(fd) int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        return err_errno(e, "epoll_create1");
    AUTO(fd) int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0)
        return err_errno(e, "eventfd");
    struct loop *loop = mem_new(1, sizeof(*loop));
    loop->epoll_fd = fd_take(&epoll_fd);
    loop->wake = (struct loop_watch){ fd_take(&wake_fd), EPOLLIN, on_wake, loop };
    loop->tasks.next = &loop->tasks;
    loop->tasks.prev = &loop->tasks;
    loop->now = clock_monotonic();
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->has_work, NULL);
    enum err rc = loop_watch_add(loop, &loop->wake, e);
    if (rc != ERR_OK) {
        loop_free(loop);
        return rc;
    }
    *out = loop;
    return ERR_OK;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    loop_drain(loop);
    pthread_mutex_lock(&loop->lock);
    loop->is_ending = true;
    pthread_cond_broadcast(&loop->has_work);
    pthread_mutex_unlock(&loop->lock);
    for (size_t i = 0; i < loop->thread_count; i++)
        pthread_join(loop->threads[i], NULL);
    pthread_cond_destroy(&loop->has_work);
    pthread_mutex_destroy(&loop->lock);
    fd_close(loop->wake.fd);
    fd_close(loop->epoll_fd);
    vec_done(&loop->heap);
    vec_done(&loop->posts);
    vec_done(&loop->running_posts);
    mem_free(loop);
}

struct mono loop_now(const struct loop *loop)
{
    return loop->is_in_round ? loop->now : clock_monotonic();
}

/* --- Descriptors. --- */

enum err loop_watch_add(struct loop *loop, struct loop_watch *watch, struct error *e)
{
    struct epoll_event event = { .events = watch->events, .data.ptr = watch };
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) < 0)
        return err_errno(e, "watch descriptor %d", watch->fd);
    return ERR_OK;
}

void loop_watch_change(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
    if (watch->events == events)
        return;
    watch->events = events;
    struct epoll_event event = { .events = events, .data.ptr = watch };
    int rc = epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
    assert(rc == 0);
}

void loop_watch_remove(struct loop *loop, struct loop_watch *watch)
{
    int rc = epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    assert(rc == 0);
    for (size_t i = loop->ready_next; i < loop->ready_count; i++) {
        if (loop->ready[i].data.ptr == watch)
            loop->ready[i].data.ptr = NULL;
    }
}

static void serve_posts(struct loop *loop)
{
    if (!atomic_load(&loop->has_posts))
        return;
    atomic_store(&loop->has_posts, false);
    pthread_mutex_lock(&loop->lock);
    struct post *items = loop->posts.items;
    size_t count = loop->posts.count;
    size_t capacity = loop->posts.capacity;
    loop->posts.items = loop->running_posts.items;
    loop->posts.capacity = loop->running_posts.capacity;
    loop->posts.count = 0;
    loop->running_posts.items = items;
    loop->running_posts.capacity = capacity;
    pthread_mutex_unlock(&loop->lock);
    for (size_t i = 0; i < count; i++)
        items[i].fn(items[i].arg);
}

static void serve_ready(struct loop *loop)
{
    loop->ready_next = 0;
    while (loop->ready_next < loop->ready_count) {
        struct epoll_event *event = &loop->ready[loop->ready_next++];
        struct loop_watch *watch = event->data.ptr;
        if (watch != NULL)
            watch->on_ready(watch, event->events);
        serve_posts(loop);
    }
    loop->ready_count = 0;
}

/* --- Timers: a binary heap, each timer knowing its place. --- */

static void heap_place(struct loop *loop, size_t index, struct loop_timer *timer)
{
    loop->heap.items[index] = timer;
    timer->slot = index + 1;
}

static void heap_up(struct loop *loop, size_t index, struct loop_timer *timer)
{
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (!mono_before(timer->at, loop->heap.items[parent]->at))
            break;
        heap_place(loop, index, loop->heap.items[parent]);
        index = parent;
    }
    heap_place(loop, index, timer);
}

static void heap_down(struct loop *loop, size_t index, struct loop_timer *timer)
{
    for (;;) {
        size_t child = index * 2 + 1;
        if (child >= loop->heap.count)
            break;
        if (child + 1 < loop->heap.count &&
            mono_before(loop->heap.items[child + 1]->at, loop->heap.items[child]->at))
            child++;
        if (!mono_before(loop->heap.items[child]->at, timer->at))
            break;
        heap_place(loop, index, loop->heap.items[child]);
        index = child;
    }
    heap_place(loop, index, timer);
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, struct mono at)
{
    loop_timer_stop(loop, timer);
    timer->at = at;
    vec_push(&loop->heap, timer);
    heap_up(loop, loop->heap.count - 1, timer);
}

void loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
    if (timer->slot == 0)
        return;
    size_t index = timer->slot - 1;
    assert(loop->heap.items[index] == timer);
    timer->slot = 0;
    struct loop_timer *last = loop->heap.items[--loop->heap.count];
    if (last == timer)
        return;
    if (index > 0 && mono_before(last->at, loop->heap.items[(index - 1) / 2]->at))
        heap_up(loop, index, last);
    else
        heap_down(loop, index, last);
}

static void serve_timers(struct loop *loop)
{
    /* No more than there were: one that starts itself again with no delay waits for its turn. */
    for (size_t left = loop->heap.count; left > 0 && loop->heap.count > 0; left--) {
        struct loop_timer *timer = loop->heap.items[0];
        if (mono_before(loop->now, timer->at))
            return;
        loop_timer_stop(loop, timer);
        timer->fn(timer->arg);
    }
}

/* --- Tasks. --- */

void loop_task_queue(struct loop *loop, struct loop_task *task)
{
    if (task->prev != NULL)
        return;
    task->prev = loop->tasks.prev;
    task->next = &loop->tasks;
    task->prev->next = task;
    loop->tasks.prev = task;
}

void loop_task_cancel(struct loop *loop, struct loop_task *task)
{
    (void)loop;
    if (task->prev == NULL)
        return;
    task->prev->next = task->next;
    task->next->prev = task->prev;
    task->next = NULL;
    task->prev = NULL;
}

static void serve_tasks(struct loop *loop)
{
    if (loop->tasks.next == &loop->tasks)
        return;
    /* The ring moves to a sentinel of this round, from which a cancel can still unlink. */
    struct loop_task round = loop->tasks;
    round.next->prev = &round;
    round.prev->next = &round;
    loop->tasks.next = &loop->tasks;
    loop->tasks.prev = &loop->tasks;
    while (round.next != &round) {
        struct loop_task *task = round.next;
        loop_task_cancel(loop, task);
        task->fn(task->arg);
    }
}

/* --- Other threads. --- */

void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    struct post post = { fn, arg };
    pthread_mutex_lock(&loop->lock);
    bool was_empty = loop->posts.count == 0;
    vec_push(&loop->posts, post);
    atomic_store(&loop->has_posts, true);
    /* Under the lock, so that the loop cannot be freed between the two. */
    if (was_empty)
        wake_up(loop);
    pthread_mutex_unlock(&loop->lock);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->is_stopped, true);
    wake_up(loop);
}

static void on_work_done(void *arg)
{
    struct work *work = arg;
    work->loop->work_count--;
    if (work->done != NULL)
        work->done(work->arg);
    mem_free(work);
}

/* NULL: the loop is ending. */
static struct work *next_work(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    while (loop->work_head == NULL && !loop->is_ending)
        pthread_cond_wait(&loop->has_work, &loop->lock);
    struct work *work = loop->work_head;
    if (work != NULL) {
        loop->work_head = work->next;
        if (loop->work_head == NULL)
            loop->work_tail = NULL;
    }
    pthread_mutex_unlock(&loop->lock);
    return work;
}

static void *worker_main(void *arg)
{
    struct loop *loop = arg;
    for (struct work *work = next_work(loop); work != NULL; work = next_work(loop)) {
        work->fn(work->arg);
        loop_post(loop, on_work_done, work);
    }
    return NULL;
}

/* Signals stay with the loop's thread, which waits for them by a descriptor. */
static void start_worker(struct loop *loop)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&loop->threads[loop->thread_count], NULL, worker_main, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        loop->thread_count++;
    /* With none at all nothing would ever be done; with one fewer it only takes longer. */
    assert(loop->thread_count > 0);
}

void loop_work(struct loop *loop, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
    struct work *work = mem_new(1, sizeof(*work));
    *work = (struct work){ .loop = loop, .fn = fn, .done = done, .arg = arg };
    loop->work_count++;
    if (loop->thread_count < LOOP_WORKERS && loop->work_count > loop->thread_count)
        start_worker(loop);
    pthread_mutex_lock(&loop->lock);
    if (loop->work_tail == NULL)
        loop->work_head = work;
    else
        loop->work_tail->next = work;
    loop->work_tail = work;
    pthread_cond_signal(&loop->has_work);
    pthread_mutex_unlock(&loop->lock);
}

size_t loop_work_count(const struct loop *loop)
{
    return loop->work_count;
}

void loop_drain(struct loop *loop)
{
    while (loop->work_count > 0) {
        struct pollfd wake = { .fd = loop->wake.fd, .events = POLLIN };
        if (poll(&wake, 1, -1) > 0)
            on_wake(&loop->wake, POLLIN);
        serve_posts(loop);
    }
}

/* --- Rounds. --- */

static int wait_limit_ms(const struct loop *loop, int wait_ms)
{
    if (loop->tasks.next != &loop->tasks || atomic_load(&loop->is_stopped))
        return 0;
    if (loop->heap.count == 0)
        return wait_ms;
    int timer_ms = clock_poll_ms(clock_monotonic(), loop->heap.items[0]->at);
    return wait_ms < 0 ? timer_ms : MIN_OF(timer_ms, wait_ms);
}

enum err loop_turn(struct loop *loop, int wait_ms, struct error *e)
{
    int count = epoll_wait(loop->epoll_fd, loop->ready, READY_MAX, wait_limit_ms(loop, wait_ms));
    if (count < 0 && errno != EINTR)
        return err_errno(e, "epoll_wait");
    loop->now = clock_monotonic();
    loop->is_in_round = true;
    loop->ready_count = count > 0 ? (size_t)count : 0;
    serve_ready(loop);
    serve_timers(loop);
    serve_posts(loop);
    serve_tasks(loop);
    loop->is_in_round = false;
    return ERR_OK;
}

enum err loop_run(struct loop *loop, struct error *e)
{
    while (!atomic_load(&loop->is_stopped)) {
        enum err rc = loop_turn(loop, -1, e);
        if (rc != ERR_OK)
            return rc;
    }
    atomic_store(&loop->is_stopped, false);
    return ERR_OK;
}
