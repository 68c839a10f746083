#include "os/log.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "os/clock.h"
#include "os/fd.h"

enum { LINE_MAX_BYTES = 8192, REPEAT_SLOTS = 64, DEFAULT_BURST = 100 };
#define REPEAT_WINDOW_NS (10 * NS_PER_S)

static const struct level {
    const char *name;
    const char *label;
    int priority; /* of syslog and journald */
} levels[LOG_LEVEL_COUNT] = {
    [LOG_LEVEL_DEBUG] = { "debug", "DEBUG", 7 },
    [LOG_LEVEL_INFO] = { "info", "INFO ", 6 },
    [LOG_LEVEL_WARNING] = { "warning", "WARN ", 4 },
    [LOG_LEVEL_ERROR] = { "error", "ERROR", 3 },
};

/* A field of these names is a mistake of ours; the line is worth more than its value. */
static const char *const secret_names[] = {
    "authorization", "cookie", "password", "private_key", "secret", "token",
};

/* Lines of one message since `since`; beyond the burst they are only counted. */
struct repeat {
    uint64_t hash; /* 0: free */
    const char *message;
    enum log_level level;
    struct mono since;
    unsigned written;
    uint64_t dropped;
};

static struct {
    pthread_mutex_t lock;
    const char *program;
    enum log_format format;
    enum log_level level;
    unsigned burst;
    int fd;
    struct repeat repeats[REPEAT_SLOTS];
} log_state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .program = "berth",
    .format = LOG_FORMAT_JSON,
    .level = LOG_LEVEL_INFO,
    .burst = DEFAULT_BURST,
    .fd = STDERR_FILENO,
};

/* systemd sets JOURNAL_STREAM to the device and inode of the stream it made for us. */
static bool is_journal_stream(int fd)
{
    const char *stream =
        getenv("JOURNAL_STREAM"); /* NOLINT(concurrency-mt-unsafe): from log_init */
    struct stat found;
    if (stream == NULL || fstat(fd, &found) != 0)
        return false;
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "%" PRIu64 ":%" PRIu64, (uint64_t)found.st_dev,
                   (uint64_t)found.st_ino);
    return strcmp(stream, expected) == 0;
}

static enum log_format format_for(int fd)
{
    if (is_journal_stream(fd))
        return LOG_FORMAT_JOURNALD;
    return isatty(fd) == 1 ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
}

void log_init(const struct log_options *options)
{
    assert(options->program != NULL && options->level < LOG_LEVEL_COUNT);
    (void)pthread_mutex_lock(&log_state.lock);
    log_state.program = options->program;
    log_state.level = options->level;
    log_state.burst = options->burst > 0 ? options->burst : DEFAULT_BURST;
    log_state.fd = options->fd > 0 ? options->fd : STDERR_FILENO;
    log_state.format =
        options->format == LOG_FORMAT_AUTO ? format_for(log_state.fd) : options->format;
    memset(log_state.repeats, 0, sizeof(log_state.repeats));
    (void)pthread_mutex_unlock(&log_state.lock);
}

bool log_level_parse(struct str name, enum log_level *out)
{
    for (enum log_level level = LOG_LEVEL_DEBUG; level < LOG_LEVEL_COUNT; level++) {
        if (str_is(name, levels[level].name)) {
            *out = level;
            return true;
        }
    }
    return false;
}

/* A line under construction: bounded, on the stack, so that logging needs no heap. */
struct line {
    size_t size;
    char bytes[LINE_MAX_BYTES];
};

/* Room for what closes a cut line is kept back: `"...}` and a newline. */
enum { LINE_TAIL = 16 };

static void line_add(struct line *line, const char *bytes, size_t size)
{
    size_t room = sizeof(line->bytes) - LINE_TAIL - line->size;
    size = MIN_OF(size, room);
    memcpy(line->bytes + line->size, bytes, size);
    line->size += size;
}

static void line_text(struct line *line, const char *text)
{
    line_add(line, text, strlen(text));
}

static void line_end(struct line *line, const char *tail)
{
    size_t size = strlen(tail);
    assert(size <= LINE_TAIL);
    memcpy(line->bytes + line->size, tail, size);
    line->size += size;
}

static bool line_is_full(const struct line *line)
{
    return line->size >= sizeof(line->bytes) - LINE_TAIL;
}

/* A cut may have gone through a character: its bytes would make the whole line invalid. */
static void line_drop_partial(struct line *line)
{
    while (line->size > 0 && ((unsigned char)line->bytes[line->size - 1] & 0xc0) == 0x80)
        line->size--;
    if (line->size > 0 && (unsigned char)line->bytes[line->size - 1] >= 0xc0)
        line->size--;
}

/* A code point below U+0100 as JSON escapes it. */
static int escape_control(unsigned point, char out[8])
{
    return point == '\n' ? snprintf(out, 8, "\\n") : snprintf(out, 8, "\\u%04x", point);
}

/*
 * Text from outside may try to forge a line or to drive a terminal. Controls of both sets (C0, DEL,
 * C1), quotes and backslashes are escaped as in JSON; text that is not UTF-8 gets '?' for what is
 * not ASCII. An escape is never cut.
 */
