#include "net/http_head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "net/http_library.h"

enum { TARGET_MAX = 8192, SEGMENTS_MAX = 32, QUERY_MAX = 64, LENGTH_DIGITS_MAX = 18 };

static bool refuse(struct http_refusal *refusal, unsigned status, const char *detail)
{
    *refusal = (struct http_refusal){ status, detail };
    return false;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_token_char(char c)
{
    return is_alnum(c) || is_one_of(c, "!#$%&'*+-.^_`|~");
}

/* --- Pass one: lines. --- */

static bool has_control(struct str line)
{
    for (size_t i = 0; i < line.size; i++) {
        unsigned char c = (unsigned char)line.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return true;
    }
    return false;
}

static bool check_field_line(struct str line, struct http_refusal *refusal)
{
    if (line.data[0] == ' ' || line.data[0] == '\t')
        return refuse(refusal, 400,
                      "a header line begins with a blank: folded lines are not taken");
    size_t name = 0;
    while (name < line.size && is_token_char(line.data[name]))
        name++;
    if (name == 0 || name == line.size || line.data[name] != ':')
        return refuse(refusal, 400, "a header line is not a name followed by a colon");
    return true;
}

/* Three words with one space between them: libhttp-parser would take more. */
static bool check_request_line(struct str line, struct http_refusal *refusal)
{
    size_t spaces = 0;
    bool is_fine = line.size > 0 && line.data[0] != ' ' && line.data[line.size - 1] != ' ';
    for (size_t i = 0; i < line.size; i++) {
        spaces += line.data[i] == ' ' ? 1 : 0;
        is_fine =
            is_fine && line.data[i] != '\t' && (line.data[i] != ' ' || line.data[i - 1] != ' ');
    }
    return (is_fine && spaces == 2) ||
           refuse(refusal, 400, "the request line is not a method, a target and a version");
}

/* `line` is without its LF. */
static bool check_line(struct str line, size_t index, struct http_refusal *refusal)
{
    if (line.size == 0 || line.data[line.size - 1] != '\r')
        return refuse(refusal, 400, "a line of the head does not end with CR LF");
    line.size--;
    if (has_control(line))
        return refuse(refusal, 400, "a control character in the head");
    if (index == 0)
        return check_request_line(line, refusal);
    return line.size == 0 || check_field_line(line, refusal);
}

size_t http_head_scan(struct http_scan *scan, struct str data, size_t bytes_max, size_t count_max,
                      struct http_refusal *refusal)
{
    while (scan->line < data.size) {
        const char *begin = data.data + scan->line;
        const char *end = memchr(begin, '\n', data.size - scan->line);
        size_t next = end != NULL ? (size_t)(end + 1 - data.data) : data.size;
        if (next > bytes_max || (end == NULL && next == bytes_max)) {
            (void)refuse(refusal, scan->count == 0 ? 414 : 431,
                         scan->count == 0 ? "the request target is too long"
                                          : "the header fields are too large");
            return 0;
        }
        if (end == NULL)
            return 0;
        struct str line = { begin, (size_t)(end - begin) };
        if (!check_line(line, scan->count, refusal))
            return 0;
        scan->line = next;
        scan->count++;
        if (line.size == 1)
            return next;
        if (scan->count > count_max + 1) {
            (void)refuse(refusal, 431, "too many header fields");
            return 0;
        }
    }
    return 0;
}

/* --- Pass two: libhttp-parser's view, into slices. --- */

static int on_url(http_parser *parser, const char *at, size_t length)
{
    struct http_head *head = parser->data;
    /* All in one piece, because the parser is given all of it at once. */
    if (head->target.data != NULL)
        return 1;
    head->target = (struct str){ at, length };
    return 0;
}

static int on_name(http_parser *parser, const char *at, size_t length)
{
    struct http_head *head = parser->data;
    struct http_pair field = { .name = { at, length } };
    vec_push(&head->fields, field);
    return 0;
}

static int on_value(http_parser *parser, const char *at, size_t length)
{
    struct http_head *head = parser->data;
    if (head->fields.count == 0)
        return 1;
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    head->fields.items[head->fields.count - 1].value = (struct str){ at, length };
    return 0;
}

static const struct {
    unsigned parser_method;
    enum http_method method;
    const char *name;
} methods[HTTP_METHOD_COUNT] = {
    { HTTP_GET, HTTP_METHOD_GET, "GET" },
    { HTTP_HEAD, HTTP_METHOD_HEAD, "HEAD" },
    { HTTP_POST, HTTP_METHOD_POST, "POST" },
    { HTTP_PUT, HTTP_METHOD_PUT, "PUT" },
    { HTTP_PATCH, HTTP_METHOD_PATCH, "PATCH" },
    { HTTP_DELETE, HTTP_METHOD_DELETE, "DELETE" },
    { HTTP_OPTIONS, HTTP_METHOD_OPTIONS, "OPTIONS" },
};

const char *http_method_name(enum http_method method)
{
    assert(methods[method].method == method);
    return methods[method].name;
}

static bool take_apart(struct http_head *head, struct http_refusal *refusal)
{
    static const http_parser_settings settings = {
        .on_url = on_url,
        .on_header_field = on_name,
        .on_header_value = on_value,
    };
    http_parser parser;
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = head;
    size_t used = http_parser_execute(&parser, &settings, head->raw.data, head->raw.size);
    enum http_errno failure = HTTP_PARSER_ERRNO(&parser);
    if (failure == HPE_INVALID_METHOD)
        return refuse(refusal, 501, "the method is not known");
    if (failure != HPE_OK || used != head->raw.size || head->target.data == NULL)
        return refuse(refusal, 400, "the head is not HTTP/1.1");
    if (parser.http_major != 1 || parser.http_minor != 1)
        return refuse(refusal, 505, "only HTTP/1.1 is spoken here");
    head->keeps_alive = http_should_keep_alive(&parser) != 0;
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        if (methods[i].parser_method == parser.method) {
            head->method = methods[i].method;
            return true;
        }
    }
    return refuse(refusal, 501, "the method is not known");
}

