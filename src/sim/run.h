/* run.h - one scenario from its beginning to its end. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/scenario.h"

/*
 * `faults` gets a line, "# at 12s: ...", for all that was not as expected; empty: everything was.
 * `log`, if not NULL, gets all events as JSON lines. ERR_INVALID: the file asks for what cannot be,
 * with "LINE:COLUMN: ".
 */
enum err scenario_run(const struct scenario *scenario, struct arena *arena, struct buf *faults,
                      struct buf *log, struct error *e) MUST_CHECK;

#endif
