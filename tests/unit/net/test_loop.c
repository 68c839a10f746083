#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "net_fixture.h"
#include "os/fd.h"

static struct loop *loop;

static int set_up(void **state)
{
    (void)state;
    struct error e;
    CHECK_OK("loop", loop_new(&loop, &e), &e);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

/* --- Timers. --- */

enum { TIMERS = 200 };

struct timer_case {
    struct loop_timer timer;
    int64_t due_ns;
    bool has_fired;
    bool is_stopped;
};

static struct timer_case timers[TIMERS];
static int64_t last_due_ns;
static size_t fired_count;

static void on_timer(void *arg)
{
    struct timer_case *c = arg;
    CHECK("not stopped", !c->is_stopped);
    CHECK("once", !c->has_fired);
    CHECK("not early", loop_now(loop).ns >= c->due_ns);
    CHECK("in order", c->due_ns >= last_due_ns);
    last_due_ns = c->due_ns;
    c->has_fired = true;
    fired_count++;
}

static void test_timers(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    size_t expected = 0;
    fired_count = 0;
    last_due_ns = 0;
    int64_t begin_ns = loop_now(loop).ns;
    for (size_t i = 0; i < TIMERS; i++) {
        timers[i] = (struct timer_case){ .timer = { .fn = on_timer, .arg = &timers[i] } };
        timers[i].due_ns = begin_ns + (int64_t)test_below(&seed, 30) * NS_PER_MS;
        loop_timer_set(loop, &timers[i].timer, (struct mono){ timers[i].due_ns });
    }
    for (size_t i = 0; i < TIMERS; i++) {
        size_t fate = test_below(&seed, 3);
        if (fate == 0) {
            loop_timer_stop(loop, &timers[i].timer);
            timers[i].is_stopped = true;
        } else if (fate == 1) {
            timers[i].due_ns = begin_ns + (int64_t)test_below(&seed, 40) * NS_PER_MS;
            loop_timer_set(loop, &timers[i].timer, (struct mono){ timers[i].due_ns });
        }
        expected += fate != 0 ? 1 : 0;
    }
    TURN_UNTIL(loop, fired_count == expected);
    loop_timer_stop(loop, &timers[0].timer); /* stopping a stopped one is fine */
}

static size_t again_count;

static void on_again(void *arg)
{
    again_count++;
    loop_timer_set(loop, arg, loop_now(loop));
}

static void test_timer_that_starts_itself(void **state)
{
    (void)state;
    again_count = 0;
    struct loop_timer timer = { .fn = on_again };
    timer.arg = &timer;
    loop_timer_set(loop, &timer, loop_now(loop));
    turn(loop, 0);
    CHECK("once a round: others have their turn", again_count == 1);
    turn(loop, 0);
    CHECK("and the next round again", again_count == 2);
    loop_timer_stop(loop, &timer);
}

/* --- Descriptors. --- */

static size_t ready_count;
static struct loop_watch pair_watches[2];

static void on_ready_remove_other(struct loop_watch *watch, uint32_t events)
{
    (void)events;
    ready_count++;
    struct loop_watch *other = &pair_watches[watch == &pair_watches[0] ? 1 : 0];
    loop_watch_remove(loop, other);
    loop_watch_remove(loop, watch);
}

static void test_removed_watch_is_not_called(void **state)
{
    (void)state;
    struct error e;
    int first[2];
    int second[2];
    ready_count = 0;
    CHECK_OK("pipe", fd_pipe(first, &e), &e);
    CHECK_OK("pipe", fd_pipe(second, &e), &e);
    CHECK("write", write(first[1], "x", 1) == 1 && write(second[1], "x", 1) == 1);
    pair_watches[0] = (struct loop_watch){ first[0], EPOLLIN, on_ready_remove_other, NULL };
    pair_watches[1] = (struct loop_watch){ second[0], EPOLLIN, on_ready_remove_other, NULL };
    CHECK_OK("add", loop_watch_add(loop, &pair_watches[0], &e), &e);
    CHECK_OK("add", loop_watch_add(loop, &pair_watches[1], &e), &e);
    turn(loop, 100);
    turn(loop, 0);
    CHECK("both were ready, one was called", ready_count == 1);
    for (int i = 0; i < 2; i++) {
        fd_close(first[i]);
        fd_close(second[i]);
    }
    struct loop_watch bad = { -1, EPOLLIN, on_ready_remove_other, NULL };
    CHECK("a descriptor that is none is refused", loop_watch_add(loop, &bad, &e) == ERR_IO);
}

/* --- Tasks. --- */

static struct loop_task tasks[3];
static size_t task_counts[3];

static void on_task(void *arg)
{
    size_t index = (size_t)((struct loop_task *)arg - tasks);
    task_counts[index]++;
    if (index == 0) {
        loop_task_cancel(loop, &tasks[1]);
        loop_task_queue(loop, &tasks[0]);
    }
}

static void test_tasks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(tasks); i++) {
        tasks[i] = (struct loop_task){ .fn = on_task, .arg = &tasks[i] };
        task_counts[i] = 0;
        loop_task_queue(loop, &tasks[i]);
        loop_task_queue(loop, &tasks[i]);
    }
    turn(loop, -1);
    CHECK("queued twice runs once; cancelled in the round does not run",
          task_counts[0] == 1 && task_counts[1] == 0 && task_counts[2] == 1);
    turn(loop, -1);
    CHECK("queued by itself: the next round, which does not block", task_counts[0] == 2);
    loop_task_cancel(loop, &tasks[0]);
}

