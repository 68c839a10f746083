/*
 * import_slurm.c - accounts out of Slurm's accounting: the file of `sacctmgr dump CLUSTER`, or the
 * table of `sacctmgr --parsable2 show assoc` with its header.
 *
 * Slurm guarantees nothing: GrpTRES of an account is a ceiling and becomes a limit, its shares the
 * weight in dividing what is there. Users, QOS, and limits of counts and times have no
 * counterpart.
 */
#include <assert.h>
#include <string.h>

#include "cli/import.h"

enum { FIELDS_MAX = 128, SHARES_MAX = 1000000 };

struct slurm {
    struct import *import;
    size_t line;
    struct str parent; /* of a dump: set by its `Parent` lines */
    struct str cluster;
    size_t users;
    unsigned told;     /* a bit for each of `common` */
    bool has_clusters; /* of a dump: a `Cluster` line was read */
    struct str columns[FIELDS_MAX];
    size_t column_count;
};

/* One account or user, however it was written. */
struct entry {
    struct str name, parent;
    struct buf left; /* names of what has no counterpart */
};

/* ---- fields -------------------------------------------------------------------------------- */

/* TRES is a list: "cpu=200,gres/gpu=16,gres/gpu:a100=8". */
static bool has_typed_gpus(struct str list)
{
    while (list.size > 0) {
        if (str_starts(str_cut(&list, ','), STR("gres/gpu:")))
            return true;
    }
    return false;
}

static enum err add_limit(struct slurm *s, struct import_node *node, struct str name,
                          struct str amount, struct error *e)
{
    struct import *import = s->import;
    bool is_typed = str_starts(name, STR("gres/gpu:"));
    int64_t milli = 0;
    if (str_is(amount, "-1"))
        return ERR_OK; /* none */
    bool is_known = is_typed || str_is(name, "gres/gpu") || str_is(name, "cpu");
    struct str theirs = is_typed              ? (struct str){ name.data + 9, name.size - 9 }
                        : str_is(name, "cpu") ? name
                                              : STR("gpu");
    struct import_row *row = is_known ? import_row(import, node, theirs, !is_typed) : NULL;
    if (row == NULL) {
        import_note(import, s->line, "GrpTRES %.*s=%.*s: no class is known for it%s%.*s%s",
                    STR_ARG(name), STR_ARG(amount), is_known ? " (--class " : "",
                    is_known ? (int)theirs.size : 0, is_known ? theirs.data : "",
                    is_known ? "=NAME)" : "");
        return ERR_OK;
    }
    if (!import_milli(amount, &milli))
        return err_set(e, ERR_INVALID, "line %zu: GrpTRES: \"%.*s\" is not a number", s->line,
                       STR_ARG(amount));
    row->limit_milli = row->limit_read = milli;
    return ERR_OK;
}

static enum err add_limits(struct slurm *s, struct import_node *node, struct str list,
                           struct error *e)
{
    bool is_typed = has_typed_gpus(list);
    enum err rc = ERR_OK;
    while (list.size > 0 && rc == ERR_OK) {
        struct str amount = str_cut(&list, ',');
        struct str name = str_cut(&amount, '=');
        if (str_is(name, "gres/gpu") && is_typed) {
            import_note(s->import, s->line, "GrpTRES gres/gpu=%.*s: the types beside it are taken",
                        STR_ARG(amount));
            continue;
        }
        rc = add_limit(s, node, name, amount, e);
    }
    return rc;
}

static void add_shares(struct slurm *s, struct import_node *node, struct str text)
{
    if (!str_to_i64(text, 0, INT64_MAX, &node->weight)) {
        import_note(s->import, s->line, "Fairshare=%.*s: 100 instead", STR_ARG(text));
        node->weight = UNSET;
        return;
    }
    if (node->weight > SHARES_MAX) {
        import_note(s->import, s->line, "Fairshare=%.*s: %d instead", STR_ARG(text), SHARES_MAX);
        node->weight = SHARES_MAX;
    }
}

