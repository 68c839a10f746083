/*
 * Four connections are enough for a workload, and no more are kept: a new one takes the place of
 * the one that said nothing for longest, so that nobody has to be waited for.
 */
#include "agent/init_notice.h"

#include <asm/errno.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>

#include "agent/init.h"
#include "agent/init_start.h"

enum {
    POLL_READABLE = 1, /* as the kernel has them */
    POLL_BAD = 0x20,
    NO_WAIT = 0x40,
    NO_SIGNAL = 0x4000,
    NEW_NO_WAIT = O_NONBLOCK,
};

struct part {
    const void *bytes;
    size_t size;
};

/* As the kernel has it. */
struct message_head {
    void *name;
    int name_size;
    struct part *parts;
    size_t part_count;
    void *control;
    size_t control_size;
    unsigned flags;
};

/* Not with write(), for nobody may end us by closing a socket. */
static bool send_bytes(int fd, const void *bytes, size_t size)
{
    struct part part = { bytes, size };
    struct message_head head = { .parts = &part, .part_count = 1 };
    long sent = system_call(__NR_sendmsg, fd, (long)&head, NO_WAIT | NO_SIGNAL, 0);
    return sent == (long)size;
}

static void close_fd(int fd)
{
    (void)system_call(__NR_close, fd, 0, 0, 0);
}

static void drop(struct notice *notice, struct notice_connection *connection)
{
    if (notice->asker == connection)
        notice->asker = NULL;
    close_fd(connection->fd);
    *connection = (struct notice_connection){ .fd = -1 };
}

