#include <string.h>

#include "controller/logstore.h"
#include "os/random.h"
#include "unit/test.h"
#include "unit/test_dir.h"

/* One project with limits of its own, and all others. */
struct rules {
    struct id project;
    struct logstore_limits own, others;
};

static struct rules usual = { .others = { .quota_mib = 1, .age_s = 100 } };

static struct logstore_limits limits_for(void *arg, struct id project)
{
    const struct rules *rules = arg;
    return id_eq(rules->project, project) ? rules->own : rules->others;
}

static struct log_key key_new(struct id project)
{
    return (struct log_key){
        .project = project, .workload = random_id(), .allocation = random_id(), .attempt = 1
    };
}

static void read_back(struct logstore *logs, const struct log_key *key, const char *wanted)
{
    AUTO(buf) struct buf got = { 0 };
    struct error e = { 0 };
    CHECK_OK("read", logstore_read(logs, key, 0, 1000, &got, &e), &e);
    CHECK(wanted, str_is(buf_str(&got), wanted));
}

static void test_appends_once(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(logstore) struct logstore *logs = NULL;
    struct error e = { 0 };
    CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
    struct log_key key = key_new(random_id());

    CHECK("nothing yet", logstore_size(logs, &key) == 0 && !logstore_is_final(logs, &key));
    CHECK("nothing to read",
          logstore_read(logs, &key, 0, 10, &(struct buf){ 0 }, NULL) == ERR_NOT_FOUND);
    CHECK_OK("first", logstore_append(logs, &key, 0, STR("hello "), &e), &e);
    CHECK_OK("again, longer", logstore_append(logs, &key, 0, STR("hello world"), &e), &e);
    CHECK_OK("a repetition", logstore_append(logs, &key, 2, STR("llo"), &e), &e);
    CHECK("a hole is refused", logstore_append(logs, &key, 12, STR("x"), NULL) == ERR_CONFLICT);
    CHECK("size", logstore_size(logs, &key) == 11);
    read_back(logs, &key, "hello world");

    logstore_finish(logs, &key);
    logstore_finish(logs, &key);
    CHECK("final", logstore_is_final(logs, &key) && logstore_size(logs, &key) == 11);
    CHECK_OK("late bytes change nothing", logstore_append(logs, &key, 11, STR("!"), &e), &e);
    read_back(logs, &key, "hello world");
    CHECK_OK("sync", logstore_sync(logs, &e), &e);
}

static void test_empty_output_can_be_final(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(logstore) struct logstore *logs = NULL;
    struct error e = { 0 };
    CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
    struct log_key key = key_new(random_id());
    logstore_finish(logs, &key);
    CHECK("final", logstore_is_final(logs, &key) && logstore_size(logs, &key) == 0);
}

struct seen {
    struct log_entry entries[8];
    size_t count;
};

static bool note(void *arg, const struct log_entry *entry)
{
    struct seen *seen = arg;
    seen->entries[seen->count++] = *entry;
    return true;
}

static void test_lists_in_order(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(logstore) struct logstore *logs = NULL;
    struct error e = { 0 };
    struct seen seen = { 0 };
    CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
    struct log_key key = key_new(random_id());
    static const int64_t order[][2] = { { 10, 0 }, { 2, 1 }, { 2, 0 }, { 1, 0 } };
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        key.allocation = random_id();
        key.attempt = order[i][0];
        key.rank = order[i][1];
        CHECK_OK("append", logstore_append(logs, &key, 0, STR("x"), &e), &e);
    }
    logstore_list(logs, key.project, key.workload, note, &seen);
    CHECK("all", seen.count == 4);
    for (size_t i = 0; i < seen.count; i++) {
        CHECK("attempt", seen.entries[i].key.attempt == order[3 - i][0]);
        CHECK("rank", seen.entries[i].key.rank == order[3 - i][1]);
    }
    seen.count = 0;
    logstore_list(logs, random_id(), key.workload, note, &seen);
    CHECK("another project sees nothing", seen.count == 0);
}

