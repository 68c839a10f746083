#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct str str_of(const char *text)
{
    return text == NULL ? (struct str){ 0 } : (struct str){ text, strlen(text) };
}

bool str_eq(struct str a, struct str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool str_is(struct str a, const char *text)
{
    return str_eq(a, str_of(text));
}

int str_cmp(struct str a, struct str b)
{
    size_t common = MIN_OF(a.size, b.size);
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    if (order != 0)
        return order;
    return (a.size > b.size) - (a.size < b.size);
}

bool str_starts(struct str a, struct str prefix)
{
    return a.size >= prefix.size && str_eq((struct str){ a.data, prefix.size }, prefix);
}

struct str str_copy(struct arena *arena, struct str s)
{
    return (struct str){ arena_dup(arena, s.data, s.size), s.size };
}

const char *str_c(struct arena *arena, struct str s)
{
    return arena_dup(arena, s.data, s.size);
}

struct str str_cut(struct str *rest, char sep)
{
    const char *at = rest->size > 0 ? memchr(rest->data, sep, rest->size) : NULL;
    struct str head = *rest;
    if (at == NULL) {
        *rest = (struct str){ 0 };
        return head;
    }
    head.size = (size_t)(at - rest->data);
    *rest = (struct str){ at + 1, rest->size - head.size - 1 };
    return head;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool str_to_i64(struct str s, int64_t min, int64_t max, int64_t *out)
{
    size_t i = 0;
    bool negative = s.size > 0 && s.data[0] == '-';
    if (negative)
        i = 1;
    if (i == s.size)
        return false;
    int64_t value = 0;
    for (; i < s.size; i++) {
        if (!is_digit(s.data[i]))
            return false;
        int64_t digit = s.data[i] - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false; /* accumulated as a negative number, which reaches INT64_MIN */
    }
    if (!negative && __builtin_mul_overflow(value, (int64_t)-1, &value))
        return false;
    if (value < min || value > max)
        return false;
    *out = value;
    return true;
}

bool str_to_milli(struct str s, int64_t max_milli, int64_t *out)
{
    struct str rest = s;
    struct str whole = str_cut(&rest, '.');
    bool has_point = whole.size < s.size;
    int64_t units = 0;
    int64_t thousandths = 0;

    if (!str_to_i64(whole, 0, max_milli / 1000, &units))
        return false;
    if (has_point && (rest.size < 1 || rest.size > 3 || !str_to_i64(rest, 0, 999, &thousandths)))
        return false;
    for (size_t places = rest.size; has_point && places < 3; places++)
        thousandths *= 10;
    int64_t value = units * 1000 + thousandths;
    if (value > max_milli)
        return false;
    *out = value;
    return true;
}

const char *milli_text(int64_t milli, char out[MILLI_TEXT_MAX])
{
    if (milli % 1000 == 0)
        (void)snprintf(out, MILLI_TEXT_MAX, "%lld", (long long)(milli / 1000));
    else
        (void)snprintf(out, MILLI_TEXT_MAX, "%lld.%03lld", (long long)(milli / 1000),
                       (long long)(milli % 1000));
    return out;
}

static int64_t unit_seconds(char unit)
{
    switch (unit) {
    case 's':
        return 1;
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 86400;
    default:
        return 0;
    }
}

bool str_to_seconds(struct str s, int64_t max_s, int64_t *out)
{
    if (str_to_i64(s, 0, max_s, out))
        return true;

    int64_t total = 0;
    int64_t last_unit = INT64_MAX;
    size_t i = 0;
    while (i < s.size) {
        size_t start = i;
        while (i < s.size && is_digit(s.data[i]))
            i++;
        int64_t value = 0;
        int64_t unit = i < s.size ? unit_seconds(s.data[i]) : 0;
        if (unit == 0 || unit >= last_unit ||
            !str_to_i64((struct str){ s.data + start, i - start }, 0, max_s / unit, &value))
            return false;
        total += value * unit;
        if (total > max_s)
            return false;
        last_unit = unit;
        i++;
    }
    if (s.size == 0)
        return false;
    *out = total;
    return true;
}

/* Length of the well-formed UTF-8 sequence at `p` (RFC 3629, no overlong, no surrogate), or 0. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    unsigned char c = p[0];
    if (c < 0x80)
        return 1;
    size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || left < length)
        return 0;
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    return length;
}

bool str_is_utf8(struct str s)
{
    size_t i = 0;
    while (i < s.size) {
        size_t length = utf8_length((const unsigned char *)s.data + i, s.size - i);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

bool str_is_text(struct str s)
{
    size_t i = 0;
    while (i < s.size) {
        unsigned char c = (unsigned char)s.data[i];
        if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
            return false;
        size_t length = utf8_length((const unsigned char *)s.data + i, s.size - i);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

void buf_reserve(struct buf *buf, size_t more)
{
    size_t want = 0;
    bool is_too_large = __builtin_add_overflow(buf->size, more, &want);
    assert(!is_too_large);
    want++;
    if (want <= buf->capacity)
        return;
    size_t capacity = MAX_OF(buf->capacity * 2, (size_t)64);
    buf->capacity = MAX_OF(capacity, want);
    buf->data = mem_resize(buf->data, buf->capacity, 1);
}

void buf_add(struct buf *buf, const void *bytes, size_t size)
{
    buf_reserve(buf, size);
    if (size > 0)
        memcpy(buf->data + buf->size, bytes, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void buf_add_str(struct buf *buf, struct str s)
{
    buf_add(buf, s.data, s.size);
}

void buf_add_text(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_format(struct buf *buf, const char *fmt, ...)
{
    va_list args;
    va_list again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(length >= 0);
    buf_reserve(buf, (size_t)length);
    (void)vsnprintf(buf->data + buf->size, (size_t)length + 1, fmt, again);
    va_end(again);
    buf->size += (size_t)length;
}

void buf_consume(struct buf *buf, size_t size)
{
    assert(size <= buf->size);
    if (size == 0)
        return;
    buf->size -= size;
    memmove(buf->data, buf->data + size, buf->size);
    buf->data[buf->size] = '\0';
}

void buf_clear(struct buf *buf)
{
    buf->size = 0;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

struct str buf_str(const struct buf *buf)
{
    return (struct str){ buf->data, buf->size };
}

void buf_done(struct buf *buf)
{
    mem_free(buf->data);
    *buf = (struct buf){ 0 };
}

void hex_encode(const uint8_t *bytes, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * size] = '\0';
}

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One spelling a value: ids and digests are compared as text, too. */
static int lower_hex_digit(char c)
{
    return c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
}

bool hex_decode(struct str text, uint8_t *out, size_t size)
{
    if (text.size != 2 * size)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (lower_hex_digit(text.data[i]) < 0)
            return false;
    }
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(hex_digit(text.data[2 * i]) * 16 + hex_digit(text.data[2 * i + 1]));
    return true;
}
