/*
 * log.h - one line a fact, for operators and for machines.
 *
 *     log_info("workload started", LOG_STR("workload", id), LOG_INT("wait_ms", wait_ms));
 *
 * The message is a constant: what varies goes into fields, so that lines can be counted and
 * searched. Only edges log (a handler, a cycle, main). A program that never calls log_init
 * writes JSON lines from level info up. Fields that hold secrets by their name (token,
 * password, ...) are not written.
 */
#ifndef OS_LOG_H
#define OS_LOG_H

#include "base/error.h"
#include "base/str.h"

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_ERROR,
    LOG_LEVEL_COUNT
};

enum log_format {
    LOG_FORMAT_AUTO,    /* journald when stderr is its stream, text on a terminal, else JSON */
    LOG_FORMAT_JSON,    /* {"time":...,"level":...,"program":...,"message":...,fields} */
    LOG_FORMAT_TEXT,    /* time LEVEL message field=value */
    LOG_FORMAT_JOURNALD /* <N>message field=value: journald keeps time and program itself */
};

struct log_options {
    const char *program; /* borrowed for ever: a literal */
    enum log_format format;
    enum log_level level; /* quieter ones are dropped */
    unsigned burst;       /* lines of one message in 10 s before the rest is only counted; 0: 100 */
    int fd;               /* 0 means stderr */
};

/* Before threads start. */
void log_init(const struct log_options *options);
bool log_level_parse(struct str name, enum log_level *out); /* "debug", "info", ... */

enum log_kind { LOG_KIND_STR, LOG_KIND_INT };

struct log_field {
    const char *name; /* snake_case; a literal */
    enum log_kind kind;
    struct str text;
    int64_t number;
};

#define LOG_STR(name, value)                                                                       \
    (struct log_field)                                                                             \
    {                                                                                              \
        (name), LOG_KIND_STR, str_of(value), 0                                                     \
    } /* a C string or NULL */
#define LOG_SLICE(name, value)                                                                     \
    (struct log_field)                                                                             \
    {                                                                                              \
        (name), LOG_KIND_STR, (value), 0                                                           \
    } /* a struct str */
#define LOG_INT(name, value)                                                                       \
    (struct log_field)                                                                             \
    {                                                                                              \
        (name), LOG_KIND_INT, { NULL, 0 }, (int64_t)(value)                                        \
    }
/* The text of a struct error *. */
#define LOG_ERR(e) LOG_STR("error", (e)->text)

/* Fields end with a NULL name. Any thread may call; one write a line, cut at 8 KiB. */
void log_line(enum log_level level, const char *message, const struct log_field *fields);

/* Says now how many lines of which messages were only counted: at the end of a program. */
void log_flush(void); /* for tests */

/* The message, then any number of fields; the end marker keeps the variable part from
 * being empty. */
#define LOG_END             ((struct log_field){ 0 })
#define LOG_HEAD(head, ...) (head)
#define LOG_REST(head, ...) ((const struct log_field[]){ __VA_ARGS__ })
#define LOG_CALL(level, ...)                                                                       \
    log_line((level), LOG_HEAD(__VA_ARGS__, LOG_END), LOG_REST(__VA_ARGS__, LOG_END))
#define log_debug(...)   LOG_CALL(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...)    LOG_CALL(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warning(...) LOG_CALL(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_error(...)   LOG_CALL(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