static void lower_names(struct http_head *head)
{
    for (size_t i = 0; i < head->fields.count; i++) {
        struct str name = head->fields.items[i].name;
        /* The slice is ours: it points into raw. */
        char *bytes = head->raw.data + (name.data - head->raw.data);
        for (size_t j = 0; j < name.size; j++) {
            if (bytes[j] >= 'A' && bytes[j] <= 'Z')
                bytes[j] = (char)(bytes[j] - 'A' + 'a');
        }
    }
}

struct str http_head_field(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->fields.count; i++) {
        if (str_is(head->fields.items[i].name, name)) {
            struct str value = head->fields.items[i].value;
            return value.data != NULL ? value : STR("");
        }
    }
    return (struct str){ 0 };
}

static bool equals_any_case(struct str a, const char *b)
{
    return a.size == strlen(b) && strncasecmp(a.data, b, a.size) == 0;
}

bool http_has_token(struct str value, const char *token)
{
    while (value.size > 0) {
        struct str part = str_cut(&value, ',');
        while (part.size > 0 && is_one_of(part.data[0], " \t"))
            part = (struct str){ part.data + 1, part.size - 1 };
        while (part.size > 0 && is_one_of(part.data[part.size - 1], " \t"))
            part.size--;
        if (equals_any_case(part, token))
            return true;
    }
    return false;
}

/* --- Fields that decide how the message is read. --- */

/* Two of these could be understood differently by two readers. */
static const char *const once[] = {
    "host",          "content-length",  "transfer-encoding",     "authorization", "content-type",
    "expect",        "upgrade",         "sec-websocket-key",     "origin",        "if-match",
    "last-event-id", "idempotency-key", "sec-websocket-version",
};

static size_t count_field(const struct http_head *head, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < head->fields.count; i++)
        count += str_is(head->fields.items[i].name, name) ? 1 : 0;
    return count;
}

static bool check_host(struct str host, struct http_refusal *refusal)
{
    bool is_fine = host.size > 0;
    for (size_t i = 0; i < host.size; i++)
        is_fine = is_fine && (is_alnum(host.data[i]) || is_one_of(host.data[i], ".-_:[]"));
    return is_fine || refuse(refusal, 400, "the Host field is missing or not a host");
}

static bool read_length(struct str value, uint64_t *out)
{
    if (value.size == 0 || value.size > LENGTH_DIGITS_MAX)
        return false;
    uint64_t length = 0;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return false;
        length = length * 10 + (unsigned)(value.data[i] - '0');
    }
    *out = length;
    return true;
}

static bool read_framing(struct http_head *head, struct http_refusal *refusal)
{
    struct str length = http_head_field(head, "content-length");
    struct str encoding = http_head_field(head, "transfer-encoding");
    if (length.data != NULL && encoding.data != NULL)
        return refuse(refusal, 400, "both Content-Length and Transfer-Encoding");
    if (encoding.data != NULL) {
        if (!equals_any_case(encoding, "chunked"))
            return refuse(refusal, 400, "a Transfer-Encoding other than chunked");
        head->framing = HTTP_FRAMING_CHUNKED;
        return true;
    }
    if (length.data == NULL)
        return true;
    if (!read_length(length, &head->length))
        return refuse(refusal, 400, "Content-Length is not a number");
    head->framing = head->length > 0 ? HTTP_FRAMING_LENGTH : HTTP_FRAMING_NONE;
    return true;
}

static bool check_fields(struct http_head *head, struct http_refusal *refusal)
{
    for (size_t i = 0; i < COUNT_OF(once); i++) {
        if (count_field(head, once[i]) > 1)
            return refuse(refusal, 400, "a header field that may come once came twice");
    }
    if (!check_host(http_head_field(head, "host"), refusal) || !read_framing(head, refusal))
        return false;
    struct str expect = http_head_field(head, "expect");
    if (expect.data == NULL)
        return true;
    if (!equals_any_case(expect, "100-continue"))
        return refuse(refusal, 417, "only 100-continue can be expected");
    head->expects_continue = true;
    return true;
}

