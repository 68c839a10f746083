/*
 * import.h - tenants, projects and quotas out of what other systems keep: the tree that all readers
 * fill, what of it becomes a manifest, and what could not be carried over, with lines.
 *
 * A reader names its objects as its file does and gives their parents by name; links, paths and
 * names of ours are made at the end, when all are known.
 */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include "base/map.h"
#include "cli/cli.h"
#include "model/record.h"

enum {
    IMPORT_BYTES_MAX = 4 * 1024 * 1024,
    IMPORT_NODES_MAX = 10000,
    IMPORT_CLASSES_MAX = 64, /* of one file */
    IMPORT_NOTES_MAX = 2000,
    IMPORT_LINE_MAX = 65536
};
#define IMPORT_MILLI_MAX INT64_C(1000000000000)

/* Amounts of one class; UNSET is not written. */
struct import_row {
    size_t class_index; /* in import.classes */
    size_t line;
    int64_t quota_milli, limit_milli, lend_limit_milli, weight;
    int64_t quota_read, limit_read; /* as the file has them, for the sums; 0: none */
    int64_t borrow_milli;           /* Kueue: on top of the quota; UNBOUNDED: no bound */
};

struct import_node {
    struct str key;        /* by which it is found; as a rule its name */
    struct str theirs;     /* its name */
    struct str parent_key; /* empty: at the top */
    size_t line;
    int64_t priority; /* UNSET: not said */
    int64_t weight;   /* of every class; UNSET: not said */
    bool is_forced;
    VEC(struct import_row) rows;
    /* By import_link: */
    struct import_node *parent, *first_child, *last_child, *next_sibling;
    struct str path; /* "amber/vision" */
    int64_t below;   /* scratch of settle(): what its children have of a class */
    size_t depth;
    bool is_linked;
};

/* What the file says of a class in all, and what the manifest does. */
struct import_class {
    struct str name;
    int64_t quota_before, limit_before, quota_after, limit_after;
};

struct import_alias {
    struct str theirs, ours;
};

struct import_note {
    size_t line; /* 0: of the file as a whole */
    size_t order;
    const char *text;
};

struct import {
    struct arena arena;
    bool adds_up; /* a parent's amounts come on top of its children's, in the file */
    void (*settle)(struct import *import); /* of the reader, once all is linked; NULL: nothing */
    struct str_map by_name;
    VEC(struct import_node *) nodes; /* as they were found; in the arena but for their rows */
    struct import_node *first_child, *last_child; /* at the top */
    VEC(struct import_class) classes;
    VEC(struct import_alias) aliases; /* given on the command line */
    VEC(struct import_note) notes;
    size_t notes_left_out;
};

void import_done(struct import *import);
DEFINE_CLEANUP_AT(import, struct import, import_done)

/* "a100=a100-80g"; ERR_INVALID: it is not of that form. */
enum err import_alias_add(struct import *import, const char *text, struct error *e) MUST_CHECK;

/* ---- for readers --------------------------------------------------------------------------- */

typedef enum err import_reader(struct import *import, struct str text, struct error *e);
import_reader import_slurm, import_kueue, import_kai;

/* ERR_INVALID: it was there already; ERR_LIMIT: too many. */
enum err import_add(struct import *import, struct str key, size_t line, struct import_node **out,
                    struct error *e) MUST_CHECK;
struct import_node *import_find(const struct import *import, struct str key); /* NULL: none */

/* The row of a class that the file names so. NULL: there is no class for it, which is noted: a name
 * that says no model (`needs_alias`) has to be given one; or there are too many. */
struct import_row *import_row(struct import *import, struct import_node *node, struct str theirs,
                              bool needs_alias);
/* That of a class by its place in import.classes; made when there is none. */
struct import_row *import_row_of(struct import_node *node, size_t class);
/* What could not be carried over, or not as it was. Cut when it is long. */
void import_note(struct import *import, size_t line, const char *fmt, ...) PRINTF(3, 4);
/* "8", "0.5", "500m", "2k" in thousandths. */
bool import_milli(struct str text, int64_t *out);

/* ---- after them ---------------------------------------------------------------------------- */

/* Parents, paths and names; the sums. ERR_INVALID: a parent is missing, or is its own. */
enum err import_link(struct import *import, struct error *e) MUST_CHECK;
/* The manifest, parents first. */
void import_manifest(const struct import *import, bool is_forced, struct buf *out);
/* For people: what becomes what, sums before and after, and the notes. */
void import_report(struct import *import, const char *file, struct buf *out);
/* Parents first; NULL: no more. */
const struct import_node *import_next(const struct import_node *node);

#endif