/* Ended output makes room, the oldest first; growing output does not, and is told to be cut. */
static void test_quota(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(logstore) struct logstore *logs = NULL;
    struct error e = { 0 };
    CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
    struct id project = random_id();
    struct log_key old = key_new(project);
    struct log_key growing = key_new(project);
    struct log_key other = key_new(random_id());
    static char bytes[700 * 1024];
    memset(bytes, 'x', sizeof(bytes));
    const struct str large = { bytes, sizeof(bytes) };

    CHECK_OK("old", logstore_append(logs, &old, 0, large, &e), &e);
    logstore_finish(logs, &old);
    CHECK_OK("makes room", logstore_append(logs, &growing, 0, large, &e), &e);
    CHECK("the old one went", logstore_size(logs, &old) == 0);
    CHECK("no room", logstore_append(logs, &growing, large.size, large, NULL) == ERR_LIMIT);
    CHECK("cut", logstore_is_cut(logs, &growing) && logstore_size(logs, &growing) == large.size);
    CHECK_OK("another project has its own", logstore_append(logs, &other, 0, large, &e), &e);
}

static void test_quota_counts_what_was_there(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    struct error e = { 0 };
    struct log_key key = key_new(random_id());
    static char bytes[700 * 1024];
    for (unsigned round = 0; round < 2; round++) {
        AUTO(logstore) struct logstore *logs = NULL;
        CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
        enum err rc = logstore_append(logs, &key, round * sizeof(bytes),
                                      (struct str){ bytes, sizeof(bytes) }, NULL);
        CHECK("second does not fit", rc == (round == 0 ? ERR_OK : ERR_LIMIT));
    }
}

static void test_expected_output_is_known_after_a_restart(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    struct error e = { 0 };
    struct log_key key = key_new(random_id());
    struct id node = random_id();
    struct log_key found;
    struct id found_node;
    key.attempt = 3;
    key.rank = 2;
    for (unsigned round = 0; round < 3; round++) {
        AUTO(logstore) struct logstore *logs = NULL;
        CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
        bool is_known = logstore_expected(logs, key.allocation, &found, &found_node);
        CHECK("known in the second", is_known == (round == 1));
        if (round == 0)
            logstore_expect(logs, &key, node);
        if (round == 1) {
            CHECK("whose", id_eq(found.project, key.project) && id_eq(found_node, node) &&
                               id_eq(found.workload, key.workload) && found.attempt == 3 &&
                               found.rank == 2);
            logstore_finish(logs, &found);
        }
        CHECK("nobody else", !logstore_expected(logs, random_id(), &found, &found_node));
    }
}

/* Who reads after the end waits as long as one of a workload's outputs is on its way, and
 * no longer. */
static void test_awaits_until_all_has_come(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    struct error e = { 0 };
    struct log_key first = key_new(random_id());
    struct log_key second = first;
    second.allocation = random_id();
    second.attempt = 2;
    for (unsigned round = 0; round < 3; round++) {
        AUTO(logstore) struct logstore *logs = NULL;
        CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
        CHECK("after a restart too", logstore_awaits(logs, first.workload) == (round == 1));
        if (round == 0) {
            for (unsigned again = 0; again < 2; again++) {
                logstore_expect(logs, &first, random_id());
                logstore_expect(logs, &second, random_id());
            }
            logstore_forget(logs, random_id());
            CHECK("both", logstore_awaits(logs, first.workload));
        } else if (round == 1) {
            logstore_finish(logs, &first);
            CHECK("the second", logstore_awaits(logs, first.workload));
            logstore_forget(logs, second.allocation);
            logstore_forget(logs, second.allocation);
            CHECK("none", !logstore_awaits(logs, first.workload));
        }
        CHECK("nobody else", !logstore_awaits(logs, random_id()));
    }
}

static bool is_same(void *arg, struct id allocation)
{
    return id_eq(*(const struct id *)arg, allocation);
}

static void test_expires(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(logstore) struct logstore *logs = NULL;
    struct error e = { 0 };
    CHECK_OK("open", logstore_open(dir.path, limits_for, &usual, &logs, &e), &e);
    struct log_key key = key_new(random_id());
    CHECK_OK("append", logstore_append(logs, &key, 0, STR("x"), &e), &e);
    struct stat info;
    CHECK("dir", stat(dir.path, &info) == 0);
    struct wall now = { info.st_mtim.tv_sec * NS_PER_S };
    struct id silent = { 0 };
    CHECK("not yet", logstore_expire(logs, now, is_same, &silent) == 0);
    now.ns += 200 * NS_PER_S;
    silent = key.allocation;
    CHECK("old, but it lives", logstore_expire(logs, now, is_same, &silent) == 0);
    silent.lo++;
    CHECK("old",
          logstore_expire(logs, now, is_same, &silent) == 1 && logstore_size(logs, &key) == 0);
}

