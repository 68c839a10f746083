/*
 * http_fuzz.c - heads and chunked bodies out of arbitrary bytes, arriving in two pieces.
 *
 * Beyond "does not crash": reading in pieces gives what reading at once gives, and
 * whatever is accepted keeps the promises of http.h about targets and framing. Not part
 * of the build (clang only):
 *
 *     clang -std=gnu17 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Isrc \
 *         tests/fuzz/http_fuzz.c src/net/http_head.c src/net/http_chunk.c
 *         src/base/{error,mem,str}.c \ -lhttp_parser -o http_fuzz && ./http_fuzz
 *         -max_len=4096 -max_total_time=60
 */
#include <assert.h>
#include <string.h>

#include "net/http_chunk.h"
#include "net/http_head.h"

enum { BYTES_MAX = 2048, FIELDS_MAX = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_segment(struct str segment)
{
    assert(segment.size > 0 && !str_is(segment, ".") && !str_is(segment, ".."));
    assert(str_is_text(segment));
    for (size_t i = 0; i < segment.size; i++)
        assert(strchr("/\\;\n\t", segment.data[i]) == NULL);
}

static void check_head(const struct http_head *head)
{
    for (size_t i = 0; i < head->segments.count; i++)
        check_segment(head->segments.items[i]);
    for (size_t i = 0; i < head->query.count; i++)
        assert(str_is_text(head->query.items[i].name) && str_is_text(head->query.items[i].value));
    for (size_t i = 0; i < head->fields.count; i++) {
        struct str name = head->fields.items[i].name;
        assert(name.size > 0 && memchr(name.data, ' ', name.size) == NULL);
    }
    bool has_length = http_head_field(head, "content-length").data != NULL;
    bool has_encoding = http_head_field(head, "transfer-encoding").data != NULL;
    assert(!(has_length && has_encoding));
    assert(has_encoding == (head->framing == HTTP_FRAMING_CHUNKED));
    assert(http_head_field(head, "host").size > 0);
}

/* Returns the size of the head, 0 when there is none. */
static size_t fuzz_head(struct str data, size_t first)
{
    struct http_scan whole = { 0 };
    struct http_scan pieces = { 0 };
    struct http_refusal refusal = { 0 };
    struct http_refusal refusal_of_pieces = { 0 };
    size_t size = http_head_scan(&whole, data, BYTES_MAX, FIELDS_MAX, &refusal);
    size_t again = http_head_scan(&pieces, (struct str){ data.data, first }, BYTES_MAX, FIELDS_MAX,
                                  &refusal_of_pieces);
    if (again == 0 && refusal_of_pieces.status == 0)
        again = http_head_scan(&pieces, data, BYTES_MAX, FIELDS_MAX, &refusal_of_pieces);
    assert(again == size && refusal.status == refusal_of_pieces.status);
    if (size == 0)
        return 0;
    struct http_head head = { 0 };
    if (http_head_parse(&head, (struct str){ data.data, size }, &refusal))
        check_head(&head);
    else
        assert(refusal.status >= 400);
    http_head_done(&head);
    return size;
}

static enum http_chunk_result read_chunks(struct http_chunk *chunk, struct str *data,
                                          struct buf *body)
{
    for (;;) {
        struct str out = { 0 };
        enum http_chunk_result result = http_chunk_next(chunk, data, &out);
        if (result != HTTP_CHUNK_BODY)
            return result;
        assert(out.size > 0);
        buf_add_str(body, out);
    }
}

static void fuzz_chunks(struct str data, size_t first)
{
    AUTO(buf) struct buf body = { 0 };
    AUTO(buf) struct buf body_of_pieces = { 0 };
    struct http_chunk whole = { 0 };
    struct http_chunk pieces = { 0 };
    struct str rest = data;
    struct str piece = { data.data, first };
    enum http_chunk_result result = read_chunks(&whole, &rest, &body);
    enum http_chunk_result again = read_chunks(&pieces, &piece, &body_of_pieces);
    if (again == HTTP_CHUNK_MORE) {
        assert(piece.size == 0);
        piece = (struct str){ data.data + first, data.size - first };
        again = read_chunks(&pieces, &piece, &body_of_pieces);
    }
    assert(result == again);
    assert(body.size == body_of_pieces.size &&
           (body.size == 0 || memcmp(body.data, body_of_pieces.data, body.size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 1)
        return 0;
    struct str data = { (const char *)bytes + 1, size - 1 };
    size_t first = data.size * bytes[0] / 255;
    size_t head = fuzz_head(data, first);
    struct str body = { data.data + head, data.size - head };
    fuzz_chunks(body, body.size * bytes[0] / 255);
    return 0;
}
