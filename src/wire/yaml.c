/*
 * yaml.c - from libyaml's events to trees, without recursion: the open collections are a stack.
 *
 * Events and not libyaml's document API, because that takes quadratic time on deep nesting.
 * Whatever would let a small file become a large tree (aliases) or hide a value (duplicates,
 * tags, merge keys) is refused.
 */
#include "wire/yaml.h"

#include <string.h>
#include <yaml.h>

struct level {
    json_t *value;  /* borrowed: the tree below the root owns it */
    struct str key; /* of a mapping: read, its value not yet; data NULL: a key comes next */
};

struct reader {
    yaml_parser_t parser;
    json_t *documents; /* owned */
    struct level levels[YAML_DEPTH_MAX];
    size_t depth;
    struct arena arena;       /* of keys */
    struct yaml_marks *marks; /* borrowed; NULL: nobody asks */
    struct error *e;
};

static enum err refuse(struct reader *r, const yaml_event_t *event, enum err code, const char *what)
{
    return err_set(r->e, code, "YAML: %s at line %zu, column %zu", what, event->start_mark.line + 1,
                   event->start_mark.column + 1);
}

/* ---- scalars ------------------------------------------------------------------------------- */

static json_t *plain_scalar(struct str text)
{
    int64_t number = 0;

    if (text.size == 0 || str_is(text, "null") || str_is(text, "~"))
        return json_null();
    if (str_is(text, "true") || str_is(text, "false"))
        return json_boolean(str_is(text, "true"));
    bool has_leading_zero = text.size > 1 && text.data[text.data[0] == '-'] == '0';
    if (!has_leading_zero && str_to_i64(text, INT64_MIN, INT64_MAX, &number))
        return json_integer(number);
    return json_stringn(text.data, text.size);
}

/* NULL: text that no JSON of ours may hold. */
static json_t *scalar_of(const yaml_event_t *event)
{
    struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };

    if (memchr(text.data, '\0', text.size) != NULL)
        return NULL;
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return plain_scalar(text);
    return json_stringn(text.data, text.size);
}

/* ---- the tree ------------------------------------------------------------------------------ */

/* A value is known by its address. */
static struct id mark_of(const json_t *value)
{
    return (struct id){ 1, (uint64_t)(uintptr_t)value };
}

static void mark(struct reader *r, const yaml_event_t *event, const json_t *value)
{
    bool is_shared = json_is_boolean(value) || json_is_null(value);
    if (r->marks != NULL && !is_shared)
        id_map_put(&r->marks->lines, mark_of(value),
                   (void *)(uintptr_t)(event->start_mark.line + 1));
}

size_t yaml_line(const struct yaml_marks *marks, const json_t *value)
{
    return (size_t)(uintptr_t)id_map_get(&marks->lines, mark_of(value));
}

void yaml_marks_done(struct yaml_marks *marks)
{
    id_map_done(&marks->lines);
}

/* Puts a value where one is expected; the tree owns it afterwards, also on failure. */
static enum err place(struct reader *r, const yaml_event_t *event, json_t *value)
{
    struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;
    int rc = 0;

    if (value == NULL)
        return refuse(r, event, ERR_INVALID, "text that is not UTF-8, or has a NUL in it");
    mark(r, event, value);
    if (level == NULL)
        rc = json_array_append_new(r->documents, value);
    else if (json_is_array(level->value))
        rc = json_array_append_new(level->value, value);
    else
        rc = json_object_set_new(level->value, level->key.data, value);
    if (level != NULL)
        level->key = (struct str){ 0 };
    return rc == 0 ? ERR_OK : refuse(r, event, ERR_INVALID, "a value that cannot be represented");
}

static bool wants_key(const struct reader *r)
{
    const struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;

    return level != NULL && json_is_object(level->value) && level->key.data == NULL;
}

static enum err on_key(struct reader *r, const yaml_event_t *event)
{
    struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };
    struct level *level = &r->levels[r->depth - 1];

    if (memchr(text.data, '\0', text.size) != NULL)
        return refuse(r, event, ERR_INVALID, "a key with a NUL in it");
    if (str_is(text, "<<"))
        return refuse(r, event, ERR_INVALID, "a merge key; write the fields out");
    if (json_object_get(level->value, text.data) != NULL)
        return refuse(r, event, ERR_INVALID, "a key that is there twice");
    level->key = str_copy(&r->arena, text);
    return ERR_OK;
}

