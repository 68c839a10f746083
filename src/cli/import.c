#include "cli/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/safe.h"

void import_done(struct import *import)
{
    for (size_t i = 0; i < import->nodes.count; i++)
        vec_done(&import->nodes.items[i]->rows);
    vec_done(&import->nodes);
    vec_done(&import->classes);
    vec_done(&import->aliases);
    vec_done(&import->notes);
    str_map_done(&import->by_name);
    arena_done(&import->arena);
}

/* ---- what readers say ---------------------------------------------------------------------- */

enum err import_alias_add(struct import *import, const char *text, struct error *e)
{
    struct str ours = str_copy(&import->arena, str_of(text));
    struct str theirs = str_cut(&ours, '=');
    if (theirs.size == 0 || ours.size == 0)
        return err_set(e, ERR_INVALID, "--class: \"%s\" is not NAME=CLASS", text);
    const struct import_alias alias = { theirs, ours };
    vec_push(&import->aliases, alias);
    return ERR_OK;
}

enum err import_add(struct import *import, struct str key, size_t line, struct import_node **out,
                    struct error *e)
{
    const struct import_node *before = import_find(import, key);
    if (key.size == 0)
        return err_set(e, ERR_INVALID, "line %zu: a name is missing", line);
    if (before != NULL)
        return err_set(e, ERR_INVALID, "line %zu: \"%.*s\" is there already, in line %zu", line,
                       STR_ARG(key), before->line);
    if (import->nodes.count == IMPORT_NODES_MAX)
        return err_set(e, ERR_LIMIT, "line %zu: more than %d queues or accounts", line,
                       IMPORT_NODES_MAX);
    struct import_node *node = arena_new(&import->arena, 1, sizeof(*node));
    struct str kept = str_copy(&import->arena, key);
    *node = (struct import_node){
        .key = kept, .theirs = kept, .line = line, .priority = UNSET, .weight = UNSET
    };
    str_map_put(&import->by_name, node->key, node);
    vec_push(&import->nodes, node);
    *out = node;
    return ERR_OK;
}

struct import_node *import_find(const struct import *import, struct str key)
{
    return str_map_get(&import->by_name, key);
}

void import_note(struct import *import, size_t line, const char *fmt, ...)
{
    char text[512];
    va_list args;
    if (import->notes.count == IMPORT_NOTES_MAX) {
        import->notes_left_out++;
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    const struct import_note note = { line, import->notes.count,
                                      arena_format(&import->arena, "%s", text) };
    vec_push(&import->notes, note);
}

static bool is_name_char(char c, bool is_inside)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (is_inside && (c == '-' || c == '.' || c == '_'));
}