/* Whoever does not read is not waited for. */
static void say(struct notice *notice, struct notice_connection *connection, const char *text)
{
    char line[INIT_TEXT_MAX + 1];
    size_t size = 0;
    for (; size < INIT_TEXT_MAX && text[size] != '\0'; size++)
        line[size] = text[size];
    line[size++] = '\n';
    if (!send_bytes(connection->fd, line, size))
        drop(notice, connection);
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Is it this word, alone or before a space? Then what follows that; else NULL. */
static const char *after_word(const char *line, const char *word)
{
    while (*word != '\0' && *line == *word) {
        line++;
        word++;
    }
    if (*word != '\0' || (*line != '\0' && *line != ' '))
        return NULL;
    return *line == ' ' ? line + 1 : line;
}

/* -1: it is no number of at most six digits. Nothing at all is 0. */
static int number_of(const char *text)
{
    enum { DIGITS_MAX = 6, TEN = 10 };
    int value = 0;
    for (int i = 0; text[i] != '\0'; i++) {
        if (text[i] < '0' || text[i] > '9' || i == DIGITS_MAX)
            return -1;
        value = value * TEN + (text[i] - '0');
    }
    return value;
}

static void ask(struct notice *notice, struct notice_connection *connection, enum init_kind kind,
                int value)
{
    struct init_report record = { .kind = (uint32_t)kind, .value = value };
    if (!send_bytes(INIT_REPORT_FD, &record, sizeof(record))) {
        say(notice, connection, "error the node does not listen now");
        return;
    }
    notice->asker = connection;
    notice->is_asking = true;
}

static void take_line(struct notice *notice, struct notice_connection *connection, const char *line)
{
    const char *rest = after_word(line, "checkpointed");
    if (rest != NULL && *rest == '\0') {
        ask(notice, connection, INIT_CHECKPOINTED, 0);
        return;
    }
    rest = after_word(line, "extend");
    int seconds = rest != NULL ? number_of(rest) : -1;
    if (seconds >= 0)
        ask(notice, connection, INIT_EXTEND, seconds);
    else
        say(notice, connection, "error say \"checkpointed\" or \"extend [SECONDS]\"");
}

/* True: there was a whole line in what has come. */
static bool take_next(struct notice *notice, struct notice_connection *connection)
{
    char line[NOTICE_LINE_MAX];
    size_t length = 0;
    while (length < connection->size && connection->line[length] != '\n')
        length++;
    if (length == connection->size)
        return false;
    for (size_t i = 0; i < length; i++)
        line[i] = connection->line[i];
    line[length > 0 && line[length - 1] == '\r' ? length - 1 : length] = '\0';
    connection->size -= length + 1;
    for (size_t i = 0; i < connection->size; i++)
        connection->line[i] = connection->line[length + 1 + i];
    take_line(notice, connection, line);
    return true;
}

/* As far as nothing has to be asked first. */
static void take_lines(struct notice *notice, struct notice_connection *connection)
{
    while (connection->fd >= 0 && !notice->is_asking && take_next(notice, connection))
        continue;
}

/* ---- connections --------------------------------------------------------------------------- */

/* A free one, else the one that was idle longest and waits for no answer. */
static struct notice_connection *make_room(struct notice *notice)
{
    struct notice_connection *oldest = NULL;
    for (size_t i = 0; i < NOTICE_CONNECTIONS; i++) {
        struct notice_connection *connection = &notice->connections[i];
        if (connection->fd < 0)
            return connection;
        if (connection != notice->asker &&
            (oldest == NULL || connection->used_at < oldest->used_at))
            oldest = connection;
    }
    drop(notice, oldest);
    return oldest;
}

static void let_in(struct notice *notice)
{
    long fd = system_call(__NR_accept4, INIT_NOTICE_FD, 0, 0, NEW_NO_WAIT | O_CLOEXEC);
    if (fd < 0)
        return;
    struct notice_connection *connection = make_room(notice);
    connection->fd = (int)fd;
    connection->used_at = notice->clock++;
}

static void hear(struct notice *notice, struct notice_connection *connection)
{
    long got = system_call(__NR_read, connection->fd, (long)(connection->line + connection->size),
                           (long)(NOTICE_LINE_MAX - connection->size), 0);
    if (got == -EAGAIN || got == -EINTR)
        return;
    if (got <= 0) {
        drop(notice, connection);
        return;
    }
    connection->size += (size_t)got;
    connection->used_at = notice->clock++;
    take_lines(notice, connection);
    if (connection->size < NOTICE_LINE_MAX || notice->is_asking)
        return;
    say(notice, connection, "error a line is too long");
    if (connection->fd >= 0)
        drop(notice, connection);
}

static void go_deaf(struct notice *notice)
{
    notice->is_deaf = true;
    for (size_t i = 0; i < NOTICE_CONNECTIONS; i++) {
        if (notice->connections[i].fd >= 0)
            drop(notice, &notice->connections[i]);
    }
}

static void take_answer(struct notice *notice)
{
    struct init_report record = { .kind = 0 };
    long got = system_call(__NR_read, INIT_REPORT_FD, (long)&record, sizeof(record), 0);
    if (got <= 0) { /* there is no shim any more */
        go_deaf(notice);
        return;
    }
    if (got != (long)sizeof(record) || record.kind != INIT_ANSWER || !notice->is_asking)
        return;
    record.text[sizeof(record.text) - 1] = '\0';
    struct notice_connection *asker = notice->asker;
    notice->is_asking = false;
    notice->asker = NULL;
    if (asker != NULL)
        say(notice, asker, record.text);
    /* Lines that came meanwhile; whoever asked goes last. */
    size_t first = asker != NULL ? (size_t)(asker - notice->connections) + 1 : 0;
    for (size_t i = 0; i < NOTICE_CONNECTIONS; i++)
        take_lines(notice, &notice->connections[(first + i) % NOTICE_CONNECTIONS]);
}

/* ---- waiting ------------------------------------------------------------------------------- */

void notice_begin(struct notice *notice)
{
    *notice = (struct notice){ .is_deaf = false };
    for (size_t i = 0; i < NOTICE_CONNECTIONS; i++)
        notice->connections[i].fd = -1;
}

void notice_wait_for(const struct notice *notice, struct notice_poll polls[NOTICE_POLLS])
{
    bool is_open = !notice->is_deaf;
    polls[0] = (struct notice_poll){ is_open ? INIT_REPORT_FD : -1, POLL_READABLE, 0 };
    polls[1] = (struct notice_poll){ is_open ? INIT_NOTICE_FD : -1, POLL_READABLE, 0 };
    for (size_t i = 0; i < NOTICE_CONNECTIONS; i++) {
        const struct notice_connection *connection = &notice->connections[i];
        /* One question at a time, and what is full is read on when that is answered. */
        bool may_read = is_open && !notice->is_asking;
        polls[2 + i] = (struct notice_poll){ may_read ? connection->fd : -1, POLL_READABLE, 0 };
    }
}

void notice_serve(struct notice *notice, const struct notice_poll polls[NOTICE_POLLS])
{
    /* Started by hand, or with something else there: then nobody asks. */
    if (((polls[0].seen | polls[1].seen) & POLL_BAD) != 0) {
        go_deaf(notice);
        return;
    }
    if (polls[0].seen != 0)
        take_answer(notice);
    for (size_t i = 0; i < NOTICE_CONNECTIONS && !notice->is_asking; i++) {
        struct notice_connection *connection = &notice->connections[i];
        if (polls[2 + i].seen != 0 && connection->fd == polls[2 + i].fd)
            hear(notice, connection);
    }
    if (polls[1].seen != 0 && !notice->is_deaf)
        let_in(notice);
}
