#include "cli/ignore.h"

#include <fnmatch.h>
#include <string.h>

struct ignore_rule {
    struct str dir;      /* where its file lies */
    const char *pattern; /* without leading and final slash */
    bool is_negated, is_dir_only, is_anchored;
    struct ignore_rule *before; /* the rule that came before */
};

void ignore_done(struct ignore *ignore)
{
    arena_done(&ignore->arena);
    ignore->last = NULL;
}

static void rule_add(struct ignore *ignore, struct str dir, struct str line)
{
    struct ignore_rule rule = { .dir = dir, .before = ignore->last };
    while (line.size > 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == '\r'))
        line.size--;
    if (line.size == 0 || line.data[0] == '#')
        return;
    if (line.data[0] == '!') {
        rule.is_negated = true;
        line = (struct str){ line.data + 1, line.size - 1 };
    }
    if (line.size > 0 && line.data[line.size - 1] == '/') {
        rule.is_dir_only = true;
        line.size--;
    }
    rule.is_anchored = memchr(line.data, '/', line.size) != NULL;
    if (line.size > 0 && line.data[0] == '/')
        line = (struct str){ line.data + 1, line.size - 1 };
    if (line.size == 0)
        return;
    rule.pattern = str_c(&ignore->arena, line);
    ignore->last = arena_new(&ignore->arena, 1, sizeof(rule));
    *ignore->last = rule;
}

void ignore_add(struct ignore *ignore, struct str dir, struct str lines)
{
    struct str kept_dir = str_copy(&ignore->arena, dir);
    struct str rest = lines;
    while (rest.size > 0)
        rule_add(ignore, kept_dir, str_cut(&rest, '\n'));
}

/* `**` crosses directories, everything else does not. */
static bool pattern_matches(const char *pattern, const char *path)
{
    int flags = strstr(pattern, "**") != NULL ? 0 : FNM_PATHNAME;
    if (fnmatch(pattern, path, flags) == 0)
        return true;
    /* "**" followed by a slash also stands for no directory at all. */
    return strncmp(pattern, "**/", 3) == 0 && fnmatch(pattern + 3, path, flags) == 0;
}

static bool rule_matches(const struct ignore_rule *rule, const char *path, bool is_dir)
{
    if (rule->is_dir_only && !is_dir)
        return false;
    if (rule->dir.size > 0) {
        if (strncmp(path, rule->dir.data, rule->dir.size) != 0 || path[rule->dir.size] != '/')
            return false;
        path += rule->dir.size + 1;
    }
    const char *base = strrchr(path, '/');
    return rule->is_anchored ? pattern_matches(rule->pattern, path)
                             : fnmatch(rule->pattern, base != NULL ? base + 1 : path, 0) == 0;
}

bool ignore_matches(const struct ignore *ignore, struct str path, bool is_dir)
{
    AUTO(arena) struct arena arena = { 0 };
    const char *text = str_c(&arena, path);
    for (const struct ignore_rule *rule = ignore->last; rule != NULL; rule = rule->before) {
        if (rule_matches(rule, text, is_dir))
            return !rule->is_negated;
    }
    return false;
}
