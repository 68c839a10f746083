#include "api/filter.h"

#include <assert.h>
#include <string.h>

#include "wire/spec_json.h"

enum err refuse_name(const char *name, const struct enum_names *names, struct error *e)
{
    AUTO(buf) struct buf list = { 0 };

    for (size_t i = 0; i < names->count; i++) {
        if (names->names[i] != NULL && names->names[i][0] != '\0')
            buf_format(&list, "%s%s", list.size > 0 ? ", " : "", names->names[i]);
    }
    return err_field(e, name, "%s: must be one of: %.*s", name, STR_ARG(buf_str(&list)));
}

static enum err parse_states(struct str text, uint64_t *out, struct error *e)
{
    unsigned state = 0;

    static_assert(WL_STATE_COUNT <= 64, "a bit for every state");
    while (text.size > 0) {
        struct str name = str_cut(&text, ',');
        if (!enum_parse(&workload_state_names, name, &state))
            return refuse_name("state", &workload_state_names, e);
        *out |= UINT64_C(1) << state;
    }
    return ERR_OK;
}

enum err workload_filter_parse(const struct workload_filter_text *text, struct workload_filter *out,
                               struct error *e)
{
    struct workload_filter filter = { .user = text->user, .has_array = text->array.data != NULL };
    struct str label = text->label;
    enum err rc = parse_states(text->state, &filter.states, e);
    if (rc != ERR_OK)
        return rc;
    if (label.data != NULL && memchr(label.data, '=', label.size) == NULL)
        return err_field(e, "label", "label: NAME=VALUE is wanted");
    filter.label_name = str_cut(&label, '=');
    filter.label_value = label;
    if (filter.has_array && !id_parse(ID_ARRAY, text->array, &filter.array))
        return err_field(e, "array", "array: must be an id that begins with \"arr_\"");
    *out = filter;
    return ERR_OK;
}

bool workload_filter_is_set(const struct workload_filter *filter)
{
    return filter->states != 0 || filter->has_array || filter->user.data != NULL ||
           filter->label_name.size > 0 || filter->path.size > 0;
}

static bool is_within(struct str path, struct str top)
{
    return str_starts(path, top) && (path.size == top.size || path.data[top.size] == '/');
}

bool workload_filter_takes(const struct workload_filter *filter,
                           const struct workload_traits *traits)
{
    return (filter->states == 0 || (filter->states >> traits->state & 1) != 0) &&
           (!filter->has_array ||
            (!id_is_none(traits->array) && id_eq(traits->array, filter->array))) &&
           (filter->user.data == NULL || str_eq(traits->user, filter->user)) &&
           (filter->path.size == 0 || is_within(traits->path, filter->path));
}

bool workload_filter_takes_spec(const struct workload_filter *filter, struct str spec_json)
{
    AUTO(arena) struct arena arena = { 0 };
    struct workload_spec spec = { 0 };

    if (filter->label_name.size == 0)
        return true;
    if (workload_spec_parse(spec_json, &arena, &spec, NULL) != ERR_OK)
        return false;
    for (size_t i = 0; i < spec.labels.count; i++)
        if (str_eq(spec.labels.items[i].name, filter->label_name))
            return str_eq(spec.labels.items[i].value, filter->label_value);
    return false;
}
