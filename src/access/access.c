#include "access/access.h"

/* What is not in a row is SCOPE_NOTHING. The last column is the controller itself, whose commands
 * are made inside the process and never read from anybody. */
#define ROW(word, for_admin, for_member)                                                           \
    {                                                                                              \
        word,                                                                                      \
        {                                                                                          \
            [ROLE_ADMIN] = SCOPE_##for_admin, [ROLE_MEMBER] = SCOPE_##for_member,                  \
            [ROLE_SYSTEM] = SCOPE_ALL,                                                             \
        }                                                                                          \
    }

/* clang-format off */
static const struct row {
    const char *name;
    enum scope scopes[ROLE_COUNT];
} rows[PERMISSION_COUNT] = {
    [PERMIT_TENANT_READ]      = ROW("tenant_read",      ALL,     OWN),
    [PERMIT_TENANT_WRITE]     = ROW("tenant_write",     ALL,     NOTHING),
    [PERMIT_PROJECT_READ]     = ROW("project_read",     ALL,     OWN),
    [PERMIT_PROJECT_WRITE]    = ROW("project_write",    ALL,     NOTHING),
    [PERMIT_QUOTA_WRITE]      = ROW("quota_write",      ALL,     NOTHING),
    [PERMIT_CATALOG_READ]     = ROW("catalog_read",     ALL,     ALL),
    [PERMIT_CLASS_WRITE]      = ROW("class_write",      ALL,     NOTHING),
    [PERMIT_POOL_WRITE]       = ROW("pool_write",       ALL,     NOTHING),
    [PERMIT_PROFILE_WRITE]    = ROW("profile_write",    ALL,     NOTHING),
    [PERMIT_SETTINGS_READ]    = ROW("settings_read",    ALL,     NOTHING),
    [PERMIT_SETTINGS_WRITE]   = ROW("settings_write",   ALL,     NOTHING),
    [PERMIT_NODE_READ]        = ROW("node_read",        ALL,     NOTHING),
    [PERMIT_NODE_WRITE]       = ROW("node_write",       ALL,     NOTHING),
    [PERMIT_NODE_JOIN]        = { "node_join",   { [ROLE_NODE_JOIN] = SCOPE_ALL } },
    [PERMIT_NODE_REPORT]      = { "node_report", { [ROLE_NODE] = SCOPE_ALL } },
    [PERMIT_TOKEN_READ]       = ROW("token_read",       ALL,     NOTHING),
    [PERMIT_TOKEN_WRITE]      = ROW("token_write",      ALL,     NOTHING),
    [PERMIT_WORKLOAD_READ]    = ROW("workload_read",    ALL,     OWN),
    [PERMIT_WORKLOAD_SUBMIT]  = ROW("workload_submit",  ALL,     OWN),
    [PERMIT_WORKLOAD_CANCEL]  = ROW("workload_cancel",  ALL,     OWN),
    [PERMIT_WORKLOAD_EXEC]    = ROW("workload_exec",    ALL,     OWN),
    [PERMIT_WORKLOAD_LOGS]    = ROW("workload_logs",    ALL,     OWN),
    [PERMIT_VOLUME_READ]      = ROW("volume_read",      ALL,     OWN),
    [PERMIT_VOLUME_WRITE]     = ROW("volume_write",     ALL,     OWN),
    [PERMIT_RESERVATION_READ] = ROW("reservation_read", ALL,    OWN),
    [PERMIT_RESERVATION_WRITE] = ROW("reservation_write", ALL,  OWN),
    [PERMIT_IMAGE_READ]       = ROW("image_read",       ALL,     OWN_SHARED),
    [PERMIT_IMAGE_WRITE]      = ROW("image_write",      ALL,     OWN),
    [PERMIT_CREDENTIAL_READ]  = ROW("credential_read",  ALL,     OWN),
    [PERMIT_CREDENTIAL_WRITE] = ROW("credential_write", ALL,     OWN),
    [PERMIT_HOOK_READ]        = ROW("hook_read",        ALL,     OWN),
    [PERMIT_HOOK_WRITE]       = ROW("hook_write",       ALL,     OWN),
    [PERMIT_USAGE_READ]       = ROW("usage_read",       ALL,     OWN),
    [PERMIT_AUDIT_READ]       = ROW("audit_read",       ALL,     NOTHING),
    [PERMIT_METRICS_READ]     = ROW("metrics_read",     ALL,     NOTHING),
    [PERMIT_SNAPSHOT_READ]    = ROW("snapshot_read",    ALL,     NOTHING),
    [PERMIT_SYSTEM]           = ROW("system",           NOTHING, NOTHING),
};
/* clang-format on */

enum scope access_scope(enum role role, enum permission permission)
{
    if (role >= ROLE_COUNT || permission >= PERMISSION_COUNT)
        return SCOPE_NOTHING;
    return rows[permission].scopes[role];
}

bool access_allows(const struct actor *actor, enum permission permission, struct id tenant)
{
    /* A member without a tenant is nobody: two absent ids must not make a match. */
    bool is_own = !id_is_none(tenant) && id_eq(actor->tenant, tenant);
    switch (access_scope(actor->role, permission)) {
    case SCOPE_ALL:
        return true;
    case SCOPE_OWN_SHARED:
        return is_own || id_is_none(tenant);
    case SCOPE_OWN:
        return is_own;
    case SCOPE_NOTHING:
    case SCOPE_COUNT:
        break;
    }
    return false;
}

const char *permission_name(enum permission permission)
{
    return permission < PERMISSION_COUNT ? rows[permission].name : "";
}
