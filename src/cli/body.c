/* body.c - options into the fields of a request's body or query. */
#include <string.h>

#include "cli/cli.h"

static const char *field_of(const struct cli_option *option)
{
    return option->field != NULL ? option->field : option->name;
}

static enum err bad(const struct cli_option *option, const char *text, const char *wanted,
                    struct error *e)
{
    return err_set(e, ERR_INVALID, "--%s: \"%s\" is not %s", option->name, text, wanted);
}

/* "512", "512M", "2G", "1T" */
static bool mib_parse(const char *text, int64_t *out)
{
    struct str s = str_of(text);
    int64_t factor = 1;
    if (s.size > 0) {
        char unit = s.data[s.size - 1];
        factor = unit == 'G' ? 1024 : unit == 'T' ? 1024 * 1024 : 1;
        if (factor > 1 || unit == 'M')
            s.size--;
    }
    if (!str_to_i64(s, 0, INT64_MAX / factor, out))
        return false;
    *out *= factor;
    return true;
}

static enum err number_of(const struct cli_option *option, const char *text, int64_t *out,
                          struct error *e)
{
    struct str s = str_of(text);
    if (option->kind == OPTION_MILLI)
        return str_to_milli(s, INT64_MAX / 1000, out)
                   ? ERR_OK
                   : bad(option, text, "a number with up to three decimals", e);
    if (option->kind == OPTION_SECONDS)
        return str_to_seconds(s, INT64_MAX / 1000, out)
                   ? ERR_OK
                   : bad(option, text, "a time such as 90, 5m or 1h30m", e);
    if (option->kind == OPTION_MIB)
        return mib_parse(text, out) ? ERR_OK : bad(option, text, "an amount such as 512M or 2G", e);
    return str_to_i64(s, INT64_MIN, INT64_MAX, out) ? ERR_OK : bad(option, text, "a number", e);
}

static json_t *member(json_t *body, const char *field, json_t *(*make)(void))
{
    json_t *value = json_object_get(body, field);
    if (value == NULL) {
        value = make();
        (void)json_object_set_new(body, field, value);
    }
    return value;
}

static void add_list(json_t *body, const char *field, const char *text)
{
    json_t *list = member(body, field, json_array);
    struct str rest = str_of(text);
    while (rest.size > 0) {
        struct str item = str_cut(&rest, ',');
        if (item.size > 0)
            (void)json_array_append_new(list, json_stringn(item.data, item.size));
    }
}

static enum err add_pair(json_t *body, const struct cli_option *option, const char *text,
                         struct error *e)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return bad(option, text, "NAME=VALUE", e);
    AUTO(arena) struct arena arena = { 0 };
    const char *name = str_c(&arena, (struct str){ text, (size_t)(equals - text) });
    (void)json_object_set_new(member(body, field_of(option), json_object), name,
                              json_string(equals + 1));
    return ERR_OK;
}

/* One row a class: --quota h100=8 --limit h100=16 fill the same row. "none" takes a bound away. */
static enum err add_quota(json_t *body, const struct cli_option *option, const char *text,
                          struct error *e)
{
    struct str amount = str_of(text);
    struct str class_name = str_cut(&amount, '=');
    int64_t value = -1;
    bool is_weight = strcmp(field_of(option), "over_quota_weight") == 0;
    bool is_none = str_is(amount, "none") && !is_weight;
    bool is_number = is_weight ? str_to_i64(amount, 0, 1000000, &value)
                               : str_to_milli(amount, INT64_MAX / 1000, &value);
    if (class_name.size == 0 || (!is_none && !is_number))
        return bad(option, text, "CLASS=AMOUNT", e);
    json_t *rows = member(body, "quotas", json_array);
    json_t *row = NULL;
    for (size_t i = 0; i < json_array_size(rows) && row == NULL; i++) {
        json_t *candidate = json_array_get(rows, i);
        if (str_eq(str_of(json_string_value(json_object_get(candidate, "class"))), class_name))
            row = candidate;
    }
    if (row == NULL) {
        row = json_object();
        (void)json_object_set_new(row, "class", json_stringn(class_name.data, class_name.size));
        (void)json_array_append_new(rows, row);
    }
    (void)json_object_set_new(row, field_of(option), json_integer(value));
    return ERR_OK;
}

/* "rack": all members within one; "prefer:rack": where that can be had. */
static void add_topology(json_t *body, const char *text)
{
    static const char prefer[] = "prefer:";
    bool is_preferred = strncmp(text, prefer, sizeof(prefer) - 1) == 0;
    const char *level = is_preferred ? text + sizeof(prefer) - 1 : text;
    (void)json_object_set_new(member(body, "topology", json_object),
                              is_preferred ? "preferred" : "required", json_string(level));
}

