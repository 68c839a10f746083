/* utf8.h - sequences of UTF-8, for the JSON writer and reader. */
#ifndef WIRE_UTF8_H
#define WIRE_UTF8_H

#include "base/base.h"

/* Length of the valid sequence at `at`; 0: there is none. */
size_t utf8_length(const uint8_t *at, size_t left);
/* Writes a code point below 0x110000 that is no surrogate; 1..4 bytes. */
size_t utf8_put(uint32_t point, char *out);

#endif
