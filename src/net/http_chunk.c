#include "net/http_chunk.h"

enum { SIZE_DIGITS_MAX = 8 };

enum state {
    STATE_SIZE,
    STATE_SIZE_LF,
    STATE_BODY,
    STATE_BODY_CR,
    STATE_BODY_LF,
    STATE_END_CR,
    STATE_END_LF,
    STATE_ENDED,
    STATE_BAD
};

static enum state after_size_byte(struct http_chunk *chunk, char c)
{
    int digit = hex_digit(c);
    if (digit < 0)
        return c == '\r' && chunk->digits > 0 ? STATE_SIZE_LF : STATE_BAD;
    if (++chunk->digits > SIZE_DIGITS_MAX)
        return STATE_BAD;
    chunk->left = chunk->left * 16 + (unsigned)digit;
    return STATE_SIZE;
}

/* The state after one byte of framing. */
static enum state after_byte(struct http_chunk *chunk, char c)
{
    switch ((enum state)chunk->state) {
    case STATE_SIZE:
        return after_size_byte(chunk, c);
    case STATE_SIZE_LF:
        chunk->digits = 0;
        return c != '\n' ? STATE_BAD : chunk->left > 0 ? STATE_BODY : STATE_END_CR;
    case STATE_BODY_CR:
        return c == '\r' ? STATE_BODY_LF : STATE_BAD;
    case STATE_BODY_LF:
        return c == '\n' ? STATE_SIZE : STATE_BAD;
    case STATE_END_CR:
        return c == '\r' ? STATE_END_LF : STATE_BAD;
    case STATE_END_LF:
        return c == '\n' ? STATE_ENDED : STATE_BAD;
    case STATE_BODY:
    case STATE_ENDED:
    case STATE_BAD:
        break;
    }
    return STATE_BAD;
}

static void advance(struct str *data, size_t size)
{
    data->data += size;
    data->size -= size;
}

enum http_chunk_result http_chunk_next(struct http_chunk *chunk, struct str *data, struct str *out)
{
    while (data->size > 0 && chunk->state != STATE_BAD) {
        if (chunk->state == STATE_BODY) {
            *out = (struct str){ data->data, MIN_OF(data->size, (size_t)chunk->left) };
            advance(data, out->size);
            chunk->left -= out->size;
            if (chunk->left == 0)
                chunk->state = STATE_BODY_CR;
            return HTTP_CHUNK_BODY;
        }
        chunk->state = after_byte(chunk, data->data[0]);
        advance(data, 1);
        if (chunk->state == STATE_ENDED)
            return HTTP_CHUNK_END;
    }
    return chunk->state == STATE_BAD ? HTTP_CHUNK_BAD : HTTP_CHUNK_MORE;
}
