/* zone_file.h - the system's table of time zones: from a name to a rule that base/zone.h reads. */
#ifndef OS_ZONE_FILE_H
#define OS_ZONE_FILE_H

#include "base/timepoint.h"
#include "base/zone.h"

/*
 * Appends the rule of "Europe/Berlin" to `out`, as the system knows it: good for about three years
 * from `around`. "UTC" needs no table. ERR_NOT_FOUND: the system knows no such zone. ERR_INVALID:
 * no name, or a table that cannot be read.
 */
enum err zone_file_rule(struct str name, struct wall around, struct buf *out, struct error *e)
    MUST_CHECK;

#endif