static void add_dependency(json_t *body, const struct cli_option *option, const char *text)
{
    struct str rest = str_of(text);
    struct str when = STR("ok");
    if (strchr(text, ':') != NULL)
        when = str_cut(&rest, ':');
    json_t *row = json_object();
    (void)json_object_set_new(row, "workload", json_stringn(rest.data, rest.size));
    (void)json_object_set_new(row, "when", json_stringn(when.data, when.size));
    (void)json_array_append_new(member(body, field_of(option), json_array), row);
}

static enum err add_mount(json_t *body, const struct cli_option *option, const char *text,
                          struct error *e)
{
    struct str rest = str_of(text);
    struct str volume = str_cut(&rest, ':');
    struct str path = str_cut(&rest, ':');
    if (volume.size == 0 || path.size == 0 || path.data[0] != '/' ||
        (rest.size > 0 && !str_is(rest, "ro") && !str_is(rest, "rw")))
        return bad(option, text, "VOLUME:/PATH or VOLUME:/PATH:ro", e);
    json_t *row = json_object();
    (void)json_object_set_new(row, "volume", json_stringn(volume.data, volume.size));
    (void)json_object_set_new(row, "path", json_stringn(path.data, path.size));
    (void)json_object_set_new(row, "is_read_only", json_boolean(str_is(rest, "ro")));
    (void)json_array_append_new(member(body, field_of(option), json_array), row);
    return ERR_OK;
}

static enum err add_devices(json_t *body, const struct cli_option *option, const char *text,
                            struct error *e)
{
    struct str rest = str_of(text);
    struct str count = str_cut(&rest, 'x');
    int64_t devices = 0;
    int64_t share_milli = 0;
    if (!str_to_i64(count, 1, 1024, &devices) || !str_to_milli(rest, 1000, &share_milli))
        return bad(option, text, "COUNTxSHARE such as 2x0.5", e);
    (void)json_object_set_new(body, "devices", json_integer(devices));
    (void)json_object_set_new(body, "share_milli", json_integer(share_milli));
    return ERR_OK;
}

static enum err add_value(json_t *body, const struct cli_value *value, struct error *e)
{
    const struct cli_option *option = value->option;
    const char *field = field_of(option);
    const char *inner = strchr(field, '.'); /* "settings.grace_s": of an object inside */
    int64_t number = 0;
    enum err rc = ERR_OK;
    if (inner != NULL) {
        AUTO(arena) struct arena arena = { 0 };
        const struct str outer = { field, (size_t)(inner - field) };
        body = member(body, str_c(&arena, outer), json_object);
        field = inner + 1;
    }
    switch (option->kind) {
    case OPTION_FLAG:
        (void)json_object_set_new(body, field, json_true());
        return ERR_OK;
    case OPTION_TEXT:
    case OPTION_WORKLOAD: {
        json_t *text = json_string(value->text);
        if (text == NULL)
            return bad(option, value->text, "text in UTF-8", e);
        (void)json_object_set_new(body, field, text);
        return ERR_OK;
    }
    case OPTION_NUMBER:
    case OPTION_MILLI:
    case OPTION_SECONDS:
    case OPTION_MIB:
        rc = number_of(option, value->text, &number, e);
        if (rc == ERR_OK)
            (void)json_object_set_new(body, field, json_integer(number));
        return rc;
    case OPTION_LIST:
        add_list(body, field, value->text);
        return ERR_OK;
    case OPTION_PAIRS:
        return add_pair(body, option, value->text, e);
    case OPTION_QUOTA:
        return add_quota(body, option, value->text, e);
    case OPTION_DEPENDS:
        add_dependency(body, option, value->text);
        return ERR_OK;
    case OPTION_MOUNT:
        return add_mount(body, option, value->text, e);
    case OPTION_TOPOLOGY:
        add_topology(body, value->text);
        return ERR_OK;
    case OPTION_DEVICES:
        return add_devices(body, option, value->text, e);
    }
    return ERR_OK;
}

enum err cli_body(const struct cli *cli, json_t *body, struct error *e)
{
    for (size_t i = 0; i < cli->value_count; i++) {
        if (cli->values[i].option->place != OPTION_BODY)
            continue;
        enum err rc = add_value(body, &cli->values[i], e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

enum err cli_query(const struct cli *cli, struct buf *out, struct error *e)
{
    for (size_t i = 0; i < cli->value_count; i++) {
        const struct cli_option *option = cli->values[i].option;
        const char *text = cli->values[i].text;
        if (option->place != OPTION_QUERY)
            continue;
        bool is_number = option->kind != OPTION_FLAG && option->kind != OPTION_TEXT &&
                         option->kind != OPTION_LIST && option->kind != OPTION_WORKLOAD;
        int64_t number = 0;
        if (is_number) {
            enum err rc = number_of(option, text, &number, e);
            if (rc != ERR_OK)
                return rc;
        }
        buf_add_char(out, out->size == 0 ? '?' : '&');
        buf_add_text(out, field_of(option));
        buf_add_char(out, '=');
        if (is_number)
            buf_format(out, "%lld", (long long)number);
        else
            cli_encode(out, str_of(option->kind == OPTION_FLAG ? "true" : text));
    }
    return ERR_OK;
}
