#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/random.h"
#include "unit/test.h"

static void test_bytes(void **state)
{
    (void)state;
    unsigned char bytes[1024] = { 0 };
    random_bytes(bytes, sizeof(bytes));
    unsigned seen = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        seen |= bytes[i];
    CHECK("every bit occurs", seen == 0xff);
    unsigned char guard[3] = { 1, 2, 3 };
    random_bytes(guard + 1, 0);
    CHECK("none wanted, none written", guard[0] == 1 && guard[1] == 2 && guard[2] == 3);
}

static void test_random_below(void **state)
{
    (void)state;
    bool is_seen[7] = { false };
    for (int i = 0; i < 2000; i++) {
        uint64_t value = random_below(COUNT_OF(is_seen));
        CHECK("is below", value < COUNT_OF(is_seen));
        is_seen[value] = true;
    }
    for (size_t i = 0; i < COUNT_OF(is_seen); i++)
        CHECK("every value occurs", is_seen[i]);
    CHECK("of one", random_below(1) == 0);
    CHECK("of most", random_below(UINT64_MAX) < UINT64_MAX);
}

static void test_ids(void **state)
{
    (void)state;
    struct id first = random_id();
    struct id second = random_id();
    CHECK("not none", !id_is_none(first) && !id_is_none(second));
    CHECK("differ", !id_eq(first, second));
    CHECK("so do numbers", random_u64() != random_u64());
}

/* What is drawn ahead is not given twice: a child process has none of it. */
static void test_children_draw_their_own(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        int ends[2];
        struct id theirs = { 0 };
        struct id before = random_id();
        CHECK("pipe", pipe(ends) == 0);
        pid_t child = fork();
        if (child == 0) {
            struct id id = random_id();
            _exit(write(ends[1], &id, sizeof(id)) == (ssize_t)sizeof(id) ? 0 : 1);
        }
        struct id ours = random_id();
        int status = -1;
        CHECK("child", child > 0 && waitpid(child, &status, 0) == child && status == 0);
        CHECK("heard", read(ends[0], &theirs, sizeof(theirs)) == (ssize_t)sizeof(theirs));
        CHECK("differ", !id_eq(ours, theirs) && !id_eq(before, theirs) && !id_eq(ours, before));
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_random_below),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_children_draw_their_own),
    };
    return cmocka_run_group_tests_name("os/random", tests, NULL, NULL);
}
