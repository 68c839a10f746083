#include "net/egress.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { OWN_ARGUMENTS = 3 };

enum err egress_find(struct arena *arena, const char **out, struct error *e)
{
    static const char *const usual[] = { "/usr/libexec/berth/berth-egress",
                                         "/usr/local/libexec/berth/berth-egress" };
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self));
    const char *slash = size > 0 ? memrchr(self, '/', (size_t)size) : NULL;
    if (slash != NULL) {
        const char *beside = arena_format(arena, "%.*s/berth-egress", (int)(slash - self), self);
        if (access(beside, X_OK) == 0) {
            *out = beside;
            return ERR_OK;
        }
    }
    for (size_t i = 0; i < COUNT_OF(usual); i++) {
        if (access(usual[i], X_OK) == 0) {
            *out = usual[i];
            return ERR_OK;
        }
    }
    return err_set(e, ERR_NOT_FOUND,
                   "berth-egress is neither beside this program nor in /usr/libexec/berth");
}

const char *const *egress_argv(const char *program, enum reach reach, struct str host,
                               const char *const *argv, struct arena *arena)
{
    size_t count = 0;
    while (argv[count] != NULL)
        count++;
    const char **all = arena_new(arena, OWN_ARGUMENTS + count + 1, sizeof(*all));
    all[0] = program;
    all[1] = reach_name(reach);
    all[2] = str_c(arena, host);
    memcpy(&all[OWN_ARGUMENTS], argv, (count + 1) * sizeof(*all));
    return all;
}