static enum err on_scalar(struct reader *r, const yaml_event_t *event)
{
    if (event->data.scalar.anchor != NULL)
        return refuse(r, event, ERR_INVALID, "anchors are not supported");
    if (event->data.scalar.tag != NULL)
        return refuse(r, event, ERR_INVALID, "tags are not supported");
    if (wants_key(r))
        return on_key(r, event);
    return place(r, event, scalar_of(event));
}

static enum err on_collection(struct reader *r, const yaml_event_t *event, json_t *value,
                              bool has_anchor, bool has_tag)
{
    json_t *kept = value;
    enum err rc = ERR_OK;

    if (has_anchor)
        rc = refuse(r, event, ERR_INVALID, "anchors are not supported");
    else if (has_tag)
        rc = refuse(r, event, ERR_INVALID, "tags are not supported");
    else if (wants_key(r))
        rc = refuse(r, event, ERR_INVALID, "a key that is not text");
    else if (r->depth == YAML_DEPTH_MAX)
        rc = refuse(r, event, ERR_LIMIT, "nested too deep");
    if (rc != ERR_OK) {
        json_decref(value);
        return rc;
    }
    rc = place(r, event, value);
    if (rc == ERR_OK)
        r->levels[r->depth++] = (struct level){ .value = kept };
    return rc;
}

/* A document of nothing but comments is one empty plain scalar to libyaml. */
static bool is_empty_document(const struct reader *r, const yaml_event_t *event)
{
    return r->depth == 0 && event->data.scalar.length == 0 &&
           event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static enum err on_event(struct reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (event->data.document_start.version_directive != NULL ||
            event->data.document_start.tag_directives.start !=
                event->data.document_start.tag_directives.end)
            return refuse(r, event, ERR_INVALID, "directives are not supported");
        if (json_array_size(r->documents) == YAML_DOCUMENTS_MAX)
            return refuse(r, event, ERR_LIMIT, "too many documents");
        return ERR_OK;
    case YAML_ALIAS_EVENT:
        return refuse(r, event, ERR_INVALID, "aliases are not supported");
    case YAML_SCALAR_EVENT:
        return is_empty_document(r, event) ? ERR_OK : on_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_collection(r, event, json_array(), event->data.sequence_start.anchor != NULL,
                             event->data.sequence_start.tag != NULL);
    case YAML_MAPPING_START_EVENT:
        return on_collection(r, event, json_object(), event->data.mapping_start.anchor != NULL,
                             event->data.mapping_start.tag != NULL);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return ERR_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return ERR_OK;
}

static enum err malformed(struct reader *r)
{
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "cannot be read";

    return err_set(r->e, ERR_INVALID, "YAML: %s at line %zu, column %zu", problem,
                   r->parser.problem_mark.line + 1, r->parser.problem_mark.column + 1);
}

static enum err read_stream(struct reader *r)
{
    bool is_at_end = false;
    enum err rc = ERR_OK;

    while (rc == ERR_OK && !is_at_end) {
        yaml_event_t event;
        if (yaml_parser_parse(&r->parser, &event) == 0)
            return malformed(r);
        is_at_end = event.type == YAML_STREAM_END_EVENT;
        rc = on_event(r, &event);
        yaml_event_delete(&event);
    }
    return rc;
}

enum err yaml_read(struct str text, json_t **out, struct error *e)
{
    return yaml_read_marked(text, out, NULL, e);
}

enum err yaml_read_marked(struct str text, json_t **out, struct yaml_marks *marks, struct error *e)
{
    struct reader r = { .e = e, .marks = marks };
    if (text.size > YAML_BYTES_MAX)
        return err_set(e, ERR_LIMIT, "YAML of %zu bytes is larger than the %d allowed", text.size,
                       (int)YAML_BYTES_MAX);
    if (yaml_parser_initialize(&r.parser) == 0)
        return err_set(e, ERR_LIMIT, "YAML: the parser could not be started");

    r.documents = json_array();
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &r.parser, (const unsigned char *)(text.data != NULL ? text.data : ""), text.size);
    enum err rc = read_stream(&r);
    yaml_parser_delete(&r.parser);
    arena_done(&r.arena);
    if (rc != ERR_OK) {
        json_decref(r.documents);
        return rc;
    }
    *out = r.documents;
    return ERR_OK;
}