static size_t find_name(const char *const *names, size_t count, struct str name)
{
    size_t i = 0;
    while (i < count && !str_is(name, names[i]))
        i++;
    return i;
}

/* What every line has, and is no limit, is told once. */
static const char *const common[] = { "Description", "Organization", "Coordinator", "AdminLevel",
                                      "QOS",         "Def QOS",      "DefaultQOS",  "Partition" };

static bool is_told(struct slurm *s, struct str name)
{
    static const char *const used[] = { "DefaultAccount", "Cluster", "Account", "User" };
    static_assert(COUNT_OF(common) <= 8 * sizeof(s->told), "a bit each");
    size_t i = find_name(common, COUNT_OF(common), name);
    if (find_name(used, COUNT_OF(used), name) < COUNT_OF(used))
        return true;
    if (i == COUNT_OF(common))
        return false;
    if ((s->told & 1U << i) == 0)
        import_note(s->import, s->line, "%.*s, here and in other lines", STR_ARG(name));
    s->told |= 1U << i;
    return true;
}

/* A field of an account; `node` NULL: of a user or a cluster, of which nothing is carried over. */
static enum err add_field(struct slurm *s, struct import_node *node, struct entry *entry,
                          struct str name, struct str value, struct error *e)
{
    if (value.size == 0 || is_told(s, name))
        return ERR_OK;
    if (node != NULL && str_is(name, "GrpTRES"))
        return add_limits(s, node, value, e);
    bool is_shares = str_is(name, "Fairshare") || str_is(name, "FairShare") ||
                     str_is(name, "Share") || str_is(name, "RawShares");
    if (is_shares && node != NULL)
        add_shares(s, node, value);
    else if (!is_shares)
        buf_format(&entry->left, "%s%.*s", entry->left.size > 0 ? ", " : "", STR_ARG(name));
    return ERR_OK;
}

static void note_left(struct slurm *s, const char *what, struct entry *entry)
{
    if (entry->left.size > 0)
        import_note(s->import, s->line, "%s %.*s: %s", what, STR_ARG(entry->name),
                    entry->left.data);
    buf_done(&entry->left);
}

/* ---- `sacctmgr dump` ----------------------------------------------------------------------- */

static struct str trimmed(struct str s)
{
    while (s.size > 0 && (s.data[0] == ' ' || s.data[0] == '\t')) {
        s.data++;
        s.size--;
    }
    while (s.size > 0 && (s.data[s.size - 1] == ' ' || s.data[s.size - 1] == '\t'))
        s.size--;
    return s;
}

static struct str unquoted(struct str s)
{
    bool is_quoted =
        s.size >= 2 && (s.data[0] == '\'' || s.data[0] == '"') && s.data[s.size - 1] == s.data[0];
    return is_quoted ? (struct str){ s.data + 1, s.size - 2 } : s;
}

/* Where an option ends: at a colon outside of quotes, but not at that of a typed TRES
 * ("gres/gpu:a100=8"). SIZE_MAX: a quote has no end. */
static size_t option_end(struct str rest)
{
    char quote = '\0';
    size_t word = 0; /* where the item of a list begins */
    for (size_t i = 0; i < rest.size; i++) {
        char c = rest.data[i];
        if (quote != '\0') {
            if (c == quote)
                quote = '\0';
            continue;
        }
        if (c == '\'' || c == '"')
            quote = c;
        if (c == ',' || c == '=')
            word = i + 1;
        if (c == ':' && !str_starts((struct str){ rest.data + word, i - word }, STR("gres/")))
            return i;
    }
    return quote == '\0' ? rest.size : SIZE_MAX;
}

