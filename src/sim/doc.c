#include "sim/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one that is looked at */
    struct arena *arena;
    struct error *e;
};

static enum err fail_at(struct error *e, size_t line, size_t column, const char *text)
{
    return err_set(e, ERR_INVALID, "%zu:%zu: %s", line, column, text);
}

enum err doc_error(const struct doc *at, struct error *e, const char *fmt, ...)
{
    char text[240];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return fail_at(e, at->line, at->column, text);
}

enum err doc_key_error(const struct doc *at, struct error *e, const char *what)
{
    char text[240];
    (void)snprintf(text, sizeof(text), "\"%.*s\" %s", STR_ARG(at->key), what);
    return fail_at(e, at->key_line, at->key_column, text);
}

const struct doc *doc_get(const struct doc *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++) {
        if (str_is(map->items[i].key, key))
            return &map->items[i];
    }
    return NULL;
}

static enum err fail_here(struct reader *r, const char *text)
{
    return fail_at(r->e, r->event.start_mark.line + 1, r->event.start_mark.column + 1, text);
}

static enum err next(struct reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event) == 1)
        return ERR_OK;
    const yaml_mark_t *at = &r->parser.problem_mark;
    return fail_at(r->e, at->line + 1, at->column + 1,
                   r->parser.problem != NULL ? r->parser.problem : "not YAML");
}

static bool has_extras(const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;
    if (event->type == YAML_MAPPING_START_EVENT)
        return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL;
    return true; /* an alias */
}

static struct str scalar_text(struct reader *r)
{
    const yaml_event_t *event = &r->event;
    const struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };
    return str_copy(r->arena, text);
}

static enum err read_value(struct reader *r, unsigned depth, struct doc *out);

static enum err read_key(struct reader *r, const struct doc *items, size_t count, struct doc *out)
{
    if (r->event.type != YAML_SCALAR_EVENT || has_extras(&r->event))
        return fail_here(r, "a key has to be plain text");
    out->key = scalar_text(r);
    out->key_line = r->event.start_mark.line + 1;
    out->key_column = r->event.start_mark.column + 1;
    for (size_t i = 0; i < count; i++) {
        if (str_eq(items[i].key, out->key))
            return fail_here(r, "the key is there already");
    }
    return next(r);
}

/* Items up to the closing event, which is taken by the caller. */
static enum err read_items(struct reader *r, unsigned depth, struct doc *out)
{
    VEC(struct doc) items = { 0 };
    enum err rc = next(r);
    yaml_event_type_t end = out->kind == DOC_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    while (rc == ERR_OK && r->event.type != end) {
        struct doc item = { 0 };
        if (out->kind == DOC_MAP)
            rc = read_key(r, items.items, items.count, &item);
        if (rc == ERR_OK)
            rc = read_value(r, depth + 1, &item);
        if (rc == ERR_OK)
            rc = next(r);
        if (rc == ERR_OK)
            vec_push(&items, item);
    }
    out->count = items.count;
    if (items.count > 0)
        out->items = (struct doc *)(void *)arena_dup(r->arena, items.items,
                                                     items.count * sizeof(struct doc));
    vec_done(&items);
    return rc;
}

static enum err read_value(struct reader *r, unsigned depth, struct doc *out)
{
    out->line = r->event.start_mark.line + 1;
    out->column = r->event.start_mark.column + 1;
    if (depth > DOC_DEPTH_MAX)
        return fail_here(r, "nested too deeply");
    if (has_extras(&r->event))
        return fail_here(r, "anchors, aliases and tags are not taken");
    if (r->event.type == YAML_SCALAR_EVENT) {
        out->kind = DOC_SCALAR;
        out->text = scalar_text(r);
        out->is_quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        return ERR_OK;
    }
    out->kind = r->event.type == YAML_MAPPING_START_EVENT ? DOC_MAP : DOC_LIST;
    return read_items(r, depth, out);
}

static bool is_empty(const struct doc *doc)
{
    return doc->kind == DOC_SCALAR && doc->text.size == 0 && !doc->is_quoted;
}

static enum err read_all(struct reader *r, struct doc **docs, size_t *count)
{
    VEC(struct doc) found = { 0 };
    enum err rc = next(r); /* the start of the stream */
    while (rc == ERR_OK && (rc = next(r)) == ERR_OK && r->event.type != YAML_STREAM_END_EVENT) {
        struct doc doc = { 0 };
        rc = next(r);
        if (rc == ERR_OK)
            rc = read_value(r, 0, &doc);
        if (rc == ERR_OK && !is_empty(&doc))
            vec_push(&found, doc);
        if (rc == ERR_OK)
            rc = next(r); /* the end of the document */
    }
    *count = found.count;
    *docs = found.count == 0 ? NULL
                             : (struct doc *)(void *)arena_dup(r->arena, found.items,
                                                               found.count * sizeof(struct doc));
    vec_done(&found);
    return rc;
}

enum err doc_read(struct str text, struct arena *arena, struct doc **docs, size_t *count,
                  struct error *e)
{
    struct reader r = { .arena = arena, .e = e };
    if (yaml_parser_initialize(&r.parser) != 1)
        return err_set(e, ERR_UNAVAILABLE, "libyaml cannot be initialised");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.data, text.size);
    enum err rc = read_all(&r, docs, count);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return rc;
}
