/* library.h - a vendor's library, loaded while running. */
#ifndef AGENT_GPU_LIBRARY_H
#define AGENT_GPU_LIBRARY_H

#include "base/error.h"

struct library_symbol {
    const char *name;
    size_t offset; /* of a function pointer in the table of functions */
    bool is_required;
};

/* Tries the names in turn and fills the table; what is not required and missing is NULL there.
 * ERR_UNAVAILABLE: there is no such library, or it lacks what is required. */
MUST_CHECK enum err library_open(void **handle, const char *const *names, size_t name_count,
                                 struct error *e);
MUST_CHECK enum err library_find(void *handle, const struct library_symbol *symbols, size_t count,
                                 void *table, struct error *e);
void library_close(void *handle); /* NULL is a no-op */
DEFINE_CLEANUP(library, void *, library_close)

#endif
