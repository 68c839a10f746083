/* print.c - prints what other validators read: `print openapi`, `print metrics`. */
#include <string.h>

#include "unit/api/world.h"
#include "unit/test.h"

int main(int argc, char **argv)
{
    AUTO(buf) struct buf text = { 0 };

    if (argc == 2 && strcmp(argv[1], "openapi") == 0) {
        api_openapi(STR("0.1.0"), &text);
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