static bool is_none(void *arg, struct id allocation)
{
    (void)arg;
    (void)allocation;
    return false;
}

/* What is stored of each, so that a test says in one line what has gone. */
static bool stores(struct logstore *logs, const struct log_key *keys, const uint64_t sizes[3])
{
    bool is_so = true;
    for (size_t i = 0; i < 3; i++)
        is_so = is_so && logstore_size(logs, &keys[i]) == sizes[i];
    return is_so;
}

/* A quota that is lowered takes effect without any new output, and for nobody else. */
static void test_own_quota(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(logstore) struct logstore *logs = NULL;
    struct error e = { 0 };
    struct rules rules = { random_id(), { 3, 100 }, { 1, 100 } };
    CHECK_OK("open", logstore_open(dir.path, limits_for, &rules, &logs, &e), &e);
    static char bytes[700 * 1024];
    memset(bytes, 'x', sizeof(bytes));
    const struct str large = { bytes, sizeof(bytes) };
    struct log_key keys[3] = { key_new(rules.project), key_new(rules.project),
                               key_new(random_id()) };
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        CHECK_OK("append", logstore_append(logs, &keys[i], 0, large, &e), &e);
    CHECK_OK("its quota is larger than that of others",
             logstore_append(logs, &keys[0], large.size, large, &e), &e);
    CHECK("theirs holds", logstore_append(logs, &keys[2], large.size, large, NULL) == ERR_LIMIT);
    logstore_finish(logs, &keys[0]);

    struct wall now = { 0 };
    CHECK("nothing is old", logstore_expire(logs, now, is_none, NULL) == 0);
    CHECK("all is there",
          stores(logs, keys, (uint64_t[]){ 2 * large.size, large.size, large.size }));
    rules.own.quota_mib = 1;
    CHECK("nothing is old", logstore_expire(logs, now, is_none, NULL) == 0);
    CHECK("ended output has gone", stores(logs, keys, (uint64_t[]){ 0, large.size, large.size }));
    CHECK("what grows is cut", logstore_append(logs, &keys[1], large.size, large, &e) == ERR_LIMIT);
    CHECK("and the quota is named", strstr(e.text, "quota of 1 MiB") != NULL);
    rules.own.quota_mib++;
    struct log_key next = key_new(rules.project);
    CHECK_OK("raised, there is room again", logstore_append(logs, &next, 0, large, &e), &e);
}

/* Retention by age is the project's own too, and never takes what lives. */
static void test_own_age(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(logstore) struct logstore *logs = NULL;
    struct error e = { 0 };
    struct rules rules = { random_id(), { 1, 1000 }, { 1, 100 } };
    CHECK_OK("open", logstore_open(dir.path, limits_for, &rules, &logs, &e), &e);
    struct log_key keys[3] = { key_new(rules.project), key_new(rules.project),
                               key_new(random_id()) };
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        CHECK_OK("append", logstore_append(logs, &keys[i], 0, STR("x"), &e), &e);
    struct log_key mute = key_new(rules.project); /* expected, and nobody will bring it */
    logstore_expect(logs, &mute, random_id());
    struct stat info;
    CHECK("dir", stat(dir.path, &info) == 0);
    struct wall now = { (info.st_mtim.tv_sec + 500) * NS_PER_S };
    struct id live = keys[0].allocation;
    CHECK("only what is old for its project goes", logstore_expire(logs, now, is_same, &live) == 1);
    CHECK("that of the other", stores(logs, keys, (uint64_t[]){ 1, 1, 0 }));
    CHECK("what is expected stays as long", logstore_awaits(logs, mute.workload));
    rules.own.age_s = 200;
    CHECK("lowered, it is old here as well", logstore_expire(logs, now, is_same, &live) == 1);
    CHECK("except for what lives", stores(logs, keys, (uint64_t[]){ 1, 0, 0 }));
    CHECK("and goes as soon", !logstore_awaits(logs, mute.workload));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_once),
        cmocka_unit_test(test_empty_output_can_be_final),
        cmocka_unit_test(test_lists_in_order),
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_quota_counts_what_was_there),
        cmocka_unit_test(test_expected_output_is_known_after_a_restart),
        cmocka_unit_test(test_awaits_until_all_has_come),
        cmocka_unit_test(test_expires),
        cmocka_unit_test(test_own_quota),
        cmocka_unit_test(test_own_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