/* Options behind the name: "Fairshare=10:GrpTRES=gres/gpu=8:Description='a b'". */
static enum err add_options(struct slurm *s, struct import_node *node, struct entry *entry,
                            struct str line, struct str rest, struct error *e)
{
    enum err rc = ERR_OK;
    while (rest.size > 0 && rc == ERR_OK) {
        size_t end = option_end(rest);
        if (end == SIZE_MAX)
            return err_set(e, ERR_INVALID, "line %zu, column %zu: a quote has no end", s->line,
                           (size_t)(rest.data - line.data) + 1);
        struct str value = { rest.data, end };
        struct str name = trimmed(str_cut(&value, '='));
        rc = add_field(s, node, entry, name, unquoted(trimmed(value)), e);
        rest.data += MIN_OF(end + 1, rest.size);
        rest.size -= MIN_OF(end + 1, rest.size);
    }
    return rc;
}

static bool is_top(struct str name)
{
    return name.size == 0 || str_is(name, "root");
}

static enum err add_account(struct slurm *s, struct entry *entry, struct import_node **out,
                            struct error *e)
{
    enum err rc = import_add(s->import, entry->name, s->line, out, e);
    if (rc == ERR_OK && !is_top(entry->parent))
        (*out)->parent_key = str_copy(&s->import->arena, entry->parent);
    return rc;
}

/* "Account - 'science':Fairshare=10": what it is of, its name, and its options. */
static enum err dump_line(struct slurm *s, struct str line, struct error *e)
{
    struct str rest = line;
    struct str kind = trimmed(str_cut(&rest, '-'));
    rest = trimmed(rest);
    size_t end = option_end(rest);
    if (rest.size == 0 || end == SIZE_MAX)
        return err_set(e, ERR_INVALID,
                       "line %zu, column %zu: Cluster, Parent, Account or User - 'NAME' is wanted",
                       s->line,
                       rest.size == 0 ? line.size + 1 : (size_t)(rest.data - line.data) + 1);
    struct entry entry = { .name = unquoted(trimmed((struct str){ rest.data, end })),
                           .parent = s->parent };
    struct import_node *node = NULL;
    enum err rc = ERR_OK;
    bool is_root = str_is(kind, "Account") && str_is(entry.name, "root");
    if (str_is(kind, "Parent"))
        s->parent = str_copy(&s->import->arena, entry.name);
    else if (str_is(kind, "Account") && !is_root)
        rc = add_account(s, &entry, &node, e);
    else if (str_is(kind, "Cluster") && s->has_clusters)
        rc = err_set(e, ERR_INVALID, "line %zu: a second cluster; import one by one", s->line);
    else if (!str_is(kind, "Cluster") && !str_is(kind, "User") && !is_root)
        rc = err_set(e, ERR_INVALID,
                     "line %zu, column 1: \"%.*s\" is not Cluster, Parent, Account or User",
                     s->line, (int)MIN_OF(kind.size, (size_t)64), kind.data);
    s->has_clusters = s->has_clusters || str_is(kind, "Cluster");
    s->users += str_is(kind, "User");
    struct str options = { rest.data + MIN_OF(end + 1, rest.size),
                           rest.size - MIN_OF(end + 1, rest.size) };
    if (rc == ERR_OK)
        rc = add_options(s, node, &entry, line, options, e);
    note_left(s,
              str_is(kind, "User")      ? "user"
              : str_is(kind, "Cluster") ? "cluster"
                                        : "account",
              &entry);
    return rc;
}

/* ---- `sacctmgr show assoc` ----------------------------------------------------------------- */

static size_t column_of(const struct slurm *s, const char *name, const char *other)
{
    size_t i = 0;
    while (i < s->column_count && !str_is(s->columns[i], name) && !str_is(s->columns[i], other))
        i++;
    return i;
}

