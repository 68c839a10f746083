#include "cli/safe.h"

#include <assert.h>
#include <string.h>

#include "wire/utf8.h"

enum { SEQUENCE_MAX = 4 };

static const uint8_t *bytes_at(struct str text)
{
    return (const uint8_t *)text.data;
}

/* Of a valid sequence. */
static uint32_t point_of(const uint8_t *at, size_t size)
{
    static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t point = at[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        point = point << 6 | (at[i] & 0x3f);
    return point;
}

static bool is_harmless(uint32_t point)
{
    bool is_control = point < 0x20 || (point >= 0x7f && point <= 0x9f);
    bool turns_direction =
        (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
    return !is_control && !turns_direction;
}

/* Could more bytes make a character of these, or a line end of a carriage return? */
static bool is_unfinished(struct str text)
{
    uint8_t padded[SEQUENCE_MAX];
    if (text.size >= SEQUENCE_MAX || text.data[0] == '\r')
        return text.size == 1;
    memset(padded, 0x80, sizeof(padded));
    memcpy(padded, text.data, text.size);
    if (text.size == 1) /* any second byte that the first one allows */
        padded[1] = padded[0] == 0xe0 ? 0xa0 : padded[0] == 0xf0 ? 0x90 : 0x80;
    return utf8_length(padded, sizeof(padded)) > text.size;
}

static void escape(struct str bytes, struct buf *out)
{
    for (size_t i = 0; i < bytes.size; i++)
        buf_format(out, "\\x%02x", bytes_at(bytes)[i]);
}

/* Takes one character, or one byte that is none, off the front. */
static struct str unit_take(struct str *text, bool *is_character)
{
    size_t size = utf8_length(bytes_at(*text), text->size);
    struct str unit = { text->data, MAX_OF(size, (size_t)1) };
    *is_character = size > 0;
    text->data += unit.size;
    text->size -= unit.size;
    return unit;
}

static bool may_stay(struct str unit, struct str rest)
{
    char c = unit.data[0];
    bool ends_line = c == '\n' || (c == '\r' && rest.size > 0 && rest.data[0] == '\n');
    return ends_line || c == '\t' || is_harmless(point_of(bytes_at(unit), unit.size));
}

/* As much as can be judged without what may follow; that many bytes are taken. */
static size_t add_judged(struct str text, struct buf *out)
{
    struct str rest = text;
    while (rest.size > 0 && !is_unfinished(rest)) {
        bool is_character = false;
        struct str unit = unit_take(&rest, &is_character);
        if (is_character && may_stay(unit, rest))
            buf_add_str(out, unit);
        else
            escape(unit, out);
    }
    return text.size - rest.size;
}

void safe_add(struct safe_stream *stream, struct str bytes, struct buf *out)
{
    /* At most three bytes are held: they are judged with as many of the new ones as that takes. */
    while (stream->held_size > 0 && bytes.size > 0) {
        stream->held[stream->held_size++] = bytes.data[0];
        bytes.data++;
        bytes.size--;
        size_t used = add_judged((struct str){ stream->held, stream->held_size }, out);
        stream->held_size -= used;
        memmove(stream->held, stream->held + used, stream->held_size);
    }
    size_t used = add_judged(bytes, out);
    assert(bytes.size - used < SEQUENCE_MAX);
    memcpy(stream->held + stream->held_size, bytes.data + used, bytes.size - used);
    stream->held_size += bytes.size - used;
}

void safe_end(struct safe_stream *stream, struct buf *out)
{
    escape((struct str){ stream->held, stream->held_size }, out);
    stream->held_size = 0;
}

void safe_lines(struct str text, struct buf *out)
{
    struct safe_stream stream = { 0 };
    safe_add(&stream, text, out);
    safe_end(&stream, out);
}

void safe_line(struct str text, struct buf *out)
{
    while (text.size > 0) {
        bool is_character = false;
        struct str unit = unit_take(&text, &is_character);
        if (is_character && is_harmless(point_of(bytes_at(unit), unit.size)))
            buf_add_str(out, unit);
        else
            escape(unit, out);
    }
}

void safe_json(struct str text, struct buf *out)
{
    while (text.size > 0) {
        bool is_character = false;
        struct str unit = unit_take(&text, &is_character);
        uint32_t point = is_character ? point_of(bytes_at(unit), unit.size) : 0xfffd;
        /* Below 0x20 there is only layout: in its texts JSON has escaped them. */
        if (is_character && (point < 0x20 || is_harmless(point)))
            buf_add_str(out, unit);
        else
            buf_format(out, "\\u%04x", point);
    }
}
