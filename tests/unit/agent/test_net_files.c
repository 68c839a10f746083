/* Identity on disk: a renewal that ends anywhere leaves a certificate and the key that fits it. */
#include <fcntl.h>

#include "agent/net_files.h"
#include "net/ca.h"
#include "os/file.h"
#include "unit/test.h"
#include "unit/test_dir.h"

enum { LIFE_S = 24 * 3600 };
static const struct wall made = { 1700000000 * NS_PER_S };
static const char node_text[] = "nod_00000000000000000000000001";

struct pair {
    struct buf key, certificate;
};

static struct ca *authority;
static struct buf authority_pem;
static struct pair first, second, third, other_node;

static void pair_make(struct pair *pair, const char *name)
{
    struct error e = { 0 };
    const struct ca_client_options options = { .name = str_of(name),
                                               .now = made,
                                               .lifetime_s = LIFE_S };
    CHECK_OK("key", ca_key_new(CA_KEY_P256, &pair->key, &e), &e);
    CHECK_OK("certificate",
             ca_issue_client(authority, buf_str(&pair->key), &options, &pair->certificate, &e), &e);
}

static int set_up(void **state)
{
    (void)state;
    AUTO(buf) struct buf key = { 0 };
    struct error e = { 0 };
    const struct ca_options options = { .name = STR("CA"), .now = made, .lifetime_s = LIFE_S };
    CHECK_OK("key", ca_key_new(CA_KEY_P256, &key, &e), &e);
    CHECK_OK("CA", ca_certificate_new(buf_str(&key), &options, &authority_pem, &e), &e);
    CHECK_OK("load", ca_load(buf_str(&authority_pem), buf_str(&key), &authority, &e), &e);
    pair_make(&first, node_text);
    pair_make(&second, node_text);
    pair_make(&third, node_text);
    pair_make(&other_node, "nod_00000000000000000000000002");
    return 0;
}

static int tear_down(void **state)
{
    struct pair *const all[] = { &first, &second, &third, &other_node };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        buf_done(&all[i]->key);
        buf_done(&all[i]->certificate);
    }
    buf_done(&authority_pem);
    ca_free(authority);
    return 0;
}

static void put(const struct test_dir *dir, const char *name, struct str bytes)
{
    char path[256];
    struct error e = { 0 };
    CHECK_OK(name, file_write_atomic(test_dir_path(dir, name, path), bytes, 0600, &e), &e);
}

static struct test_dir joined(void)
{
    struct test_dir dir = test_dir_new();
    char address[128];
    (void)snprintf(address, sizeof(address), "%s localhost 7878\n", node_text);
    put(&dir, "node", str_of(address));
    put(&dir, "ca.pem", buf_str(&authority_pem));
    put(&dir, "node.pem", buf_str(&first.certificate));
    put(&dir, "node.key", buf_str(&first.key));
    return dir;
}

static bool loads(const struct test_dir *dir, const struct pair *pair)
{
    struct net_identity identity = { 0 };
    if (net_identity_load(dir->path, &identity, NULL) != ERR_OK)
        return false;
    bool is_pair = str_eq(buf_str(&identity.key), buf_str(&pair->key)) &&
                   str_eq(buf_str(&identity.certificate), buf_str(&pair->certificate));
    net_identity_done(&identity);
    return is_pair;
}

static enum err renew(const struct test_dir *dir, const struct pair *certificate,
                      const struct pair *key)
{
    struct net_identity identity = { 0 };
    struct error e = { 0 };
    CHECK_OK("loads", net_identity_load(dir->path, &identity, &e), &e);
    enum err rc = net_identity_renew(dir->path, &identity, buf_str(&certificate->certificate),
                                     buf_str(&key->key), &e);
    CHECK("in memory as well, or not at all",
          str_eq(buf_str(&identity.key), buf_str(rc == ERR_OK ? &key->key : &first.key)));
    net_identity_done(&identity);
    return rc;
}

static void test_renewal(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = joined();
    char path[256];
    CHECK("as joined", loads(&dir, &first));
    CHECK("renewed", renew(&dir, &second, &second) == ERR_OK && loads(&dir, &second));
    CHECK("no key is left over", access(test_dir_path(&dir, "node.key.new", path), F_OK) != 0);
}

static void test_refusals(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = joined();
    CHECK("of another request's key", renew(&dir, &second, &third) == ERR_INVALID);
    CHECK("of another node", renew(&dir, &other_node, &other_node) == ERR_INVALID);
    CHECK("nothing has changed", loads(&dir, &first));
}

/* What a crash leaves: each step of a renewal is there, or not. */
static const struct {
    const char *name;
    bool has_new_key, has_new_certificate;
} crashes[] = {
    { "before anything", false, false },
    { "after the new key", true, false },
    { "after the certificate", true, true },
};

static void test_crashes(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, crashes) {
        AUTO(test_dir) struct test_dir dir = joined();
        if (c->has_new_key)
            put(&dir, "node.key.new", buf_str(&second.key));
        if (c->has_new_certificate)
            put(&dir, "node.pem", buf_str(&second.certificate));
        const struct pair *now = c->has_new_certificate ? &second : &first;
        CHECK(c->name, loads(&dir, now));
        CHECK(c->name, loads(&dir, now));
        /* The next renewal ends early as well: the key of the one before must not be lost by it. */
        put(&dir, "node.key.new", buf_str(&third.key));
        CHECK(c->name, loads(&dir, now));
        put(&dir, "node.pem", buf_str(&third.certificate));
        CHECK(c->name, loads(&dir, &third));
    }
}

static void test_lost_key(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = joined();
    put(&dir, "node.key.new", STR("no key"));
    CHECK("what is no key is not looked at", loads(&dir, &first));
}

static const struct {
    const char *name;
    int64_t there_s; /* the controller's clock after `made` */
    int64_t in_s;
} times[] = {
    { "new", 0, 8 * 3600 - 200 },
    { "an hour old", 3600, 7 * 3600 - 200 },
    { "a third old", 8 * 3600, 0 },
    { "expired", 30 * 24 * 3600, 0 },
    { "not valid yet", -365 * 24 * 3600, 8 * 3600 + 100 },
};

static void test_times(void **state)
{
    (void)state;
    struct net_identity identity = { .not_before = { made.ns - CA_SKEW_S * NS_PER_S },
                                     .not_after = { made.ns + LIFE_S * NS_PER_S } };
    FOR_EACH_CASE (c, times) {
        const struct wall there = { made.ns + c->there_s * NS_PER_S };
        CHECK(c->name, net_identity_renew_in_ms(&identity, there) == c->in_s * 1000);
    }
    CHECK("a hostile clock", net_identity_renew_in_ms(&identity, (struct wall){ INT64_MIN }) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewal), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_crashes), cmocka_unit_test(test_lost_key),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
