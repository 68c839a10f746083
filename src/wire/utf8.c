#include "wire/utf8.h"

size_t utf8_length(const uint8_t *at, size_t left)
{
    uint8_t lead = at[0];
    size_t size = lead < 0x80 ? 1 : 0;
    uint8_t low = 0x80;
    uint8_t high = 0xbf;

    if (lead >= 0xc2 && lead <= 0xdf) {
        size = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        size = 3;
        low = lead == 0xe0 ? 0xa0 : low;
        high = lead == 0xed ? 0x9f : high; /* no surrogates */
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        size = 4;
        low = lead == 0xf0 ? 0x90 : low;
        high = lead == 0xf4 ? 0x8f : high; /* not beyond U+10FFFF */
    }
    if (size == 0 || size > left || (size > 1 && (at[1] < low || at[1] > high)))
        return 0;
    for (size_t i = 2; i < size; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return size;
}

/* Six bits of a continuation byte. */
static char tail(uint32_t point, unsigned shift)
{
    return (char)(uint8_t)(0x80 | (point >> shift & 0x3f));
}

size_t utf8_put(uint32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(uint8_t)(0xc0 | point >> 6);
        out[1] = tail(point, 0);
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(uint8_t)(0xe0 | point >> 12);
        out[1] = tail(point, 6);
        out[2] = tail(point, 0);
        return 3;
    }
    out[0] = (char)(uint8_t)(0xf0 | point >> 18);
    out[1] = tail(point, 12);
    out[2] = tail(point, 6);
    out[3] = tail(point, 0);
    return 4;
}
