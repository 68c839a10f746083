/* message.c - the first byte picks the type of a message, the rest is what came over the link. */
#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf out = { 0 };
    if (size == 0)
        return 0;

    enum message_type type = (enum message_type)data[0];
    struct str bytes = { (const char *)data + 1, size - 1 };
    const struct schema *schema = message_schema(type);
    struct desired_message desired;
    struct stream_header header = { 0 };
    struct channel_frame frame;
    bool is_complete = false;

    if (schema != NULL) {
        void *message = arena_new(&arena, 1, schema->size);
        if (message_decode(type, bytes, &arena, message, NULL) == ERR_OK)
            message_encode(type, message, &out);
        return 0;
    }
    if (desired_decode(bytes, &arena, &desired, NULL) == ERR_OK)
        desired_encode(&desired, &out);
    (void)!stream_header_decode(bytes, &arena, &header, NULL);
    while (channel_decode(&bytes, &frame, &is_complete, NULL) == ERR_OK && is_complete)
        ;
    return 0;
}
