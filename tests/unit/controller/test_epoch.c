#include "controller/epoch.h"
#include "unit/test.h"
#include "unit/test_dir.h"

static const struct {
    const char *name;
    struct epoch_claims claims;
    uint64_t obeyed, claimed;
} cases[] = {
    { "one above what the node has obeyed", { true, 10, 0 }, 17, 18 },
    { "the same as ours, too", { true, 10, 0 }, 10, 11 },
    { "the distance doubles", { true, 10, 4 }, 12, 26 },
    { "without a restore no node is believed", { false, 10, 0 }, 17, 0 },
    { "nor beyond the bound", { true, 10, 0 }, 10 + EPOCH_REACH, 0 },
    { "the last within it", { true, 10, 0 }, 9 + EPOCH_REACH, 10 + EPOCH_REACH },
    { "the highest number there is", { true, 10, 0 }, UINT64_MAX, 0 },
};

static void test_claims(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, cases) {
        struct epoch_claims claims = c->claims;
        CHECK(c->name, epoch_above(&claims, c->obeyed) == c->claimed);
        CHECK(c->name, claims.count == c->claims.count + (c->claimed != 0));
    }
}

/* A node that always tells one more than there is soon tells too much. */
static void test_liar(void **state)
{
    (void)state;
    struct epoch_claims claims = { .is_restored = true, .first = 3 };
    uint64_t epoch = 3;
    unsigned count = 0;
    for (uint64_t next = 4; next != 0; next = epoch_above(&claims, epoch + 1)) {
        epoch = MAX_OF(epoch, next);
        CHECK("ends", ++count <= 22);
    }
    CHECK("reaches all that is believed", epoch + 1 >= 3 + EPOCH_REACH);
}

static void test_mark(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    struct error e = { 0 };
    const struct config config = { .state_dir = str_of(dir.path) };
    CHECK("none at first", !epoch_is_restored(&config));
    CHECK_OK("made", epoch_mark_restored(&config, &e), &e);
    CHECK("is there", epoch_is_restored(&config));
    epoch_unmark(&config);
    CHECK("and gone", !epoch_is_restored(&config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_liar),
        cmocka_unit_test(test_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
