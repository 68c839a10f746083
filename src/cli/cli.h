/*
 * cli.h - what every command of `berth` works with: its row in the table, its options, a connection
 * to the controller, and ways to print. Commands speak only the public API.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/mem.h"
#include "base/str.h"
#include "net/http_client.h"
#include "wire/json_read.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NOT_FOUND = 3,
    CLI_DENIED = 4,
    CLI_CONFLICT = 5
};

enum cli_format { CLI_TABLE, CLI_JSON, CLI_YAML };

/* ---- options ------------------------------------------------------------------------------- */

/* How an option's text becomes a field of the request's body (or a parameter of its query). */
enum option_kind {
    OPTION_FLAG, /* true */
    OPTION_TEXT,
    OPTION_NUMBER,
    OPTION_MILLI,    /* "0.5" -> 500 */
    OPTION_SECONDS,  /* "90", "5m", "1h30m" */
    OPTION_MIB,      /* "512", "512M", "2G" */
    OPTION_LIST,     /* repeated or separated by commas: an array of texts */
    OPTION_PAIRS,    /* repeated NAME=VALUE: an object */
    OPTION_QUOTA,    /* repeated CLASS=AMOUNT: rows of `quotas` (the field says which amount) */
    OPTION_WORKLOAD, /* a name or an id; sent as the id */
    OPTION_DEPENDS,  /* repeated [ok:|any:|failed:]ID: rows of `depends_on` */
    OPTION_MOUNT,    /* repeated VOLUME:PATH[:ro]: rows of `mounts` */
    OPTION_TOPOLOGY, /* "rack", "prefer:rack" */
    OPTION_DEVICES,  /* "2x0.5": two fields, devices and share_milli */
};

enum option_place { OPTION_LOCAL, OPTION_BODY, OPTION_QUERY };

struct cli_option {
    const char *name; /* "gpus" of --gpus */
    char letter;      /* 'g' of -g; 0: none */
    enum option_kind kind;
    enum option_place place;
    const char *field;   /* of body or query; NULL: the name */
    const char *metavar; /* "N"; NULL for flags */
    const char *help;
};

enum { CLI_VALUES_MAX = 256, CLI_ARGUMENTS_MAX = 4096 };

struct cli_value {
    const struct cli_option *option;
    const char *text; /* NULL for flags */
};

/* ---- commands ------------------------------------------------------------------------------ */

struct cli;

struct cli_column {
    const char *head;  /* "STATE" */
    const char *field; /* "state", "exit.code"; of the answer's objects */
    enum {
        COLUMN_TEXT,
        COLUMN_MILLI,
        COLUMN_TIME,
        COLUMN_SECONDS,
        COLUMN_MICROS,
        COLUMN_DEVICE_S, /* of thousandths of a device times milliseconds */
        COLUMN_LIST,
        COLUMN_GPUS,   /* of a request: by number, by share or by memory */
        COLUMN_COUNTS, /* of an object with numbers */
        COLUMN_BYTES,
        COLUMN_CAUSE, /* empty where it only says that all goes its way */
        COLUMN_FLAG
    } kind;
};

struct cli_command {
    const char *noun; /* "tenant"; NULL: a verb of its own, as `submit` */
    const char *verb;
    const char *arguments; /* "WORKLOAD...", "NAME", "[FILE]"; NULL: none */
    unsigned arguments_min, arguments_max;
    const char *summary;  /* one line */
    const char *examples; /* lines, each a command and indented by two */
    const struct cli_option *options;
    size_t option_count;
    /* Commands that are one request: sent once for each argument, or once without any. `{}` in the
     * path stands for the argument, `{tenant}` and the like for nothing: they are options. */
    const char *method;
    const char *path;
    const char *argument_field; /* the argument goes into this field of the body instead */
    const struct cli_column *columns;
    size_t column_count;
    bool is_list; /* the answer is pages of rows */
    /* Of commands that destroy something: with --dry-run the object at `look` is read instead, and
     * what it `would` is said. Workloads need no path of their own. */
    const char *look;  /* "/v1/nodes/{}"; NULL: there is no --dry-run */
    const char *would; /* "be removed" */
    /* Everything else. */
    enum cli_exit (*run)(struct cli *cli);
};

extern const struct cli_command *const cli_commands[]; /* ends with NULL */

/* ---- one invocation -------------------------------------------------------------------------- */