static void line_escaped(struct line *line, struct str text)
{
    bool is_utf8 = str_is_utf8(text);
    for (size_t i = 0; i < text.size && !line_is_full(line); i++) {
        unsigned char c = (unsigned char)text.data[i];
        char escape[8] = { (char)c };
        int size = 1;
        if (c == '"' || c == '\\')
            size = snprintf(escape, sizeof(escape), "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            size = escape_control(c, escape);
        else if (c >= 0x80 && !is_utf8)
            escape[0] = '?';
        else if (c == 0xc2 && (unsigned char)text.data[i + 1] < 0xa0)
            size = escape_control((unsigned char)text.data[++i], escape);
        if (line->size + (size_t)size > sizeof(line->bytes) - LINE_TAIL)
            break;
        line_add(line, escape, (size_t)size);
    }
    if (line_is_full(line))
        line_drop_partial(line);
}

static void line_quoted(struct line *line, struct str text)
{
    line_text(line, "\"");
    line_escaped(line, text);
    line_end(line, "\""); /* out of the reserve: a cut value is still closed */
}

static bool is_secret(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(secret_names); i++) {
        if (strcmp(name, secret_names[i]) == 0)
            return true;
    }
    return false;
}

/* A value is plain in text lines when nobody could mistake where it ends. */
static bool is_plain_word(struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '=')
            return false;
    }
    return text.size > 0;
}

static void line_value(struct line *line, const struct log_field *field, bool is_json)
{
    char number[32];
    struct str text = is_secret(field->name) ? STR("[not logged]") : field->text;
    switch (is_secret(field->name) ? LOG_KIND_STR : field->kind) {
    case LOG_KIND_STR:
        if (!is_json && is_plain_word(text))
            line_escaped(line, text);
        else
            line_quoted(line, text);
        break;
    case LOG_KIND_INT:
        (void)snprintf(number, sizeof(number), "%" PRId64, field->number);
        line_text(line, number);
        break;
    }
}

/* Whether a field of this size would still fit, so that a line is cut between fields. */
static bool has_room(const struct line *line, const struct log_field *field)
{
    return line->size + strlen(field->name) + 64 < sizeof(line->bytes) - LINE_TAIL;
}

static void line_json(struct line *line, enum log_level level, const char *message,
                      const struct log_field *fields)
{
    char now[WALL_TEXT_MAX];
    line_text(line, "{\"time\":\"");
    line_text(line, wall_text(clock_wall(), now));
    line_text(line, "\",\"level\":\"");
    line_text(line, levels[level].name);
    line_text(line, "\",\"program\":");
    line_quoted(line, str_of(log_state.program));
    line_text(line, ",\"message\":");
    line_quoted(line, str_of(message));
    for (size_t i = 0; fields[i].name != NULL && has_room(line, &fields[i]); i++) {
        line_text(line, ",\"");
        line_text(line, fields[i].name);
        line_text(line, "\":");
        line_value(line, &fields[i], true);
    }
    line_end(line, "}\n");
}

static void line_plain(struct line *line, enum log_level level, const char *message,
                       const struct log_field *fields)
{
    char head[WALL_TEXT_MAX + 16];
    char now[WALL_TEXT_MAX];
    if (log_state.format == LOG_FORMAT_JOURNALD)
        (void)snprintf(head, sizeof(head), "<%d>", levels[level].priority);
    else
        (void)snprintf(head, sizeof(head), "%s %s ", wall_text(clock_wall(), now),
                       levels[level].label);
    line_text(line, head);
    line_escaped(line, str_of(message));
    for (size_t i = 0; fields[i].name != NULL && has_room(line, &fields[i]); i++) {
        line_text(line, " ");
        line_text(line, fields[i].name);
        line_text(line, "=");
        line_value(line, &fields[i], false);
    }
    line_end(line, "\n");
}

static void write_line(enum log_level level, const char *message, const struct log_field *fields)
{
    struct line line;
    line.size = 0;
    if (log_state.format == LOG_FORMAT_JSON)
        line_json(&line, level, message, fields);
    else
        line_plain(&line, level, message, fields);
    /* Nobody can be told that telling failed: a full disk must not stop the program. */
    (void)!write(log_state.fd, line.bytes, line.size);
}

/* Says how many lines of a message were only counted, and forgets the message. */
static void close_window(struct repeat *repeat)
{
    struct repeat closed = *repeat;
    *repeat = (struct repeat){ 0 };
    if (closed.dropped > 0)
        write_line(closed.level, "message repeated",
                   (const struct log_field[]){ LOG_STR("repeated", closed.message),
                                               LOG_INT("not_written", closed.dropped), LOG_END });
}

/* False: this message has used up its burst. Also closes the windows that are over. */
static bool is_within_burst(enum log_level level, const char *message)
{
    static const uint8_t key[16] = { 0 };
    struct mono now = clock_monotonic();
    uint64_t hash = siphash(key, message, strlen(message)) | 1;
    struct repeat *mine = &log_state.repeats[hash / 2 % REPEAT_SLOTS];

    for (size_t i = 0; i < REPEAT_SLOTS; i++) {
        struct repeat *repeat = &log_state.repeats[i];
        if (repeat->hash != 0 && now.ns - repeat->since.ns >= REPEAT_WINDOW_NS)
            close_window(repeat);
    }
    if (mine->hash != hash) { /* free, or another message: it gives way */
        close_window(mine);
        *mine = (struct repeat){ hash, message, level, now, 0, 0 };
    }
    if (mine->written < log_state.burst) {
        mine->written++;
        return true;
    }
    mine->dropped++;
    return false;
}

void log_line(enum log_level level, const char *message, const struct log_field *fields)
{
    assert(level < LOG_LEVEL_COUNT);
    (void)pthread_mutex_lock(&log_state.lock);
    if (level >= log_state.level && is_within_burst(level, message))
        write_line(level, message, fields);
    (void)pthread_mutex_unlock(&log_state.lock);
}

void log_flush(void)
{
    (void)pthread_mutex_lock(&log_state.lock);
    for (size_t i = 0; i < REPEAT_SLOTS; i++)
        close_window(&log_state.repeats[i]);
    (void)pthread_mutex_unlock(&log_state.lock);
}