/* As names of ours are: other characters become a dash inside, and go at the ends. */
static struct str own_name(struct import *import, struct str theirs)
{
    char *out = arena_new(&import->arena, theirs.size + 1, 1);
    size_t size = 0;
    for (size_t i = 0; i < theirs.size && size < NAME_MAX_BYTES; i++) {
        char c = theirs.data[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (!is_name_char(c, true))
            c = '-';
        if (size > 0 || is_name_char(c, false))
            out[size++] = c;
    }
    while (size > 0 && !is_name_char(out[size - 1], false))
        size--;
    return (struct str){ out, size };
}

/* The name of the class that is meant; data NULL: none was given. */
static struct str class_named(const struct import *import, struct str theirs, bool needs_alias)
{
    for (size_t i = 0; i < import->aliases.count; i++) {
        if (str_eq(import->aliases.items[i].theirs, theirs))
            return import->aliases.items[i].ours;
    }
    return needs_alias ? (struct str){ 0 } : theirs;
}

/* Its place among the classes; SIZE_MAX: there is none for it. */
static size_t class_index(struct import *import, struct str theirs, bool needs_alias)
{
    struct str name = own_name(import, class_named(import, theirs, needs_alias));
    for (size_t i = 0; name.size > 0 && i < import->classes.count; i++) {
        if (str_eq(import->classes.items[i].name, name))
            return i;
    }
    if (name.size == 0 || import->classes.count == IMPORT_CLASSES_MAX)
        return SIZE_MAX;
    const struct import_class class = { .name = name };
    vec_push(&import->classes, class);
    return import->classes.count - 1;
}

struct import_row *import_row_of(struct import_node *node, size_t class)
{
    for (size_t i = 0; i < node->rows.count; i++) {
        if (node->rows.items[i].class_index == class)
            return &node->rows.items[i];
    }
    const struct import_row row = { .class_index = class,
                                    .line = node->line,
                                    .quota_milli = UNSET,
                                    .limit_milli = UNSET,
                                    .lend_limit_milli = UNSET,
                                    .weight = UNSET,
                                    .borrow_milli = UNBOUNDED };
    vec_push(&node->rows, row);
    return &node->rows.items[node->rows.count - 1];
}

struct import_row *import_row(struct import *import, struct import_node *node, struct str theirs,
                              bool needs_alias)
{
    size_t class = class_index(import, theirs, needs_alias);
    return class != SIZE_MAX ? import_row_of(node, class) : NULL;
}

bool import_milli(struct str text, int64_t *out)
{
    static const struct {
        char suffix;
        int64_t factor;
    } units[] = { { 'k', 1000 }, { 'M', 1000000 } };
    int64_t value = 0;
    if (text.size > 1 && text.data[text.size - 1] == 'm') {
        text.size--;
        return str_to_i64(text, 0, IMPORT_MILLI_MAX, out);
    }
    for (size_t i = 0; text.size > 1 && i < COUNT_OF(units); i++) {
        if (text.data[text.size - 1] != units[i].suffix)
            continue;
        text.size--;
        if (!str_to_milli(text, IMPORT_MILLI_MAX / units[i].factor, &value))
            return false;
        *out = value * units[i].factor;
        return true;
    }
    return str_to_milli(text, IMPORT_MILLI_MAX, out);
}

/* ---- the tree ------------------------------------------------------------------------------ */

static struct import_node *next_of(const struct import_node *node)
{
    if (node->first_child != NULL)
        return node->first_child;
    while (node != NULL && node->next_sibling == NULL)
        node = node->parent;
    return node != NULL ? node->next_sibling : NULL;
}

const struct import_node *import_next(const struct import_node *node)
{
    return next_of(node);
}

static void append(struct import_node **first, struct import_node **last, struct import_node *node)
{
    if (*first == NULL)
        *first = node;
    else
        (*last)->next_sibling = node;
    *last = node;
}

static enum err find_parents(struct import *import, struct error *e)
{
    for (size_t i = 0; i < import->nodes.count; i++) {
        struct import_node *node = import->nodes.items[i];
        if (node->parent_key.size == 0) {
            append(&import->first_child, &import->last_child, node);
            continue;
        }
        node->parent = import_find(import, node->parent_key);
        if (node->parent == NULL)
            return err_set(e, ERR_INVALID, "line %zu: the parent \"%.*s\" of \"%.*s\" is not there",
                           node->line, STR_ARG(node->parent_key), STR_ARG(node->theirs));
        append(&node->parent->first_child, &node->parent->last_child, node);
    }
    return ERR_OK;
}

/* Is another one before it called so, below the same parent? */
static bool is_taken(const struct import_node *first, const struct import_node *node,
                     struct str path)
{
    const struct import_node *other = first;
    while (other != node && !str_eq(other->path, path))
        other = other->next_sibling;
    return other != node;
}

enum { TRIES_MAX = 1000 };

static enum err name_node(struct import *import, struct import_node *node, struct error *e)
{
    struct str name = own_name(import, node->theirs);
    const struct import_node *first =
        node->parent != NULL ? node->parent->first_child : import->first_child;
    struct str above = node->parent != NULL ? node->parent->path : (struct str){ 0 };
    const char *slash = node->parent != NULL ? "/" : "";
    if (name.size == 0)
        return err_set(e, ERR_INVALID, "line %zu: \"%.*s\" has no letter or digit", node->line,
                       STR_ARG(node->theirs));
    node->path =
        str_of(arena_format(&import->arena, "%.*s%s%.*s", STR_ARG(above), slash, STR_ARG(name)));
    name.size = MIN_OF(name.size, (size_t)NAME_MAX_BYTES - 5);
    for (unsigned n = 2; is_taken(first, node, node->path); n++) {
        if (n > TRIES_MAX)
            return err_set(e, ERR_INVALID, "line %zu: too many are called like \"%.*s\"",
                           node->line, STR_ARG(node->theirs));
        node->path = str_of(
            arena_format(&import->arena, "%.*s%s%.*s-%u", STR_ARG(above), slash, STR_ARG(name), n));
    }
    size_t tail = node->path.size - above.size - strlen(slash);
    struct str last = { node->path.data + node->path.size - tail, tail };
    if (!str_eq(last, node->theirs))
        import_note(import, node->line, "\"%.*s\" is called %.*s", STR_ARG(node->theirs),
                    STR_ARG(node->path));
    return ERR_OK;
}

/* From the top down; who is not reached is below itself. */
static enum err name_all(struct import *import, struct error *e)
{
    for (struct import_node *node = import->first_child; node != NULL; node = next_of(node)) {
        node->depth = node->parent != NULL ? node->parent->depth + 1 : 1;
        node->is_linked = true;
        if (node->depth > PATH_MAX_DEPTH)
            return err_set(e, ERR_LIMIT, "line %zu: \"%.*s\" is more than %d levels deep",
                           node->line, STR_ARG(node->theirs), PATH_MAX_DEPTH);
        enum err rc = name_node(import, node, e);
        if (rc != ERR_OK)
            return rc;
    }
    for (size_t i = 0; i < import->nodes.count; i++) {
        const struct import_node *node = import->nodes.items[i];
        if (!node->is_linked)
            return err_set(e, ERR_INVALID, "line %zu: \"%.*s\" is its own parent, over others",
                           node->line, STR_ARG(node->theirs));
    }
    return ERR_OK;
}

/* ---- sums ---------------------------------------------------------------------------------- */

enum which { QUOTA_READ, LIMIT_READ, QUOTA_WRITTEN, LIMIT_WRITTEN };

static int64_t own_amount(const struct import_node *node, size_t class, enum which which)
{
    for (size_t i = 0; i < node->rows.count; i++) {
        const struct import_row *row = &node->rows.items[i];
        if (row->class_index != class)
            continue;
        const int64_t amounts[] = { row->quota_read, row->limit_read, row->quota_milli,
                                    row->limit_milli };
        return MAX_OF(amounts[which], INT64_C(0));
    }
    return 0;
}

/* Of the topmost that have it: what is below them is part of it, unless the file says otherwise. */
static int64_t sum_of(const struct import *import, size_t class, enum which which)
{
    bool adds_up = import->adds_up && (which == QUOTA_READ || which == LIMIT_READ);
    const struct import_node *node = import->first_child;
    int64_t sum = 0;
    while (node != NULL) {
        int64_t own = own_amount(node, class, which);
        sum += own;
        if (own == 0 || adds_up) {
            node = next_of(node);
            continue;
        }
        while (node != NULL && node->next_sibling == NULL)
            node = node->parent;
        node = node != NULL ? node->next_sibling : NULL;
    }
    return sum;
}

/* Children that are promised more than their parent has, which only force accepts. */
static void mark_overcommitted(struct import *import, struct import_node *node, size_t class)
{
    int64_t own = own_amount(node, class, QUOTA_WRITTEN);
    int64_t below = 0;
    for (const struct import_node *child = node->first_child; child != NULL;
         child = child->next_sibling)
        below += own_amount(child, class, QUOTA_WRITTEN);
    if (own == 0 || below <= own)
        return;
    char has[MILLI_TEXT_MAX];
    char gives[MILLI_TEXT_MAX];
    import_note(import, node->line, "%.*s has %s %.*s and what is below it %s: marked as forced",
                STR_ARG(node->path), milli_text(own, has),
                STR_ARG(import->classes.items[class].name), milli_text(below, gives));
    node->is_forced = true;
    for (struct import_node *child = node->first_child; child != NULL; child = child->next_sibling)
        child->is_forced = true;
}

enum err import_link(struct import *import, struct error *e)
{
    enum err rc = find_parents(import, e);
    if (rc == ERR_OK)
        rc = name_all(import, e);
    if (rc != ERR_OK)
        return rc;
    if (import->settle != NULL)
        import->settle(import);
    for (size_t class = 0; class < import->classes.count; class ++) {
        struct import_class *sums = &import->classes.items[class];
        for (struct import_node *node = import->first_child; node != NULL; node = next_of(node))
            mark_overcommitted(import, node, class);
        sums->quota_before = sum_of(import, class, QUOTA_READ);
        sums->limit_before = sum_of(import, class, LIMIT_READ);
        sums->quota_after = sum_of(import, class, QUOTA_WRITTEN);
        sums->limit_after = sum_of(import, class, LIMIT_WRITTEN);
    }
    return ERR_OK;
}

/* ---- what comes out ------------------------------------------------------------------------ */

static void put_amount(struct buf *out, const char *field, int64_t amount)
{
    if (amount != UNSET)
        buf_format(out, "      %s: %lld\n", field, (long long)amount);
}

static void put_row(const struct import *import, const struct import_row *row, int64_t weight,
                    struct buf *out)
{
    buf_format(out, "    - class: \"%.*s\"\n",
               STR_ARG(import->classes.items[row->class_index].name));
    put_amount(out, "quota_milli", row->quota_milli);
    put_amount(out, "limit_milli", row->limit_milli);
    put_amount(out, "lend_limit_milli", row->lend_limit_milli);
    put_amount(out, "over_quota_weight", row->weight != UNSET ? row->weight : weight);
}

static void put_node(const struct import *import, const struct import_node *node, bool is_forced,
                     struct buf *out)
{
    buf_format(out, "---\n# line %zu\nkind: %s\nmetadata:\n  name: \"%.*s\"\nspec:", node->line,
               node->parent == NULL ? "Tenant" : "Project", STR_ARG(node->path));
    bool is_marked = is_forced || node->is_forced;
    if (node->priority == UNSET && node->rows.count == 0 && !is_marked) {
        buf_add_text(out, " {}\n");
        return;
    }
    buf_add_char(out, '\n');
    if (node->priority != UNSET)
        buf_format(out, "  priority: %lld\n", (long long)node->priority);
    if (is_marked)
        buf_add_text(out, "  is_forced: true\n");
    if (node->rows.count > 0)
        buf_add_text(out, "  quotas:\n");
    for (size_t i = 0; i < node->rows.count; i++)
        put_row(import, &node->rows.items[i], node->weight, out);
}

void import_manifest(const struct import *import, bool is_forced, struct buf *out)
{
    for (const struct import_node *node = import->first_child; node != NULL; node = next_of(node))
        put_node(import, node, is_forced, out);
}

static void put_sum(const struct import_class *class, const char *what, int64_t before,
                    int64_t after, struct buf *out)
{
    char texts[2][MILLI_TEXT_MAX];
    if (before != 0 || after != 0)
        buf_format(out, "%.*s: %s %s in the file, %s in the manifest\n", STR_ARG(class->name), what,
                   milli_text(before, texts[0]), milli_text(after, texts[1]));
}

/* Limits that the file has none of follow from its other rules. */
static void put_sums(const struct import_class *class, struct buf *out)
{
    put_sum(class, "quota", class->quota_before, class->quota_after, out);
    if (class->limit_before != 0)
        put_sum(class, "limit", class->limit_before, class->limit_after, out);
}

static int compare_notes(const void *a, const void *b)
{
    const struct import_note *x = a;
    const struct import_note *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

void import_report(struct import *import, const char *file, struct buf *out)
{
    size_t tenants = 0;
    for (const struct import_node *node = import->first_child; node != NULL;
         node = node->next_sibling)
        tenants++;
    buf_format(out, "%zu tenants, %zu projects below them\n", tenants,
               import->nodes.count - tenants);
    for (size_t i = 0; i < import->classes.count; i++)
        put_sums(&import->classes.items[i], out);
    if (import->notes.count > 0) {
        qsort(import->notes.items, import->notes.count, sizeof(*import->notes.items),
              compare_notes);
        buf_add_text(out, "not carried over, or not as it was:\n");
    }
    for (size_t i = 0; i < import->notes.count; i++) {
        const struct import_note *note = &import->notes.items[i];
        safe_line(str_of(file), out);
        if (note->line > 0)
            buf_format(out, ":%zu", note->line);
        buf_add_text(out, ": ");
        safe_line(str_of(note->text), out);
        buf_add_char(out, '\n');
    }
    if (import->notes_left_out > 0)
        buf_format(out, "and %zu more\n", import->notes_left_out);
}
