#include "model/transition.h"

/* A pair that is not listed is refused. Finals have no row of their own: nothing leaves them. */
/* clang-format off */
static const bool workload_steps[WL_STATE_COUNT][WL_STATE_COUNT] = {
    [WL_HELD] = {
        [WL_QUEUED] = true,     /* released */
        [WL_CANCELLED] = true,
        [WL_FAILED] = true,     /* a dependency can no longer end as asked */
    },
    [WL_QUEUED] = {
        [WL_HELD] = true,         /* a person holds it */
        [WL_PROVISIONING] = true, /* a site makes capacity for it */
        [WL_STARTING] = true,     /* granted */
        [WL_CANCELLED] = true,
        [WL_FAILED] = true,       /* a dependency failed, or its retries are used up */
    },
    [WL_PROVISIONING] = {
        [WL_QUEUED] = true,   /* the site gave up */
        [WL_STARTING] = true, /* the nodes are there */
        [WL_CANCELLED] = true,
        [WL_FAILED] = true,
    },
    [WL_STARTING] = {
        [WL_RUNNING] = true,   /* every member runs */
        [WL_STOPPING] = true,  /* cancelled, evicted, or a member failed while others live */
        [WL_QUEUED] = true,    /* nothing ran: the node was lost, or the start failed or timed out */
        [WL_SUCCEEDED] = true, /* so short that it ran and ended between two reports */
        [WL_FAILED] = true,
        [WL_CANCELLED] = true, /* nothing ran yet, so nothing has to be stopped */
        [WL_TIMED_OUT] = true, /* as with succeeded: ran and ended between two reports */
    },
    [WL_RUNNING] = {
        [WL_STOPPING] = true,  /* cancelled, evicted, timed out, or a member failed */
        [WL_QUEUED] = true,    /* its node was lost, or its only process failed and is retried */
        [WL_SUCCEEDED] = true,
        [WL_FAILED] = true,
        [WL_CANCELLED] = true, /* all of its nodes are lost: nothing left to wait for */
        [WL_TIMED_OUT] = true, /* the node enforces the limit by itself */
    },
    [WL_STOPPING] = {
        [WL_QUEUED] = true,    /* evicted: original submission time kept */
        [WL_SUCCEEDED] = true, /* it finished within the grace time */
        [WL_FAILED] = true,
        [WL_CANCELLED] = true,
        [WL_TIMED_OUT] = true,
    },
};

static const bool allocation_steps[AL_STATE_COUNT][AL_STATE_COUNT] = {
    [AL_STARTING] = {
        [AL_RUNNING] = true,
        [AL_STOPPING] = true, /* told to stop while it prepares */
        [AL_CLEANING] = true, /* ran and ended between two reports */
        [AL_LOST] = true,
        [AL_ENDED] = true,    /* never ran, or the node never heard of it: nothing to clean */
    },
    [AL_RUNNING] = {
        [AL_STOPPING] = true,
        [AL_CLEANING] = true,    /* exited */
        [AL_LOST] = true,
        [AL_QUARANTINED] = true, /* the node itself tried to end it, and it would not die */
        [AL_ENDED] = true,       /* exited, and the devices are clean in the same report */
    },
    [AL_STOPPING] = {
        [AL_CLEANING] = true,
        [AL_LOST] = true,
        [AL_QUARANTINED] = true, /* survived SIGKILL */
        [AL_ENDED] = true,
    },
    [AL_CLEANING] = {
        [AL_ENDED] = true,
        [AL_QUARANTINED] = true, /* devices that cannot be verified clean */
    },
    [AL_LOST] = {
        [AL_RUNNING] = true,     /* on_contact_loss: keep; a new use begins with the return */
        [AL_CLEANING] = true,    /* the node is back and has ended the process */
        [AL_QUARANTINED] = true, /* the node is back and cannot end it */
        [AL_ENDED] = true,       /* not on the returned node, or a person confirmed it gone */
    },
    [AL_QUARANTINED] = {
        [AL_ENDED] = true, /* a person decided, or the process died after all */
    },
};

static const bool reservation_steps[RSV_STATE_COUNT][RSV_STATE_COUNT] = {
    [RSV_REQUESTED] = {
        [RSV_CONFIRMED] = true,
        [RSV_DEGRADED] = true,  /* confirmed by force, and there is too little */
        [RSV_CANCELLED] = true, /* also: nobody confirmed it in time */
    },
    [RSV_CONFIRMED] = {
        [RSV_ACTIVE] = true,    /* a window opens */
        [RSV_DEGRADED] = true,  /* some of it is missing, now or for the window to come */
        [RSV_COMPLETED] = true, /* its last window passed while the controller was away */
        [RSV_RELEASED] = true,
        [RSV_CANCELLED] = true,
    },
    [RSV_ACTIVE] = {
        [RSV_DEGRADED] = true,
        [RSV_CONFIRMED] = true, /* the window is over, and there is another */
        [RSV_COMPLETED] = true,
        [RSV_RELEASED] = true,
        [RSV_CANCELLED] = true,
    },
    [RSV_DEGRADED] = {
        [RSV_ACTIVE] = true,    /* what was missing is replaced */
        [RSV_CONFIRMED] = true,
        [RSV_COMPLETED] = true,
        [RSV_RELEASED] = true,
        [RSV_CANCELLED] = true,
    },
};

static const bool change_steps[CHG_STATE_COUNT][CHG_STATE_COUNT] = {
    [CHG_SCHEDULED] = {
        [CHG_ACTIVE] = true,
        [CHG_EXPIRED] = true, /* its last window passed while the controller was away */
        [CHG_REVERTED] = true,
        [CHG_FAILED] = true,
    },
    [CHG_ACTIVE] = {
        [CHG_SCHEDULED] = true, /* a window is over, and there is another */
        [CHG_EXPIRED] = true,
        [CHG_REVERTED] = true,
        [CHG_SETTLED] = true,
    },
};
/* clang-format on */

bool workload_may_become(enum workload_state from, enum workload_state to)
{
    return from < WL_STATE_COUNT && to < WL_STATE_COUNT && workload_steps[from][to];
}

bool allocation_may_become(enum allocation_state from, enum allocation_state to)
{
    return from < AL_STATE_COUNT && to < AL_STATE_COUNT && allocation_steps[from][to];
}

bool reservation_may_become(enum reservation_state from, enum reservation_state to)
{
    return from < RSV_STATE_COUNT && to < RSV_STATE_COUNT && reservation_steps[from][to];
}

bool change_may_become(enum change_state from, enum change_state to)
{
    return from < CHG_STATE_COUNT && to < CHG_STATE_COUNT && change_steps[from][to];
}
