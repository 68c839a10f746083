/*
 * access.h - who may do what: one table of permission and role.
 *
 * Two roles of people for now: admins run the installation, members work inside their tenant. What
 * a member may not do anywhere is refused as not permitted; what it may do in its own tenant only
 * is, elsewhere, answered exactly as if the object were absent - that is the caller's part.
 */
#ifndef ACCESS_ACCESS_H
#define ACCESS_ACCESS_H

#include "model/event.h"

enum permission {
    PERMIT_TENANT_READ, /* its existence, its feed, everything that has no permission of its own */
    PERMIT_TENANT_WRITE,
    PERMIT_PROJECT_READ,
    PERMIT_PROJECT_WRITE,
    PERMIT_QUOTA_WRITE,  /* quotas, limits, weights, priorities: also of one's own tenant */
    PERMIT_CATALOG_READ, /* classes, pools, profiles: what can be asked for */
    PERMIT_CLASS_WRITE,
    PERMIT_POOL_WRITE,
    PERMIT_PROFILE_WRITE,
    PERMIT_SETTINGS_READ,
    PERMIT_SETTINGS_WRITE,
    PERMIT_NODE_READ,
    PERMIT_NODE_WRITE,  /* cordon, drain, remove, hold devices, confirm losses */
    PERMIT_NODE_JOIN,   /* become a node; the join token says of which pool */
    PERMIT_NODE_REPORT, /* inventory, observations, renewal: of the actor's own node */
    PERMIT_TOKEN_READ,
    PERMIT_TOKEN_WRITE,
    PERMIT_WORKLOAD_READ,
    PERMIT_WORKLOAD_SUBMIT,
    PERMIT_WORKLOAD_CANCEL, /* hold, release and requeue as well */
    PERMIT_WORKLOAD_EXEC,   /* terminals and copies into running work */
    PERMIT_WORKLOAD_LOGS,
    PERMIT_VOLUME_READ,
    PERMIT_VOLUME_WRITE,
    PERMIT_RESERVATION_READ,
    PERMIT_RESERVATION_WRITE,
    PERMIT_IMAGE_READ,
    PERMIT_IMAGE_WRITE, /* uploads of code as well */
    PERMIT_CREDENTIAL_READ,
    PERMIT_CREDENTIAL_WRITE,
    PERMIT_HOOK_READ,
    PERMIT_HOOK_WRITE,
    PERMIT_USAGE_READ,
    PERMIT_AUDIT_READ,
    PERMIT_METRICS_READ,
    PERMIT_SNAPSHOT_READ, /* of the whole state, for simulations */
    PERMIT_SYSTEM,        /* starts, ticks, contact: the controller itself */
    PERMISSION_COUNT
};

enum scope {
    SCOPE_NOTHING,
    SCOPE_OWN,        /* objects of the actor's own tenant */
    SCOPE_OWN_SHARED, /* and those that belong to no tenant */
    SCOPE_ALL,
    SCOPE_COUNT
};

/* How far the permission reaches for the role. */
enum scope access_scope(enum role role, enum permission permission);

/* May the actor use the permission on an object of that tenant (none: an object of no tenant)? */
bool access_allows(const struct actor *actor, enum permission permission, struct id tenant);

const char *permission_name(enum permission permission); /* "workload_submit" */

#endif
