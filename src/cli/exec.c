/* exec.c - a command or a terminal inside running work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/guess.h"
#include "cli/special.h"
#include "cli/stream.h"

static struct termios saved; /* put back on every way out */
static bool is_saved;

static void terminal_restore(void)
{
    if (is_saved)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
    is_saved = false;
}

static void terminal_raw(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &saved) != 0)
        return;
    is_saved = true;
    (void)atexit(terminal_restore);
    raw = saved;
    cfmakeraw(&raw);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static bool wants_terminal(const struct cli *cli)
{
    if (cli_has(cli, "tty"))
        return true;
    return !cli_has(cli, "no-tty") && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

static enum err member_of(struct cli *cli, struct stream_header *header, struct error *e)
{
    const char *member = cli_get(cli, "member");
    if (member != NULL && !str_to_i64(str_of(member), 0, INT32_MAX, &header->member))
        return err_set(e, ERR_INVALID, "--member: \"%s\" is not a rank", member);
    return ERR_OK;
}

static enum err workload_of(struct cli *cli, const char *word, struct id *out, struct error *e)
{
    struct str text = { 0 };
    enum err rc = cli_workload_id(cli, word, &text, e);
    if (rc == ERR_OK && !id_parse(ID_WORKLOAD, text, out))
        return err_set(e, ERR_INVALID, "%s is an array: name one of its elements", word);
    return rc == ERR_OK ? wait_for_running(cli, text, e) : rc;
}

enum cli_exit run_exec(struct cli *cli)
{
    struct error e = { 0 };
    struct stream_exit exited = { 0 };
    struct winsize size = { .ws_row = 24, .ws_col = 80 };
    bool is_tty = wants_terminal(cli);
    struct str *argv = arena_new(&cli->arena, (size_t)cli->argument_count, sizeof(*argv));
    for (int i = 1; i < cli->argument_count; i++)
        argv[i - 1] = str_of(cli->arguments[i]);
    struct stream_run run = {
        .header = { .kind = STREAM_EXEC,
                    .argv = { argv, (size_t)cli->argument_count - 1 },
                    .is_tty = is_tty,
                    .term = str_of(getenv("TERM")) }, /* NOLINT(concurrency-mt-unsafe) */
        .input_fd = STDIN_FILENO,
        .output_fd = STDOUT_FILENO,
        .error_fd = STDERR_FILENO,
        .is_terminal = is_tty && isatty(STDOUT_FILENO) == 1,
    };
    if (run.is_terminal)
        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    run.header.rows = size.ws_row;
    run.header.columns = size.ws_col;
    enum err rc = member_of(cli, &run.header, &e);
    if (rc == ERR_OK)
        rc = workload_of(cli, cli->arguments[0], &run.header.workload, &e);
    if (rc == ERR_OK && is_tty && isatty(STDIN_FILENO) == 1)
        terminal_raw();
    if (rc == ERR_OK)
        rc = stream_run(cli, &run, &exited, &e);
    terminal_restore();
    if (rc != ERR_OK)
        return cli_refused(cli, &e);
    /* The command's own status is ours, as with ssh: 128 + the signal's number when it
     * was killed. */
    return (enum cli_exit)(exited.is_signal ? 128 + exited.number : exited.number);
}
