#include "sim/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* A list or map that is open. */
struct level {
    struct doc doc;
    VEC(struct doc) items;
    struct doc key; /* of a map: its next value's; only the key is filled */
    bool has_key;
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one that is looked at */
    struct arena *arena;
    struct error *e;
    struct level levels[DOC_DEPTH_MAX];
    size_t depth;
    VEC(struct doc) docs;
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

static enum err read_key(struct reader *r, struct level *level)
{
    struct doc *key = &level->key;
    if (r->event.type != YAML_SCALAR_EVENT || has_extras(&r->event))
        return fail_here(r, "a key has to be plain text");
    *key = (struct doc){ .key = scalar_text(r),
                         .key_line = r->event.start_mark.line + 1,
                         .key_column = r->event.start_mark.column + 1 };
    for (size_t i = 0; i < level->items.count; i++) {
        if (str_eq(level->items.items[i].key, key->key))
            return fail_here(r, "the key is there already");
    }
    level->has_key = true;
    return ERR_OK;
}

/* A whole value: into what is open, or a document. Empty documents are left out. */
static void take(struct reader *r, struct doc doc)
{
    if (r->depth == 0) {
        bool is_empty = doc.kind == DOC_SCALAR && doc.text.size == 0 && !doc.is_quoted;
        if (!is_empty)
            vec_push(&r->docs, doc);
        return;
    }
    struct level *level = &r->levels[r->depth - 1];
    doc.key = level->key.key;
    doc.key_line = level->key.key_line;
    doc.key_column = level->key.key_column;
    level->has_key = false;
    vec_push(&level->items, doc);
}

static enum err open_level(struct reader *r, enum doc_kind kind)
{
    if (r->depth == DOC_DEPTH_MAX)
        return fail_here(r, "nested too deeply");
    r->levels[r->depth++] = (struct level){ .doc = { .kind = kind,
                                                     .line = r->event.start_mark.line + 1,
                                                     .column = r->event.start_mark.column + 1 } };
    return ERR_OK;
}

static void close_level(struct reader *r)
{
    struct level *level = &r->levels[--r->depth];
    struct doc doc = level->doc;
    doc.count = level->items.count;
    if (doc.count > 0)
        doc.items = (struct doc *)(void *)arena_dup(r->arena, level->items.items,
                                                    doc.count * sizeof(struct doc));
    vec_done(&level->items);
    take(r, doc);
}

static void take_scalar(struct reader *r)
{
    take(r, (struct doc){ .kind = DOC_SCALAR,
                          .text = scalar_text(r),
                          .is_quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
                          .line = r->event.start_mark.line + 1,
                          .column = r->event.start_mark.column + 1 });
}

/* One event inside a document. */
static enum err read_event(struct reader *r)
{
    struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;
    yaml_event_type_t type = r->event.type;
    if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT) {
        close_level(r);
        return ERR_OK;
    }
    if (level != NULL && level->doc.kind == DOC_MAP && !level->has_key)
        return read_key(r, level);
    if (has_extras(&r->event))
        return fail_here(r, "anchors, aliases and tags are not taken");
    if (type != YAML_SCALAR_EVENT)
        return open_level(r, type == YAML_MAPPING_START_EVENT ? DOC_MAP : DOC_LIST);
    take_scalar(r);
    return ERR_OK;
}

static bool is_frame(yaml_event_type_t type)
{
    return type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT ||
           type == YAML_DOCUMENT_END_EVENT;
}

static enum err read_all(struct reader *r)
{
    for (;;) {
        enum err rc = next(r);
        if (rc != ERR_OK || r->event.type == YAML_STREAM_END_EVENT)
            return rc;
        if (is_frame(r->event.type))
            continue;
        rc = read_event(r);
        if (rc != ERR_OK)
            return rc;
    }
}

enum err doc_read(struct str text, struct arena *arena, struct doc **docs, size_t *count,
                  struct error *e)
{
    struct reader *r = mem_new(1, sizeof(*r));
    r->arena = arena;
    r->e = e;
    if (yaml_parser_initialize(&r->parser) != 1) {
        mem_free(r);
        return err_set(e, ERR_UNAVAILABLE, "libyaml cannot be initialised");
    }
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text.data, text.size);
    enum err rc = read_all(r);
    if (rc == ERR_OK) {
        *count = r->docs.count;
        *docs = (struct doc *)(void *)arena_dup(arena, r->docs.items,
                                                r->docs.count * sizeof(struct doc));
    }
    for (; r->depth > 0; r->depth--)
        vec_done(&r->levels[r->depth - 1].items);
    vec_done(&r->docs);
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    mem_free(r);
    return rc;
}