/* --- Other threads. --- */

enum { POSTS = 1000, POSTERS = 4 };

static size_t post_counts[POSTERS];
static pthread_t main_thread;

static void on_post(void *arg)
{
    CHECK("on the loop's thread", pthread_equal(pthread_self(), main_thread));
    (*(size_t *)arg)++;
}

static void *post_many(void *arg)
{
    for (int i = 0; i < POSTS; i++)
        loop_post(loop, on_post, arg);
    return NULL;
}

static void test_posts(void **state)
{
    (void)state;
    pthread_t threads[POSTERS];
    main_thread = pthread_self();
    for (size_t i = 0; i < POSTERS; i++) {
        post_counts[i] = 0;
        CHECK("thread", pthread_create(&threads[i], NULL, post_many, &post_counts[i]) == 0);
    }
    size_t total = 0;
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (total < (size_t)POSTERS * POSTS) {
        CHECK("in time", now_ms() < end_ms);
        turn(loop, 100);
        total = 0;
        for (size_t i = 0; i < POSTERS; i++)
            total += post_counts[i];
    }
    for (size_t i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
}

struct between {
    struct loop_watch watch;
    bool *was_posted;
    bool is_second; /* it found what the first had posted done */
};

static void on_posted(void *arg)
{
    *(bool *)arg = true;
}

static void on_between(struct loop_watch *watch, uint32_t events)
{
    struct between *between = watch->arg;
    uint64_t count = 0;
    (void)events;
    CHECK("read", read(watch->fd, &count, sizeof(count)) == (ssize_t)sizeof(count));
    between->is_second = *between->was_posted;
    loop_post(loop, on_posted, between->was_posted);
}

/* A worker's end is served although many descriptors are ready. */
static void test_posts_come_between_descriptors(void **state)
{
    (void)state;
    struct error e;
    struct between both[2] = { 0 };
    bool was_posted = false;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        both[i].was_posted = &was_posted;
        both[i].watch =
            (struct loop_watch){ eventfd(1, EFD_CLOEXEC), EPOLLIN, on_between, &both[i] };
        CHECK_OK("watch", loop_watch_add(loop, &both[i].watch, &e), &e);
    }
    turn(loop, 0);
    CHECK("in one round, one after the other's post", both[0].is_second != both[1].is_second);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        loop_watch_remove(loop, &both[i].watch);
        (void)close(both[i].watch.fd);
    }
}

struct work_case {
    int input;
    int output;
    bool was_elsewhere;
    bool is_done;
};

static void work_fn(void *arg)
{
    struct work_case *c = arg;
    c->output = c->input * 2;
    c->was_elsewhere = !pthread_equal(pthread_self(), main_thread);
}

static void work_done(void *arg)
{
    struct work_case *c = arg;
    CHECK("on the loop's thread", pthread_equal(pthread_self(), main_thread));
    c->is_done = true;
}

static void test_works(void **state)
{
    (void)state;
    struct work_case cases[100] = { 0 };
    main_thread = pthread_self();
    for (int i = 0; i < 100; i++) {
        cases[i].input = i;
        loop_work(loop, work_fn, work_done, &cases[i]);
    }
    CHECK("counted", loop_work_count(loop) == 100);
    TURN_UNTIL(loop, loop_work_count(loop) == 0);
    for (int i = 0; i < 100; i++)
        CHECK("done", cases[i].is_done && cases[i].output == 2 * i && cases[i].was_elsewhere);
    for (int i = 0; i < 100; i++) {
        cases[i].is_done = false;
        loop_work(loop, work_fn, work_done, &cases[i]);
    }
    loop_drain(loop);
    for (int i = 0; i < 100; i++)
        CHECK("drained", cases[i].is_done);
}

static void *stop_it(void *arg)
{
    (void)arg;
    loop_stop(loop);
    return NULL;
}

static void test_stop(void **state)
{
    (void)state;
    struct error e;
    pthread_t thread;
    CHECK("thread", pthread_create(&thread, NULL, stop_it, NULL) == 0);
    CHECK_OK("returns", loop_run(loop, &e), &e);
    pthread_join(thread, NULL);
    loop_stop(loop);
    CHECK_OK("a stop before the run counts", loop_run(loop, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_timers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_timer_that_starts_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_removed_watch_is_not_called, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_posts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_posts_come_between_descriptors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_works, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net loop", tests, NULL, NULL);
}
