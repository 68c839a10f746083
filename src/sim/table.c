#include "sim/table.h"

#include <string.h>

static size_t split(struct str line, struct str fields[COLUMNS_MAX])
{
    size_t count = 0;
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    for (bool is_last = false; !is_last && count < COLUMNS_MAX;) {
        is_last = memchr(line.data, ',', line.size) == NULL;
        fields[count++] = str_cut(&line, ',');
    }
    return count;
}

void table_open(struct table *table, struct str text)
{
    *table = (struct table){ .rest = text, .line = 1 };
    table->column_count = split(str_cut(&table->rest, '\n'), table->names);
}

static bool is_blank(struct str line)
{
    return line.size == 0 || str_is(line, "\r");
}

bool table_next(struct table *table, enum err *rc, struct error *e)
{
    struct str line = { 0 };
    *rc = ERR_OK;
    while (is_blank(line) && table->rest.size > 0) {
        table->line++;
        line = str_cut(&table->rest, '\n');
    }
    if (is_blank(line))
        return false;
    size_t count = split(line, table->fields);
    if (count == table->column_count)
        return true;
    *rc = err_set(e, ERR_INVALID, "line %zu: %zu columns, the header has %zu", table->line, count,
                  table->column_count);
    return false;
}

bool table_text(const struct table *table, const char *name, struct str *out)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (!str_is(table->names[i], name))
            continue;
        *out = table->fields[i];
        return true;
    }
    return false;
}

enum err table_number(const struct table *table, const char *name, int64_t *out, struct error *e)
{
    struct str text = { 0 };
    if (!table_text(table, name, &text))
        return err_set(e, ERR_INVALID, "there is no column \"%s\"", name);
    if (!str_to_i64(text, 0, INT64_C(1) << 40, out))
        return err_set(e, ERR_INVALID, "line %zu: %s \"%.*s\" is no number", table->line, name,
                       STR_ARG(text));
    return ERR_OK;
}
