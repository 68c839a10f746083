#include <string.h>

#include "controller/keys.h"
#include "os/clock.h"
#include "unit/test.h"
#include "unit/test_dir.h"

static struct config config_in(const struct test_dir *dir)
{
    struct config config;
    config_defaults(&config);
    config.state_dir = str_of(dir->path);
    return config;
}

static void test_made_once_and_loaded(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(keys) struct keys *keys = NULL;
    AUTO(keys) struct keys *again = NULL;
    struct error e = { 0 };
    struct config config = config_in(&dir);
    CHECK("not made yet", keys_load(&config, &keys, &e) == ERR_NOT_FOUND);
    CHECK("says what to do", strstr(e.text, "berthd init") != NULL);
    CHECK_OK("create", keys_create(&config, &e), &e);
    CHECK("never twice", keys_create(&config, NULL) == ERR_CONFLICT);
    CHECK_OK("load", keys_load(&config, &keys, &e), &e);
    CHECK_OK("load again", keys_load(&config, &again, &e), &e);
    CHECK("the same", memcmp(keys->grant_public, again->grant_public, KEYS_PUBLIC_BYTES) == 0 &&
                          str_eq(buf_str(&keys->server_pem), buf_str(&again->server_pem)));
}

static void test_secret_files_are_private(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    struct error e = { 0 };
    struct config config = config_in(&dir);
    CHECK_OK("create", keys_create(&config, &e), &e);
    static const char *const names[] = { "ca.key", "server.key", "grant.key", "seal.key",
                                         "tickets.key" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[512];
        struct stat info;
        (void)snprintf(path, sizeof(path), "%s/%s", dir.path, names[i]);
        CHECK(names[i], stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
    }
}

static void test_other_names_make_another_certificate(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(keys) struct keys *before = NULL;
    AUTO(keys) struct keys *after = NULL;
    struct error e = { 0 };
    struct config config = config_in(&dir);
    CHECK_OK("create", keys_create(&config, &e), &e);
    CHECK_OK("load", keys_load(&config, &before, &e), &e);
    struct str names[] = { STR("controller.example.org") };
    config.names = (struct str_list){ names, 1 };
    CHECK_OK("load", keys_load(&config, &after, &e), &e);
    CHECK("another", !str_eq(buf_str(&before->server_pem), buf_str(&after->server_pem)));
    CHECK("the same authority", str_eq(buf_str(&before->ca_pem), buf_str(&after->ca_pem)));
}

static void test_refreshed_while_it_runs(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(keys) struct keys *keys = NULL;
    AUTO(keys) struct keys *again = NULL;
    AUTO(buf) struct buf pem = { 0 };
    struct error e = { 0 };
    struct config config = config_in(&dir);
    CHECK_OK("create", keys_create(&config, &e), &e);
    CHECK_OK("load", keys_load(&config, &keys, &e), &e);
    const int64_t day_ns = INT64_C(86400) * NS_PER_S;
    struct wall now = clock_wall();
    struct tls_ticket_key first = keys->tickets[0];
    buf_add_str(&pem, buf_str(&keys->server_pem));
    bool is_new = true;
    CHECK_OK("at once", keys_refresh(&config, keys, now, &is_new, &e), &e);
    CHECK("nothing is due", !is_new && memcmp(&first, &keys->tickets[0], sizeof(first)) == 0);
    now.ns += day_ns + NS_PER_S;
    CHECK_OK("a day later", keys_refresh(&config, keys, now, &is_new, &e), &e);
    CHECK("a new ticket key, and the one before",
          is_new && memcmp(&first, &keys->tickets[0], sizeof(first)) != 0 &&
              memcmp(&first, &keys->tickets[1], sizeof(first)) == 0);
    CHECK("the same certificate", str_eq(buf_str(&pem), buf_str(&keys->server_pem)));
    CHECK_OK("kept", keys_load(&config, &again, &e), &e);
    CHECK("on disk", memcmp(again->tickets, keys->tickets, sizeof(keys->tickets)) == 0);
    now.ns += 340 * day_ns;
    CHECK_OK("near its end", keys_refresh(&config, keys, now, &is_new, &e), &e);
    CHECK("another certificate", is_new && !str_eq(buf_str(&pem), buf_str(&keys->server_pem)));
    config.certificate = STR("/nonesuch");
    config.certificate_key = STR("/nonesuch");
    CHECK("refused", keys_refresh(&config, keys, now, &is_new, &e) != ERR_OK && !is_new);
    CHECK("what was in use stays", keys->server_pem.size > 0 && keys->server_key_pem.size > 0);
}

static void test_sealing(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(keys) struct keys *keys = NULL;
    AUTO(buf) struct buf sealed = { 0 };
    AUTO(buf) struct buf again = { 0 };
    AUTO(buf) struct buf plain = { 0 };
    struct error e = { 0 };
    struct config config = config_in(&dir);
    CHECK_OK("create", keys_create(&config, &e), &e);
    CHECK_OK("load", keys_load(&config, &keys, &e), &e);
    keys_seal(keys, STR("hunter2"), &sealed);
    keys_seal(keys, STR("hunter2"), &again);
    CHECK("not to be recognised", !str_eq(buf_str(&sealed), buf_str(&again)));
    CHECK_OK("open", keys_open(keys, buf_str(&sealed), &plain, &e), &e);
    CHECK("plain", str_is(buf_str(&plain), "hunter2"));
    for (size_t i = 0; i < sealed.size; i++) {
        char before = sealed.data[i];
        sealed.data[i] = before == '0' ? '1' : '0';
        CHECK("a changed digit", keys_open(keys, buf_str(&sealed), &plain, NULL) == ERR_CORRUPT);
        sealed.data[i] = before;
    }
    CHECK("cut", keys_open(keys, (struct str){ sealed.data, 10 }, &plain, NULL) == ERR_CORRUPT);
    CHECK("untouched", str_is(buf_str(&plain), "hunter2"));
}

static void test_damaged_file_is_named(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(keys) struct keys *keys = NULL;
    struct error e = { 0 };
    char path[512];
    struct config config = config_in(&dir);
    CHECK_OK("create", keys_create(&config, &e), &e);
    (void)snprintf(path, sizeof(path), "%s/grant.key", dir.path);
    CHECK("cut", truncate(path, 10) == 0);
    CHECK("refused", keys_load(&config, &keys, &e) == ERR_CORRUPT && keys == NULL);
    CHECK("named", strstr(e.text, "grant.key") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_once_and_loaded),
        cmocka_unit_test(test_secret_files_are_private),
        cmocka_unit_test(test_other_names_make_another_certificate),
        cmocka_unit_test(test_refreshed_while_it_runs),
        cmocka_unit_test(test_sealing),
        cmocka_unit_test(test_damaged_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
