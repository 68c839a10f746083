/* lz.c - packed bytes as a damaged file has them, and whether what is packed comes back. */
#include "store/lz.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_BYTES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The size that is asked for, then packed bytes. */
static void unpack(struct str input)
{
    uint32_t raw_size = 0;
    struct error e = { 0 };
    AUTO(buf) struct buf out = { 0 };
    if (input.size < SIZE_BYTES)
        return;
    memcpy(&raw_size, input.data, SIZE_BYTES);
    buf_add_text(&out, "before");
    struct str packed = { input.data + SIZE_BYTES, input.size - SIZE_BYTES };
    enum err rc = lz_unpack(packed, raw_size, &out, &e);
    if (rc == ERR_OK ? out.size != raw_size : !str_is(buf_str(&out), "before"))
        abort();
}

static void there_and_back(struct str raw)
{
    struct error e = { 0 };
    AUTO(buf) struct buf packed = { 0 };
    AUTO(buf) struct buf again = { 0 };
    lz_pack(raw, &packed);
    if (lz_unpack(buf_str(&packed), raw.size, &again, &e) != ERR_OK ||
        !str_eq(buf_str(&again), raw))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = { (const char *)data, size };
    unpack(input);
    there_and_back(input);
    return 0;
}
