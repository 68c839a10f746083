/* The whole table of permissions and roles, written down a second time, by scope. */
#include <string.h>

#include "access/access.h"
#include "unit/test.h"

/* Scopes in the order of the roles: none, admin, member, node_join, node, system.
 * '-' nothing, 'o' own tenant, 's' own tenant and what belongs to none, 'a' all. */
static const struct {
    enum permission permission;
    const char *name;
    const char *scopes;
} cases[] = {
    { PERMIT_TENANT_READ, "tenant_read", "-ao--a" },
    { PERMIT_TENANT_WRITE, "tenant_write", "-a---a" },
    { PERMIT_PROJECT_READ, "project_read", "-ao--a" },
    { PERMIT_PROJECT_WRITE, "project_write", "-a---a" },
    { PERMIT_QUOTA_WRITE, "quota_write", "-a---a" },
    { PERMIT_CATALOG_READ, "catalog_read", "-aa--a" },
    { PERMIT_CLASS_WRITE, "class_write", "-a---a" },
    { PERMIT_POOL_WRITE, "pool_write", "-a---a" },
    { PERMIT_PROFILE_WRITE, "profile_write", "-a---a" },
    { PERMIT_SETTINGS_READ, "settings_read", "-a---a" },
    { PERMIT_SETTINGS_WRITE, "settings_write", "-a---a" },
    { PERMIT_NODE_READ, "node_read", "-a---a" },
    { PERMIT_NODE_WRITE, "node_write", "-a---a" },
    { PERMIT_NODE_JOIN, "node_join", "---a--" },
    { PERMIT_NODE_REPORT, "node_report", "----a-" },
    { PERMIT_TOKEN_READ, "token_read", "-a---a" },
    { PERMIT_TOKEN_WRITE, "token_write", "-a---a" },
    { PERMIT_WORKLOAD_READ, "workload_read", "-ao--a" },
    { PERMIT_WORKLOAD_SUBMIT, "workload_submit", "-ao--a" },
    { PERMIT_WORKLOAD_CANCEL, "workload_cancel", "-ao--a" },
    { PERMIT_WORKLOAD_EXEC, "workload_exec", "-ao--a" },
    { PERMIT_WORKLOAD_LOGS, "workload_logs", "-ao--a" },
    { PERMIT_VOLUME_READ, "volume_read", "-ao--a" },
    { PERMIT_VOLUME_WRITE, "volume_write", "-ao--a" },
    { PERMIT_RESERVATION_READ, "reservation_read", "-ao--a" },
    { PERMIT_RESERVATION_WRITE, "reservation_write", "-ao--a" },
    { PERMIT_IMAGE_READ, "image_read", "-as--a" },
    { PERMIT_IMAGE_WRITE, "image_write", "-ao--a" },
    { PERMIT_CREDENTIAL_READ, "credential_read", "-ao--a" },
    { PERMIT_CREDENTIAL_WRITE, "credential_write", "-ao--a" },
    { PERMIT_HOOK_READ, "hook_read", "-ao--a" },
    { PERMIT_HOOK_WRITE, "hook_write", "-ao--a" },
    { PERMIT_USAGE_READ, "usage_read", "-ao--a" },
    { PERMIT_AUDIT_READ, "audit_read", "-a---a" },
    { PERMIT_METRICS_READ, "metrics_read", "-a---a" },
    { PERMIT_SNAPSHOT_READ, "snapshot_read", "-a---a" },
    { PERMIT_SYSTEM, "system", "-----a" },
};

static const struct id amber = { 1, 1 };
static const struct id birch = { 1, 2 };
static const struct id nobody;

static void test_table(void **state)
{
    (void)state;
    static const char letters[] = "-osa";
    CHECK("every permission has its row", COUNT_OF(cases) == PERMISSION_COUNT);
    FOR_EACH_CASE (c, cases) {
        CHECK(c->name, strcmp(permission_name(c->permission), c->name) == 0);
        CHECK(c->name, strlen(c->scopes) == ROLE_COUNT);
        for (unsigned role = 0; role < ROLE_COUNT; role++)
            CHECK(c->name,
                  letters[access_scope((enum role)role, c->permission)] == c->scopes[role]);
    }
}

/* What the scope means, for an object of the own tenant, of another, and of none. */
static void test_scopes(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, cases) {
        for (unsigned role = 0; role < ROLE_COUNT; role++) {
            struct actor actor = { .role = (enum role)role, .tenant = amber };
            char scope = c->scopes[role];
            CHECK(c->name, access_allows(&actor, c->permission, amber) == (scope != '-'));
            CHECK(c->name, access_allows(&actor, c->permission, birch) == (scope == 'a'));
            CHECK(c->name,
                  access_allows(&actor, c->permission, nobody) == (scope == 'a' || scope == 's'));
        }
    }
}

static void test_no_match_of_nothing(void **state)
{
    (void)state;
    struct actor lost = { .role = ROLE_MEMBER };
    CHECK("a member of no tenant owns nothing",
          !access_allows(&lost, PERMIT_WORKLOAD_READ, nobody));
    CHECK("nor anything of a tenant", !access_allows(&lost, PERMIT_WORKLOAD_READ, amber));
}

static void test_outside_the_table(void **state)
{
    (void)state;
    struct actor actor = { .role = ROLE_COUNT, .tenant = amber };
    CHECK("a role that is none", !access_allows(&actor, PERMIT_WORKLOAD_READ, amber));
    actor.role = ROLE_ADMIN;
    CHECK("a permission that is none", !access_allows(&actor, PERMISSION_COUNT, amber));
    CHECK("has no name", permission_name(PERMISSION_COUNT)[0] == '\0');
}

static void test_own_quota(void **state)
{
    (void)state;
    struct actor member = { .role = ROLE_MEMBER, .tenant = amber };
    CHECK("a member may not raise the quota of its own tenant",
          !access_allows(&member, PERMIT_QUOTA_WRITE, amber));
    struct actor admin = { .role = ROLE_ADMIN };
    CHECK("an admin may", access_allows(&admin, PERMIT_QUOTA_WRITE, amber));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_no_match_of_nothing),
        cmocka_unit_test(test_outside_the_table),
        cmocka_unit_test(test_own_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
