/* event.c - the first byte picks the type, the rest is the body. */
#include <stdlib.h>

#include "wire/event_json.h"
#include "wire/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf first = { 0 };
    AUTO(buf) struct buf second = { 0 };
    AUTO(buf) struct buf shown = { 0 };
    if (size == 0)
        return 0;

    struct event event = { .type = (enum event_type)(data[0] % EV_TYPE_COUNT), .version = 1 };
    struct event copy = event;
    struct str body = { (const char *)data + 1, size - 1 };
    if (event_body_decode(body, &arena, &event, NULL) != ERR_OK)
        return 0;
    event_body_encode(&event, &first);
    if (event_body_decode(buf_str(&first), &arena, &copy, NULL) != ERR_OK)
        abort();
    event_body_encode(&copy, &second);
    if (!str_eq(buf_str(&first), buf_str(&second)))
        abort();
    feed_encode(&event, FEED_OPERATOR, NULL, &shown);
    return 0;
}
