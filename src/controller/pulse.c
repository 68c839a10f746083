#include "controller/pulse.h"

#include <stddef.h>

/* A turn is due every 10 s at least. A full pass over a million workloads takes seconds. */
enum { TURN_LATE_S = 30, PASS_LATE_S = 120 };

struct pulse pulse_start(struct mono now)
{
    return (struct pulse){ now, now };
}

void pulse_turned(struct pulse *pulse, struct mono now, bool more)
{
    pulse->turned = now;
    if (!more)
        pulse->passed = now;
}

const char *pulse_problem(const struct pulse *pulse, struct mono now)
{
    if (mono_before(mono_add_s(pulse->turned, TURN_LATE_S), now))
        return "the scheduler has stopped: it has made no decision for more than 30 s";
    if (mono_before(mono_add_s(pulse->passed, PASS_LATE_S), now))
        return "the scheduler is stuck: for more than 120 s it has come to no end";
    return NULL;
}
