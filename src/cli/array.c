#include "cli/array.h"

#include <stdlib.h>
#include <string.h>

#include "cli/special.h"

const struct cli_column array_columns[] = {
    { "ARRAY", "array", COLUMN_TEXT },       { "NAME", "name", COLUMN_TEXT },
    { "PROJECT", "project", COLUMN_TEXT },   { "ELEMENTS", "elements", COLUMN_TEXT },
    { "ACTED_ON", "acted_on", COLUMN_TEXT }, { "STATES", "states", COLUMN_COUNTS },
};
const size_t array_column_count = COUNT_OF(array_columns);

const struct cli_column array_explain_columns[] = {
    { "ELEMENTS", "elements", COLUMN_TEXT }, { "STATE", "state", COLUMN_TEXT },
    { "CAUSE", "cause", COLUMN_TEXT },       { "FIRST", "first", COLUMN_TEXT },
    { "DETAIL", "detail", COLUMN_TEXT },
};
const size_t array_explain_column_count = COUNT_OF(array_explain_columns);

static int by_index(const void *a, const void *b)
{
    const json_t *const *one = a;
    const json_t *const *other = b;
    json_int_t first = json_integer_value(json_object_get(*one, "array_index"));
    json_int_t second = json_integer_value(json_object_get(*other, "array_index"));
    return (first > second) - (first < second);
}

static json_t *sorted(json_t *by_id)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    json_t *list = json_array();
    json_t **items = mem_new(json_object_size(by_id), sizeof(*items));
    json_object_foreach(by_id, key, value)
    {
        items[count++] = value;
    }
    if (count > 0)
        qsort(items, count, sizeof(*items), by_index);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append(list, items[i]);
    mem_free(items);
    return list;
}

/* Memory is asked first: what leaves it in between is then seen in the store. */
enum err array_elements(struct cli *cli, struct str id, enum array_depth depth, json_t **out,
                        struct error *e)
{
    static const char *const queries[] = {
        [ARRAY_IN_MEMORY] = "", [ARRAY_WHOLE] = "&history=true"
    };
    AUTO(json) json_t *by_id = json_object();
    for (size_t q = 0; q <= (size_t)depth; q++) {
        AUTO(json) json_t *items = NULL;
        const char *target = arena_format(&cli->arena, "/v1/workloads?limit=1000&array=%.*s%s",
                                          STR_ARG(id), queries[q]);
        enum err rc = cli_list(cli, target, &items, e);
        if (rc != ERR_OK)
            return rc;
        for (size_t i = 0; i < json_array_size(items); i++) {
            json_t *item = json_array_get(items, i);
            if (json_object_get(by_id, cli_text(item, "id")) == NULL)
                (void)json_object_set(by_id, cli_text(item, "id"), item);
        }
    }
    if (json_object_size(by_id) == 0 && depth == ARRAY_WHOLE)
        return err_set(e, ERR_NOT_FOUND, "there is no array \"%.*s\"", STR_ARG(id));
    *out = sorted(by_id);
    return ERR_OK;
}

/* "train.3" is an element of "train". */
static json_t *name_of_all(const json_t *element)
{
    const char *name = cli_text(element, "name");
    const char *dot = strrchr(name, '.');
    return json_stringn(name, dot != NULL ? (size_t)(dot - name) : strlen(name));
}

static json_t *states_of(const json_t *elements)
{
    json_t *states = json_object();
    for (size_t i = 0; i < json_array_size(elements); i++) {
        const char *state = cli_text(json_array_get(elements, i), "state");
        json_int_t before = json_integer_value(json_object_get(states, state));
        (void)json_object_set_new(states, state, json_integer(before + 1));
    }
    return states;
}

enum err array_summary(struct cli *cli, struct str id, json_t **out, struct error *e)
{
    AUTO(json) json_t *elements = NULL;
    enum err rc = array_elements(cli, id, ARRAY_WHOLE, &elements, e);
    if (rc != ERR_OK)
        return rc;
    const json_t *first = json_array_get(elements, 0);
    json_t *summary = json_object();
    (void)json_object_set_new(summary, "array", json_stringn(id.data, id.size));
    (void)json_object_set_new(summary, "name", name_of_all(first));
    (void)json_object_set_new(summary, "project", json_string(cli_text(first, "project")));
    (void)json_object_set_new(summary, "user", json_string(cli_text(first, "user")));
    (void)json_object_set_new(summary, "elements",
                              json_integer((json_int_t)json_array_size(elements)));
    (void)json_object_set_new(summary, "states", states_of(elements));
    *out = summary;
    return ERR_OK;
}

/* What each verb changes; the others leave an element as it is. */
static bool acts_on(const char *verb, const char *name)
{
    static const struct {
        const char *verb;
        enum workload_state one, other;
    } rows[] = {
        { "hold", WL_QUEUED, WL_PROVISIONING },
        { "release", WL_HELD, WL_HELD },
        { "requeue", WL_STARTING, WL_RUNNING },
    };
    enum workload_state state = cli_state(name);
    if (strcmp(verb, "cancel") == 0)
        return !workload_state_is_final(state);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (strcmp(rows[i].verb, verb) == 0)
            return state == rows[i].one || state == rows[i].other;
    }
    return false;
}

enum err array_count_for(struct cli *cli, struct str id, const char *verb, json_int_t *count,
                         struct error *e)
{
    AUTO(json) json_t *elements = NULL;
    enum err rc = array_elements(cli, id, ARRAY_WHOLE, &elements, e);
    if (rc != ERR_OK)
        return rc;
    *count = 0;
    for (size_t i = 0; i < json_array_size(elements); i++)
        *count += acts_on(verb, cli_text(json_array_get(elements, i), "state"));
    return ERR_OK;
}

static json_t *row_for(json_t *rows, const json_t *element)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        if (strcmp(cli_text(row, "state"), cli_text(element, "state")) == 0 &&
            strcmp(cli_text(row, "cause"), cli_text(element, "cause")) == 0)
            return row;
    }
    json_t *row = json_object();
    (void)json_array_append_new(rows, row);
    (void)json_object_set_new(row, "state", json_string(cli_text(element, "state")));
    (void)json_object_set_new(row, "cause", json_string(cli_text(element, "cause")));
    (void)json_object_set_new(row, "detail", json_string(cli_text(element, "detail")));
    (void)json_object_set_new(row, "first", json_string(cli_text(element, "id")));
    return row;
}

enum err array_explain(struct cli *cli, struct str id, json_t *rows, struct error *e)
{
    AUTO(json) json_t *elements = NULL;
    enum err rc = array_elements(cli, id, ARRAY_WHOLE, &elements, e);
    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < json_array_size(elements); i++) {
        json_t *row = row_for(rows, json_array_get(elements, i));
        json_int_t before = json_integer_value(json_object_get(row, "elements"));
        (void)json_object_set_new(row, "elements", json_integer(before + 1));
    }
    return ERR_OK;
}
