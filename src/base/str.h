/* str.h - slices of bytes that carry their length, a growable buffer, and bounded number
 * parsing. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/base.h"
#include "base/error.h"
#include "base/mem.h"

/* Borrowed bytes; not NUL-terminated. An all-zero struct is the empty string. */
struct str {
    const char *data;
    size_t size;
};

#define STR(literal) ((struct str){ (literal), sizeof(literal) - 1 })
/* For tables of constants, where ISO C allows no compound literal. */
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define STR_ARG(s) (int)(s).size, (s).data != NULL ? (s).data : ""

struct str str_of(const char *text); /* NULL gives the empty string */
bool str_eq(struct str a, struct str b);
bool str_is(struct str a, const char *text);
int str_cmp(struct str a, struct str b); /* bytewise; shorter first on a tie */
bool str_starts(struct str a, struct str prefix);
struct str str_copy(struct arena *arena, struct str s); /* NUL follows the copy */
const char *str_c(struct arena *arena, struct str s);   /* NUL-terminated copy */
/* Cuts `*rest` at the first `sep`; returns the part before it and leaves the part after. */
struct str str_cut(struct str *rest, char sep);

/* Decimal, no sign unless negative, no blanks, within [min, max]. */
bool str_to_i64(struct str s, int64_t min, int64_t max, int64_t *out);
/* Decimal with up to three places, in thousandths: "0.5" -> 500, "2" -> 2000. */
bool str_to_milli(struct str s, int64_t max_milli, int64_t *out);
/* "1.5", "4": not negative thousandths as people write them; returns `out`. */
enum { MILLI_TEXT_MAX = 32 };
const char *milli_text(int64_t milli, char out[MILLI_TEXT_MAX]);
/* "90", "90s", "5m", "2h", "1d", "1h30m" -> seconds. */
bool str_to_seconds(struct str s, int64_t max_s, int64_t *out);

/* Valid UTF-8 without control characters except tab and newline. */
bool str_is_text(struct str s);
/* Well-formed UTF-8 of any characters, controls included. */
bool str_is_utf8(struct str s);

/* A growable byte buffer; all-zero is empty. `data` is always followed by a NUL once non-empty. */
struct buf {
    char *data; /* owned */
    size_t size;
    size_t capacity;
};

void buf_add(struct buf *buf, const void *bytes, size_t size);
void buf_add_str(struct buf *buf, struct str s);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
void buf_format(struct buf *buf, const char *fmt, ...) PRINTF(2, 3);
void buf_reserve(struct buf *buf, size_t more); /* room for `more` bytes and a NUL */
void buf_consume(struct buf *buf, size_t size); /* drops the first `size` bytes */
void buf_clear(struct buf *buf);                /* keeps the memory */
struct str buf_str(const struct buf *buf);      /* borrowed until the next change */
void buf_done(struct buf *buf);
DEFINE_CLEANUP_AT(buf, struct buf, buf_done)

/* The value of a hexadecimal digit of either case; -1: it is none. */
int hex_digit(char c);
/* Lower-case hexadecimal. `out` has room for 2 * size + 1 characters. */
void hex_encode(const uint8_t *bytes, size_t size, char *out);
bool hex_decode(struct str text, uint8_t *out, size_t size); /* exactly `size` bytes */

#endif