/* --- The target: checked raw, decoded once. --- */

static int escaped_byte(struct str rest)
{
    if (rest.size < 3 || hex_digit(rest.data[1]) < 0 || hex_digit(rest.data[2]) < 0)
        return -1;
    return hex_digit(rest.data[1]) * 16 + hex_digit(rest.data[2]);
}

/* `raw`: bytes that may stand for themselves besides letters and digits; `barred`: not
 * even escaped. */
struct escape_rule {
    const char *raw;
    const char *barred;
    bool plus_is_space;
};

/* A segment may not turn into other segments, nor into a second layer of escapes. */
static const struct escape_rule segment_rule = { "-._~!$&'()*+,=:@", "./\\;%", false };
static const struct escape_rule query_rule = { "-._~!$'()*+,:@/?", "", true };

/* Appends the decoded part to head->text, which has room and so does not move. */
static bool decode(struct http_head *head, struct str raw, const struct escape_rule *rule,
                   struct str *out)
{
    size_t begin = head->text.size;
    for (size_t i = 0; i < raw.size; i++) {
        char c = raw.data[i];
        if (c == '%') {
            int byte = escaped_byte((struct str){ raw.data + i, raw.size - i });
            if (byte < 0x20 || byte == 0x7f || is_one_of((char)byte, rule->barred))
                return false;
            c = (char)byte;
            i += 2;
        } else if (!is_alnum(c) && !is_one_of(c, rule->raw)) {
            return false;
        } else if (c == '+' && rule->plus_is_space) {
            c = ' ';
        }
        buf_add_char(&head->text, c);
    }
    *out = (struct str){ head->text.data + begin, head->text.size - begin };
    return str_is_text(*out); /* refuses overlong and otherwise broken UTF-8 */
}

static bool read_path(struct http_head *head, struct str path, struct http_refusal *refusal)
{
    if (path.size == 0 || path.data[0] != '/')
        return refuse(refusal, 400, "the target is not an absolute path");
    (void)str_cut(&path, '/');
    while (path.size > 0) {
        struct str raw = { path.data, 0 };
        while (raw.size < path.size && path.data[raw.size] != '/')
            raw.size++;
        head->has_final_slash = raw.size < path.size;
        path = (struct str){ path.data + raw.size, path.size - raw.size };
        if (head->has_final_slash)
            (void)str_cut(&path, '/');
        struct str segment = { 0 };
        if (raw.size == 0 || str_is(raw, ".") || str_is(raw, ".."))
            return refuse(refusal, 400, "an empty part, . or .. in the path");
        if (head->segments.count == SEGMENTS_MAX)
            return refuse(refusal, 414, "the path has too many parts");
        if (!decode(head, raw, &segment_rule, &segment))
            return refuse(refusal, 400, "a character or escape in the path that is not taken");
        vec_push(&head->segments, segment);
    }
    return true;
}

static bool read_query(struct http_head *head, struct str query, struct http_refusal *refusal)
{
    while (query.size > 0) {
        struct str value = str_cut(&query, '&');
        if (value.size == 0)
            continue;
        struct str name = str_cut(&value, '=');
        struct http_pair pair = { 0 };
        if (head->query.count == QUERY_MAX)
            return refuse(refusal, 414, "the query has too many parts");
        /* A value may hold "=" raw, as base64 does. */
        struct escape_rule value_rule = query_rule;
        value_rule.raw = "-._~!$'()*+,:@/?=";
        if (name.size == 0 || !decode(head, name, &query_rule, &pair.name) ||
            !decode(head, value, &value_rule, &pair.value))
            return refuse(refusal, 400, "a character or escape in the query that is not taken");
        vec_push(&head->query, pair);
    }
    return true;
}

static bool read_target(struct http_head *head, struct http_refusal *refusal)
{
    if (head->target.size > TARGET_MAX)
        return refuse(refusal, 414, "the request target is too long");
    buf_reserve(&head->text, head->target.size);
    struct str query = head->target;
    struct str path = str_cut(&query, '?');
    return read_path(head, path, refusal) && read_query(head, query, refusal);
}

bool http_head_parse(struct http_head *out, struct str bytes, struct http_refusal *refusal)
{
    buf_add_str(&out->raw, bytes);
    if (!take_apart(out, refusal))
        return false;
    lower_names(out);
    return check_fields(out, refusal) && read_target(out, refusal);
}

void http_head_done(struct http_head *head)
{
    vec_done(&head->segments);
    vec_done(&head->query);
    vec_done(&head->fields);
    buf_done(&head->raw);
    buf_done(&head->text);
    *head = (struct http_head){ 0 };
}
