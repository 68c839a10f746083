/* when.h - windows of local time as people ask for them: checked, and as the rule that is kept. */
#ifndef CORE_WHEN_H
#define CORE_WHEN_H

#include "core/decide.h"

enum { WHEN_YEAR_S = 366 * 86400 };

/* What was asked for, and what its fields are called there. */
struct when_spec {
    struct str zone, zone_rule;
    struct str start, end, until;
    const char *start_name, *end_name, *until_name;
    int64_t duration_s, every, interval; /* UNSET: not given */
    bool may_be_now;                     /* without a start it begins now */
    bool may_be_open;                    /* without an end it is for good */
};

/* The rule. `zone` and `zone_rule` are as base/zone.h has them. */
struct when {
    struct str zone, zone_rule;
    int64_t start_s, end_s; /* struct local; end 0: for good */
    enum repeat repeat;
    int64_t interval;
    int64_t until_s;
    struct window window; /* the open one, or the first; its end 0: for good */
};

enum err when_fill(const struct when_spec *spec, struct wall now, struct when *out, struct error *e)
    MUST_CHECK;

#endif
