#include "model/cause.h"

#include "model/kinds.h"

static const char *const causes[CAUSE_COUNT] = {
    [CAUSE_WAITING_FOR_QUOTA] = "waiting_for_quota",
    [CAUSE_WAITING_FOR_CAPACITY] = "waiting_for_capacity",
    [CAUSE_WAITING_FOR_GANG] = "waiting_for_gang",
    [CAUSE_WAITING_FOR_TOPOLOGY] = "waiting_for_topology",
    [CAUSE_WAITING_FOR_RESERVATION] = "waiting_for_reservation",
    [CAUSE_WAITING_FOR_BUDGET] = "waiting_for_budget",
    [CAUSE_WAITING_FOR_PROVISION] = "waiting_for_provision",
    [CAUSE_WAITING_FOR_VICTIMS] = "waiting_for_victims",
    [CAUSE_WAITING_FOR_BACKOFF] = "waiting_for_backoff",
    [CAUSE_WAITING_FOR_DEPENDENCY] = "waiting_for_dependency",
    [CAUSE_EXCEEDS_LIMIT] = "exceeds_limit",
    [CAUSE_NO_MATCHING_CLASS] = "no_matching_class",
    [CAUSE_NOT_PERMITTED] = "not_permitted",
    [CAUSE_HELD] = "held",
    [CAUSE_MISCONFIGURED] = "misconfigured",
    [CAUSE_GRANTED] = "granted",
    [CAUSE_STARTED] = "started",
    [CAUSE_RECLAIMED_FOR_QUOTA] = "reclaimed_for_quota",
    [CAUSE_RECLAIMED_FOR_SHARE] = "reclaimed_for_share",
    [CAUSE_RECLAIMED_FOR_RESERVATION] = "reclaimed_for_reservation",
    [CAUSE_PREEMPTED_BY_PRIORITY] = "preempted_by_priority",
    [CAUSE_CONSOLIDATED] = "consolidated",
    [CAUSE_DRAINED] = "drained",
    [CAUSE_NODE_FAILURE] = "node_failure",
    [CAUSE_DEVICE_FAILURE] = "device_failure",
    [CAUSE_RESERVATION_ENDED] = "reservation_ended",
    [CAUSE_BUDGET_EXHAUSTED] = "budget_exhausted",
    [CAUSE_TIME_LIMIT] = "time_limit",
    [CAUSE_IDLE_TIMEOUT] = "idle_timeout",
    [CAUSE_START_TIMEOUT] = "start_timeout",
    [CAUSE_STALE_GANG] = "stale_gang",
    [CAUSE_DEPENDENCY_FAILED] = "dependency_failed",
    [CAUSE_NOT_NEEDED] = "not_needed",
    [CAUSE_USER_CANCELLED] = "user_cancelled",
    [CAUSE_ADMIN_CANCELLED] = "admin_cancelled",
    [CAUSE_USER_REQUEUED] = "user_requeued",
    [CAUSE_SPOT_RECLAIMED] = "spot_reclaimed",
    [CAUSE_EXITED] = "exited",
    [CAUSE_FAILED] = "failed",
    [CAUSE_OUT_OF_MEMORY] = "out_of_memory",
    [CAUSE_INVALID] = "invalid",
    [CAUSE_NOT_FOUND] = "not_found",
    [CAUSE_CONFLICT] = "conflict",
    [CAUSE_OVERCOMMITTED] = "overcommitted",
    [CAUSE_OVERLAPS_RESERVATION] = "overlaps_reservation",
    [CAUSE_UNAUTHENTICATED] = "unauthenticated",
    [CAUSE_RATE_LIMITED] = "rate_limited",
    [CAUSE_UNAVAILABLE] = "unavailable",
};

const struct enum_names cause_names = { "cause", causes, COUNT_OF(causes) };