static enum err header_line(struct slurm *s, struct str line, struct error *e)
{
    while (line.size > 0) {
        if (s->column_count == FIELDS_MAX)
            return err_set(e, ERR_LIMIT, "line %zu: more than %d columns", s->line, FIELDS_MAX);
        s->columns[s->column_count++] = str_copy(&s->import->arena, str_cut(&line, '|'));
    }
    if (column_of(s, "Account", "Account") == s->column_count)
        return err_set(e, ERR_INVALID, "line %zu: there is no column Account", s->line);
    if (column_of(s, "ParentName", "Par Name") == s->column_count)
        import_note(s->import, s->line,
                    "no column ParentName: all accounts become tenants (show assoc "
                    "format=cluster,account,parentname,user,fairshare,grptres)");
    return ERR_OK;
}

static enum err one_cluster(struct slurm *s, struct str name, struct error *e)
{
    if (name.data == NULL || str_eq(name, s->cluster))
        return ERR_OK;
    if (s->cluster.data != NULL)
        return err_set(e, ERR_INVALID, "line %zu: a second cluster; import one by one", s->line);
    s->cluster = str_copy(&s->import->arena, name);
    return ERR_OK;
}

/* An account has an association of its own, without a user. */
static enum err assoc_line(struct slurm *s, struct str line, struct error *e)
{
    struct str values[FIELDS_MAX + 1] = { { NULL, 0 } };
    size_t count = 0;
    while (line.size > 0 && count < s->column_count)
        values[count++] = str_cut(&line, '|');
    struct entry entry = { .name = trimmed(values[column_of(s, "Account", "Account")]),
                           .parent = values[column_of(s, "ParentName", "Par Name")] };
    struct str user = values[column_of(s, "User", "User")];
    bool is_account = user.size == 0 && !str_is(entry.name, "root");
    struct import_node *node = NULL;
    enum err rc = one_cluster(s, values[column_of(s, "Cluster", "Cluster")], e);
    if (rc == ERR_OK && is_account)
        rc = add_account(s, &entry, &node, e);
    s->users += user.size > 0;
    for (size_t i = 0; rc == ERR_OK && i < count; i++) {
        bool is_parent = i == column_of(s, "ParentName", "Par Name");
        if (!is_parent)
            rc = add_field(s, node, &entry, s->columns[i], values[i], e);
    }
    note_left(s, user.size > 0 ? "user in" : "account", &entry);
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Shares weigh in every class there is. */
static void settle(struct import *import)
{
    for (size_t i = 0; i < import->nodes.count; i++) {
        struct import_node *node = import->nodes.items[i];
        for (size_t class = 0; node->weight != UNSET && class < import->classes.count; class ++)
            (void)import_row_of(node, class);
    }
    if (import->classes.count == 0)
        import_note(import, 0, "no class is known: shares are left out as well");
}

static enum err read_line(struct slurm *s, struct str line, struct error *e)
{
    if (line.size > IMPORT_LINE_MAX)
        return err_set(e, ERR_LIMIT, "line %zu is longer than %d bytes", s->line, IMPORT_LINE_MAX);
    if (memchr(line.data, '\0', line.size) != NULL || !str_is_utf8(line))
        return err_set(e, ERR_INVALID, "line %zu is not text in UTF-8", s->line);
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    struct str text = trimmed(line);
    if (text.size == 0 || text.data[0] == '#')
        return ERR_OK;
    if (s->column_count > 0)
        return assoc_line(s, line, e);
    bool is_table = memchr(line.data, '|', line.size) != NULL && s->import->nodes.count == 0;
    return is_table ? header_line(s, line, e) : dump_line(s, line, e);
}

enum err import_slurm(struct import *import, struct str text, struct error *e)
{
    struct slurm s = { .import = import };
    enum err rc = ERR_OK;
    import->settle = settle;
    while (text.size > 0 && rc == ERR_OK) {
        s.line++;
        rc = read_line(&s, str_cut(&text, '\n'), e);
    }
    if (rc == ERR_OK && s.users > 0)
        import_note(import, 0, "%zu users: people get tokens (berth token create)", s.users);
    return rc;
}
