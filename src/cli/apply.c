/*
 * apply.c - makes things as manifests say. Each document is compared with what is there: nothing to
 * change, a change (shown field by field), or something new. A dry run stops there.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/guess.h"
#include "cli/safe.h"
#include "cli/special.h"
#include "os/fd.h"
#include "os/file.h"
#include "wire/yaml.h"

enum { MANIFEST_BYTES_MAX = 4 * 1024 * 1024 };

struct kind {
    const char *name;
    const char *get;    /* with {} for the name */
    const char *create; /* POST here, the name in `field`; NULL: PUT at `get` makes it */
    const char *field;
    const char *change; /* PATCH or PUT at `get` */
};

static const struct kind kinds[] = {
    { "Tenant", "/v1/projects/{}", "/v1/tenants", "path", "PATCH" },
    { "Project", "/v1/projects/{}", "/v1/projects", "path", "PATCH" },
    { "Class", "/v1/classes/{}", NULL, NULL, "PUT" },
    { "Pool", "/v1/pools/{}", NULL, NULL, "PUT" },
    { "Profile", "/v1/profiles/{}", NULL, NULL, "PUT" },
    { "Volume", "/v1/volumes/{}", "/v1/volumes", "name", NULL },
    { "Reservation", "/v1/reservations/{}", "/v1/reservations", "name", NULL },
    { "Change", "/v1/changes/{}", "/v1/changes", "name", NULL },
    { "Settings", "/v1/settings", NULL, NULL, "PATCH" },
};

struct document {
    const struct kind *kind;
    const char *name;
    const json_t *spec;
};

/* "; did you mean Tenant?", or "". */
static const char *kind_hint(struct cli *cli, const char *kind)
{
    struct guess guess = { .word = kind };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        guess_try(&guess, kinds[i].name);
    return guess_hint(cli, &guess);
}

static enum err document_read(struct cli *cli, const json_t *json, size_t number,
                              struct document *out, struct error *e)
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *name = json_string_value(cli_field(json, "metadata.name"));
    *out = (struct document){ .name = name, .spec = json_object_get(json, "spec") };
    for (size_t i = 0; kind != NULL && i < COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].name, kind) == 0)
            out->kind = &kinds[i];
    }
    if (out->kind == NULL)
        return err_set(e, ERR_INVALID,
                       "document %zu: kind: Tenant, Project, Class, Pool, Profile, Volume, "
                       "Reservation, Change or Settings is wanted, not %s%s",
                       number, kind != NULL ? kind : "nothing", kind_hint(cli, kind));
    if (name == NULL && strstr(out->kind->get, "{}") != NULL)
        return err_set(e, ERR_INVALID, "document %zu: metadata.name is missing", number);
    if (!json_is_object(out->spec))
        return err_set(e, ERR_INVALID, "document %zu: spec is missing", number);
    return ERR_OK;
}

static const char *target_of(struct cli *cli, const struct document *document)
{
    AUTO(buf) struct buf target = { 0 };
    assert(document->kind != NULL); /* all were read before the first is applied */
    const char *hole = strstr(document->kind->get, "{}");
    if (hole == NULL)
        return document->kind->get;
    buf_add(&target, document->kind->get, (size_t)(hole - document->kind->get));
    cli_encode_part(&target, str_of(document->name));
    buf_add_text(&target, hole + 2);
    return str_c(&cli->arena, buf_str(&target));
}

static void line_print(char sign, const char *path, const json_t *value)
{
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "  %c ", sign);
    safe_line(str_of(path), &text);
    buf_add_text(&text, ": ");
    cli_add_json(&text, value, JSON_COMPACT);
    (void)puts(text.data);
}

/* Of the same class as `like`, among what is there. */
static const json_t *same_class(const json_t *list, const json_t *like)
{
    const json_t *class_name = json_object_get(like, "class");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *candidate = json_array_get(list, i);
        if (class_name != NULL && json_equal(json_object_get(candidate, "class"), class_name))
            return candidate;
    }
    return NULL;
}

/* Prints the fields of `wanted` that are otherwise in `present` (NULL: nothing is there); counts
 * them. NOLINTNEXTLINE(misc-no-recursion): quotas are the only rows inside */
static size_t diff_print(const char *prefix, const json_t *present, const json_t *wanted)
{
    const char *key;
    json_t *value;
    size_t changes = 0;
    json_object_foreach((json_t *)(uintptr_t)wanted, key, value)
    {
        char path[256];
        const json_t *now = json_object_get(present, key);
        if (now == NULL) /* a profile shows what it gives as one object */
            now = json_object_get(json_object_get(present, "request"), key);
        (void)snprintf(path, sizeof(path), "%s%s", prefix, key);
        if (json_is_array(value) && json_array_size(value) > 0 &&
            json_is_object(json_array_get(value, 0))) {
            for (size_t i = 0; i < json_array_size(value); i++) {
                const json_t *row = json_array_get(value, i);
                const char *class_name = json_string_value(json_object_get(row, "class"));
                (void)snprintf(path, sizeof(path), "%s%s[%s].", prefix, key,
                               class_name != NULL ? class_name : "?");
                changes += diff_print(path, same_class(now, row), row);
            }
            continue;
        }
        if (now != NULL && json_equal(now, value))
            continue;
        if (strcmp(key, "is_forced") == 0)
            continue; /* how to do it, not how it is to be */
        if (now != NULL)
            line_print('-', path, now);
        line_print('+', path, value);
        changes++;
    }
    return changes;
}

