#include "controller/strangers.h"
#include "unit/test.h"

enum { MAX = 8, MAX_PER_ADDRESS = 3, PATIENCE_S = 10 };

static void open_strangers(struct strangers *strangers)
{
    const struct strangers_limits limits = { .patience_s = PATIENCE_S,
                                             .max = MAX,
                                             .max_per_address = MAX_PER_ADDRESS };
    strangers_init(strangers, &limits);
}

static struct mono at(int64_t s)
{
    return (struct mono){ (1000 + s) * NS_PER_S };
}

static const struct {
    const char *name;
    const char *addresses[MAX_PER_ADDRESS + 1];
    bool is_one; /* so that the fourth is one too many */
} sameness[] = {
    { "ports do not count", { "10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3", "10.0.0.1:65535" }, true },
    { "other hosts do", { "10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3", "10.0.0.2:1" }, false },
    { "a mapped address is the address",
      { "10.0.0.1:1", "[::ffff:10.0.0.1]:2", "10.0.0.1:3", "[::ffff:a00:1]:1" },
      true },
    { "64 bits are one customer",
      { "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:0:ffff::]:9", "[2001:db8::9]:1" },
      true },
    { "the next 64 bits are another",
      { "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "[2001:db8:0:1::1]:1" },
      false },
    { "sockets of this machine are one", { "unix", "unix", "unix", "unix" }, true },
    { "what is no address is one of its own", { "unix", "unix", "unix", "10.0.0.1:1" }, false },
};

static void test_counts_by_address(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, sameness) {
        struct strangers strangers;
        open_strangers(&strangers);
        struct stranger all[MAX_PER_ADDRESS + 1] = { 0 };
        struct stranger *surplus = NULL;
        for (size_t i = 0; i < COUNT_OF(all); i++) {
            CHECK(c->name, surplus == NULL);
            surplus = strangers_add(&strangers, &all[i], c->addresses[i], at(0));
        }
        CHECK(c->name, surplus == (c->is_one ? &all[0] : NULL));
        CHECK(c->name, strangers.count == COUNT_OF(all) - (c->is_one ? 1 : 0));
    }
}

static void test_counts_all(void **state)
{
    (void)state;
    struct strangers strangers;
    struct stranger all[MAX + 2] = { 0 };
    open_strangers(&strangers);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char address[32];
        (void)snprintf(address, sizeof(address), "10.0.0.%zu:1", i);
        struct stranger *surplus = strangers_add(&strangers, &all[i], address, at(0));
        CHECK("the oldest of all makes room", surplus == (i < MAX ? NULL : &all[i - MAX]));
    }
    CHECK("and there are never more", strangers.count == MAX);
}

static void test_patience_ends(void **state)
{
    (void)state;
    struct strangers strangers;
    struct stranger all[3] = { 0 };
    struct mono next;
    open_strangers(&strangers);
    CHECK("nobody is waited for", !strangers_next(&strangers, &next));
    for (int i = 0; i < 3; i++)
        CHECK("there is room", strangers_add(&strangers, &all[i], "10.0.0.1:1", at(i)) == NULL);
    CHECK("the oldest is first", strangers_next(&strangers, &next) && next.ns == at(PATIENCE_S).ns);
    CHECK("nobody is late yet", strangers_take_late(&strangers, at(PATIENCE_S - 1)) == NULL);
    CHECK("now one is", strangers_take_late(&strangers, at(PATIENCE_S)) == &all[0]);
    CHECK("and no other", strangers_take_late(&strangers, at(PATIENCE_S)) == NULL);
    strangers_remove(&strangers, &all[1]);
    strangers_remove(&strangers, &all[1]); /* who is not there is no matter */
    CHECK("who has said hello is never late",
          strangers_take_late(&strangers, at(PATIENCE_S + 5)) == &all[2]);
    CHECK("all are gone", strangers.count == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_by_address),
        cmocka_unit_test(test_counts_all),
        cmocka_unit_test(test_patience_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
