#include <string.h>

#include "base/base.h"
#include "sim/main.h"

struct word {
    const char *name;
    size_t offset;
};

#define WORD(field)                                                                                \
    {                                                                                              \
        "--" #field, offsetof(struct words, field)                                                 \
    }

static const struct word words[] = {
    WORD(nodes),      WORD(pods),   WORD(order),    WORD(inflate),   WORD(placement),
    WORD(placements), WORD(gpus),   WORD(projects), WORD(workloads), WORD(events),
    WORD(preset),     WORD(philly), WORD(policy),
};

bool words_read(int argc, char **argv, struct words *out)
{
    for (int i = 0; i < argc; i++) {
        const struct word *word = NULL;
        if (strcmp(argv[i], "--json") == 0) {
            out->is_json = true;
            continue;
        }
        for (size_t k = 0; k < COUNT_OF(words); k++)
            word = strcmp(argv[i], words[k].name) == 0 ? &words[k] : word;
        if (word == NULL || i + 1 == argc)
            return false;
        *(const char **)(void *)((char *)out + word->offset) = argv[++i];
    }
    return true;
}

bool words_has_trace(const struct words *w)
{
    return w->pods != NULL || w->order != NULL || w->inflate != NULL || w->placement != NULL ||
           w->placements != NULL || w->philly != NULL || w->policy != NULL;
}

bool words_has_bench(const struct words *w)
{
    bool is_made_up = w->projects != NULL || w->workloads != NULL || w->events != NULL;
    return is_made_up || w->preset != NULL || (w->gpus != NULL && w->philly == NULL);
}