static const char *const meanings[CAUSE_COUNT] = {
    [CAUSE_NONE] = "",
    [CAUSE_WAITING_FOR_QUOTA] =
        "The project uses all it may now; work of its own has to end, or its quota has to grow.",
    [CAUSE_WAITING_FOR_CAPACITY] =
        "No node has enough free devices, cores or memory; it starts when other work ends.",
    [CAUSE_WAITING_FOR_GANG] =
        "All members start together, and room was found for only some of them so far.",
    [CAUSE_WAITING_FOR_TOPOLOGY] =
        "There is room, but not close enough together; ask for less locality or wait.",
    [CAUSE_WAITING_FOR_RESERVATION] =
        "Its own reservation is not open, or what it could use is kept for another's.",
    [CAUSE_WAITING_FOR_BUDGET] =
        "The budget of the project is spent; raise it or wait for the next period.",
    [CAUSE_WAITING_FOR_PROVISION] =
        "Nodes are being made for it at a site; this takes minutes and needs nothing from you.",
    [CAUSE_WAITING_FOR_VICTIMS] =
        "Other work was told to stop for it and is still in its grace time.",
    [CAUSE_WAITING_FOR_BACKOFF] =
        "It failed before and is tried again after a pause; release it to try at once.",
    [CAUSE_WAITING_FOR_DEPENDENCY] =
        "It starts after the workloads it depends on have ended as it asked.",
    [CAUSE_EXCEEDS_LIMIT] =
        "It asks for more than the limit of its project or than any node has; ask for less.",
    [CAUSE_NO_MATCHING_CLASS] =
        "No class of devices has what it asks for; see the classes and change the request.",
    [CAUSE_NOT_PERMITTED] =
        "The role of the caller does not allow this; ask an administrator for the right.",
    [CAUSE_HELD] = "Somebody put it on hold; release it to let it continue.",
    [CAUSE_MISCONFIGURED] =
        "The installation contradicts itself here; an operator finds the place with the doctor.",
    [CAUSE_GRANTED] =
        "It has all that it asked for, and its nodes are starting its processes; a deadline holds.",
    [CAUSE_STARTED] = "All its members run; it goes on until they end or something stops them.",
    [CAUSE_RECLAIMED_FOR_QUOTA] =
        "It ran on quota lent by another project, which needed it back; it waits in the queue.",
    [CAUSE_RECLAIMED_FOR_SHARE] =
        "Its project ran above its fair share and another below; it waits in the queue.",
    [CAUSE_RECLAIMED_FOR_RESERVATION] =
        "A reservation began on the devices it used; it waits in the queue.",
    [CAUSE_PREEMPTED_BY_PRIORITY] =
        "Work of higher priority in the same project took its place; it waits in the queue.",
    [CAUSE_CONSOLIDATED] =
        "It was moved so that other work fits, and starts again without losing its place.",
    [CAUSE_DRAINED] = "Its node was emptied for maintenance; it starts again elsewhere.",
    [CAUSE_NODE_FAILURE] = "Contact to its node was lost; this does not use up a retry.",
    [CAUSE_DEVICE_FAILURE] = "A device it used failed; this does not use up a retry.",
    [CAUSE_RESERVATION_ENDED] = "The window of its reservation is over.",
    [CAUSE_BUDGET_EXHAUSTED] = "The budget of its project ran out while it was running.",
    [CAUSE_TIME_LIMIT] =
        "It ran longer than its time limit; submit it with a longer one if it needs that.",
    [CAUSE_IDLE_TIMEOUT] = "It did nothing for longer than its idle limit.",
    [CAUSE_START_TIMEOUT] =
        "Its processes were not running in time; the node or the image is too slow or broken.",
    [CAUSE_STALE_GANG] = "Members were lost and could not be replaced in time.",
    [CAUSE_DEPENDENCY_FAILED] =
        "A workload it depends on ended otherwise than it asked, so it can never start.",
    [CAUSE_NOT_NEEDED] =
        "It was to run only if other work failed, which did not happen; nothing is wrong.",
    [CAUSE_USER_CANCELLED] = "Somebody of its tenant cancelled it.",
    [CAUSE_ADMIN_CANCELLED] = "An administrator cancelled it.",
    [CAUSE_USER_REQUEUED] = "Somebody sent it back to the queue to start again.",
    [CAUSE_SPOT_RECLAIMED] = "The cloud took the machine back; it starts again elsewhere.",
    [CAUSE_EXITED] = "Its processes ended by themselves.",
    [CAUSE_FAILED] = "Its processes ended with an error, or could not be started; see the log.",
    [CAUSE_OUT_OF_MEMORY] =
        "It used more memory than it asked for and was ended; submit it with more memory.",
    [CAUSE_INVALID] = "The request is wrong in the field named; correct it and send it again.",
    [CAUSE_NOT_FOUND] = "There is no such object, or it is not yours.",
    [CAUSE_CONFLICT] =
        "The object is not in a state that allows this, or has changed since it was read.",
    [CAUSE_OVERCOMMITTED] =
        "Quotas would add up to more than there is; lower others or force it, which is shown.",
    [CAUSE_OVERLAPS_RESERVATION] = "Another reservation has these devices in that window.",
    [CAUSE_UNAUTHENTICATED] = "No valid token came with the request; log in or set one.",
    [CAUSE_RATE_LIMITED] = "Too many requests; slow down and try again after the time given.",
    [CAUSE_UNAVAILABLE] = "The controller cannot do this now; try again.",
};

const char *cause_name(enum cause cause)
{
    return enum_name(&cause_names, cause);
}

bool cause_parse(struct str text, enum cause *out)
{
    unsigned value = 0;
    if (!enum_parse(&cause_names, text, &value))
        return false;
    *out = (enum cause)value;
    return true;
}

const char *cause_meaning(enum cause cause)
{
    return cause < CAUSE_COUNT ? meanings[cause] : "";
}

bool cause_is_usual(enum cause cause)
{
    return cause == CAUSE_GRANTED || cause == CAUSE_STARTED;
}

bool cause_is_of_system(enum cause cause)
{
    static const bool is_of_system[CAUSE_COUNT] = {
        [CAUSE_RECLAIMED_FOR_QUOTA] = true,
        [CAUSE_RECLAIMED_FOR_SHARE] = true,
        [CAUSE_RECLAIMED_FOR_RESERVATION] = true,
        [CAUSE_PREEMPTED_BY_PRIORITY] = true,
        [CAUSE_CONSOLIDATED] = true,
        [CAUSE_DRAINED] = true,
        [CAUSE_NODE_FAILURE] = true,
        [CAUSE_DEVICE_FAILURE] = true,
        [CAUSE_RESERVATION_ENDED] = true,
        [CAUSE_BUDGET_EXHAUSTED] = true,
        [CAUSE_TIME_LIMIT] = true,
        [CAUSE_IDLE_TIMEOUT] = true,
        [CAUSE_START_TIMEOUT] = true,
        [CAUSE_STALE_GANG] = true,
        [CAUSE_ADMIN_CANCELLED] = true,
        [CAUSE_SPOT_RECLAIMED] = true,
        [CAUSE_OUT_OF_MEMORY] = true,
    };
    return cause < CAUSE_COUNT && is_of_system[cause];
}