static enum err document_apply(struct cli *cli, const struct document *document, bool is_dry,
                               struct error *e)
{
    AUTO(cli_answer) struct cli_answer present = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    const struct kind *kind = document->kind;
    const char *target = target_of(cli, document);
    const char *name = document->name != NULL ? document->name : "";
    enum err rc = cli_request(cli, "GET", target, NULL, &present, e);
    bool is_new = rc == ERR_NOT_FOUND;
    if (rc != ERR_OK && !is_new)
        return rc;
    (void)printf("%s %s\n", kind->name, name);
    size_t changes = diff_print("", is_new ? NULL : present.json, document->spec);
    if (changes == 0 && !is_new) {
        (void)puts("  = as it is");
        return ERR_OK;
    }
    if (is_dry)
        return ERR_OK;
    if (!is_new && kind->change == NULL)
        return err_set(e, ERR_CONFLICT, "%s %s cannot be changed", kind->name, name);
    AUTO(json) json_t *body = json_deep_copy(document->spec);
    bool is_post = is_new && kind->create != NULL;
    if (is_post)
        (void)json_object_set_new(body, kind->field, json_string(name));
    rc = cli_request(cli, is_post ? "POST" : kind->change, is_post ? kind->create : target, body,
                     &answer, e);
    return rc == ERR_OK ? rc : err_wrap(e, rc, "%s %s", kind->name, name);
}

static void list_print(const char *what, const struct document *list, size_t from, size_t to)
{
    AUTO(buf) struct buf names = { 0 };
    for (size_t i = from; i < to; i++) {
        buf_format(&names, "%s%s ", i > from ? ", " : "", list[i].kind->name);
        safe_line(str_of(list[i].name != NULL ? list[i].name : ""), &names);
    }
    (void)fprintf(stderr, "berth: %s: %s\n", what, names.size > 0 ? names.data : "nothing");
}

/* After a refusal in the middle: what holds now, and what does not. */
static void tell_rest(const struct document *list, size_t done, size_t count)
{
    list_print("applied before that", list, 0, done);
    list_print("not applied", list, done, count);
    (void)fputs("berth: mend it and apply the file again: what is as it says is left alone\n",
                stderr);
}

enum err manifest_read(const char *path, struct buf *out, struct error *e)
{
    if (strcmp(path, "-") != 0)
        return file_read(path, MANIFEST_BYTES_MAX, out, e); /* which names it */
    buf_reserve(out, MANIFEST_BYTES_MAX);
    size_t got = 0;
    enum err rc = fd_read_full(STDIN_FILENO, out->data, MANIFEST_BYTES_MAX, &got, e);
    out->size = got;
    out->data[got] = '\0';
    return rc == ERR_OK ? rc : err_wrap(e, rc, "standard input");
}

enum cli_exit apply_text(struct cli *cli, const char *name, struct str text, bool is_dry)
{
    struct error e = { 0 };
    AUTO(json) json_t *documents = NULL;
    enum err rc = yaml_read(text, &documents, &e);
    if (rc != ERR_OK) {
        (void)err_wrap(&e, rc, "%s", name);
        return cli_fail(&e);
    }
    /* All are read before the first is applied: a typing error at the end changes nothing. */
    size_t count = json_array_size(documents);
    if (count == 0)
        return cli_usage(cli,
                         "%s: there is nothing in it to apply; documents with kind, metadata and "
                         "spec are wanted",
                         name);
    struct document *list = arena_new(&cli->arena, count, sizeof(*list));
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = document_read(cli, json_array_get(documents, i), i + 1, &list[i], &e);
    size_t done = 0;
    bool is_begun = rc == ERR_OK;
    while (done < count && rc == ERR_OK) {
        rc = document_apply(cli, &list[done], is_dry, &e);
        done += rc == ERR_OK;
    }
    if (rc == ERR_OK)
        return CLI_OK;
    enum cli_exit status = cli_refused(cli, &e);
    if (is_begun && !is_dry)
        tell_rest(list, done, count);
    return status;
}

enum cli_exit run_apply(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(buf) struct buf text = { 0 };
    const char *path = cli_get(cli, "file");
    if (path == NULL)
        return cli_usage(cli, "--file is missing");
    if (manifest_read(path, &text, &e) != ERR_OK)
        return cli_fail(&e);
    return apply_text(cli, path, buf_str(&text), cli_has(cli, "dry-run"));
}