struct cli {
    struct arena arena;
    char **argv;          /* all words, the program's first; borrowed from main */
    const char *named[2]; /* the command's words as given, also when they name none */
    size_t named_count;
    const struct cli_command *command; /* NULL: help was asked for, or nothing that exists */
    struct cli_value values[CLI_VALUES_MAX];
    size_t value_count;
    char **arguments;
    int argument_count;
    enum cli_format format;
    bool is_quiet;
    const char *server; /* "unix:PATH" or "https://HOST:PORT" */
    const char *ca_file;
    struct buf token;           /* owned, secret */
    struct http_client *client; /* owned; made with the first request */
};

/* The text of an option given (the last one), or NULL. */
const char *cli_get(const struct cli *cli, const char *name);
bool cli_has(const struct cli *cli, const char *name);

/* Prints "berth: ..." and returns the exit status that goes with the error's code. */
enum cli_exit cli_fail(const struct error *e);
enum cli_exit cli_usage(const struct cli *cli, const char *fmt, ...) PRINTF(2, 3);

/* The body made of all OPTION_BODY values; ERR_INVALID names the option. */
enum err cli_body(const struct cli *cli, json_t *body, struct error *e) MUST_CHECK;
/* "?a=b&c=d" of all OPTION_QUERY values, or "". */
enum err cli_query(const struct cli *cli, struct buf *out, struct error *e) MUST_CHECK;
/* Percent-encodes one segment or value. */
void cli_encode(struct buf *out, struct str text);
/* As one part of a path: the slashes of a project's path become colons. */
void cli_encode_part(struct buf *out, struct str text);

/* ---- requests -------------------------------------------------------------------------------- */

struct cli_answer {
    unsigned status;
    struct buf body; /* owned */
    json_t *json;    /* owned; NULL: no JSON */
    char etag[64];
};
void cli_answer_done(struct cli_answer *answer);
DEFINE_CLEANUP_AT(cli_answer, struct cli_answer, cli_answer_done)

/* Sends a JSON body (NULL: none) and reads the answer. Errors of the server come back as errors
 * with their detail, cause and field. POSTs carry a fresh Idempotency-Key and are repeated once
 * when the connection breaks. */
enum err cli_request(struct cli *cli, const char *method, const char *target, const json_t *body,
                     struct cli_answer *answer, struct error *e) MUST_CHECK;
/* The same, with the body left on the wire for the caller. */
enum err cli_open(struct cli *cli, const struct http_client_request *request,
                  struct http_client_response **out, struct error *e) MUST_CHECK;
/* Host and port of an https:// server; the texts live in the arena. ERR_INVALID: it is none. */
enum err cli_server_split(struct cli *cli, struct http_client_options *out, struct error *e)
    MUST_CHECK;
/* Turns a problem document into an error. */
enum err cli_problem(unsigned status, const json_t *problem, struct error *e) MUST_CHECK;
/* All pages of a list, as one array; *out is the caller's. */
enum err cli_list(struct cli *cli, const char *target, json_t **out, struct error *e) MUST_CHECK;
/* The first `max` of it, with no more pages than that takes. */
enum err cli_list_some(struct cli *cli, const char *target, size_t max, json_t **out,
                       struct error *e) MUST_CHECK;

/* The id a person's word stands for: an id as it is, or the name of a live workload. */
enum err cli_workload_id(struct cli *cli, const char *word, struct str *out, struct error *e)
    MUST_CHECK;

/* The same for the values of OPTION_WORKLOAD: before a query is made of them. */
enum err cli_resolve_options(struct cli *cli, struct error *e) MUST_CHECK;

/* ---- printing -------------------------------------------------------------------------------- */

bool cli_is_terminal(void); /* stdout is one: colours, progress */
/* Prints an object or an array in the format asked for. */
void cli_print(const struct cli *cli, const json_t *value, const struct cli_column *columns,
               size_t column_count);
/* Follows "a.b.c". NULL: absent. */
const json_t *cli_field(const json_t *object, const char *path);
/* A field that is a text; "" where there is none. */
const char *cli_text(const json_t *object, const char *field);
/* JSON that also a terminal can be shown; flags of jansson. */
void cli_add_json(struct buf *out, const json_t *value, size_t flags);

/* The generic command: one request an argument, the answer printed. */
enum cli_exit cli_run_request(struct cli *cli);

#endif
