/* print.c - prints what other validators read: `print openapi`, `print metrics`, `print causes`. */
#include <string.h>

#include "model/cause.h"
#include "unit/api/world.h"
#include "unit/test.h"

/* The groups of cause.h, in its order. */
static const struct {
    enum cause first;
    const char *name;
} groups[] = {
    { CAUSE_WAITING_FOR_QUOTA, "Waiting" },
    { CAUSE_GRANTED, "Starting and running" },
    { CAUSE_RECLAIMED_FOR_QUOTA, "Evictions and ends" },
    { CAUSE_INVALID, "Refusals" },
};

static void print_causes(struct buf *out)
{
    size_t group = 0;
    for (unsigned c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        if (group + 1 < COUNT_OF(groups) && c == groups[group + 1].first)
            group++;
        buf_format(out, "%s\t%s\t%s\n", groups[group].name, cause_name((enum cause)c),
                   cause_meaning((enum cause)c));
    }
}

int main(int argc, char **argv)
{
    AUTO(buf) struct buf text = { 0 };

    if (argc == 2 && strcmp(argv[1], "openapi") == 0) {
        api_openapi(STR("0.1.0"), &text);
    } else if (argc == 2 && strcmp(argv[1], "causes") == 0) {
        print_causes(&text);
    } else if (argc == 2 && strcmp(argv[1], "metrics") == 0) {
        AUTO(world) struct world world = { 0 };
        world_init(&world);
        if (world_get(&world, "/metrics") != 200)
            return 1;
        buf_add_str(&text, buf_str(&world.answer.body));
    } else {
        return 2;
    }
    return fwrite(text.data, 1, text.size, stdout) == text.size ? 0 : 1;
}
