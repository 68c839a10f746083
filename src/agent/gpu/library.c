#include "agent/gpu/library.h"

#include <dlfcn.h>
#include <string.h>

enum err library_open(void **handle, const char *const *names, size_t name_count, struct error *e)
{
    for (size_t i = 0; i < name_count; i++) {
        void *found = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (found != NULL) {
            *handle = found;
            return ERR_OK;
        }
    }
    return err_set(e, ERR_UNAVAILABLE, "there is no %s on this node", names[0]);
}

enum err library_find(void *handle, const struct library_symbol *symbols, size_t count, void *table,
                      struct error *e)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (symbol == NULL && symbols[i].is_required)
            return err_set(e, ERR_UNAVAILABLE, "the library lacks %s: it is too old",
                           symbols[i].name);
        /* POSIX lets a function's address pass through a void *, C does not: hence by bytes. */
        memcpy((char *)table + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return ERR_OK;
}

void library_close(void *handle)
{
    if (handle != NULL)
        (void)dlclose(handle); /* a library that does not want to go stays */
}
