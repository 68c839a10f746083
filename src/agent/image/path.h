/* path.h - paths of our own making: bounded, and deleted with all that is below. */
#ifndef AGENT_IMAGE_PATH_H
#define AGENT_IMAGE_PATH_H

#include <limits.h>

#include "base/error.h"

/* ERR_LIMIT when it does not fit; `out` is cut then. */
MUST_CHECK enum err path_format(char out[PATH_MAX], struct error *e, const char *fmt, ...)
    PRINTF(3, 4);

/* Deletes a directory of ours. Follows no link and crosses no mount; nobody else may be at work in
 * there. What cannot be deleted stays, for whoever cleans up next. Nothing there is fine. */
void remove_tree(const char *path);

#endif
