/* hook.c - where owners are told what becomes of their work. Only sealed secrets get here. */
#include <string.h>

#include "core/decide.h"

enum { HOOKS_OF_TENANT_MAX = 32, SEALED_MAX = 8192, FAULT_MAX = 200, HOST_MAX = 253 };

static bool is_one_of(struct str text, const char *extra)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       strchr(extra, c) != NULL;
        if (!is_good || c == '\0')
            return false;
    }
    return text.size > 0;
}

/* One plain address, which cannot bring a line or a second receiver of its own. */
static enum err check_address(struct str address, struct error *e)
{
    struct str domain = address;
    struct str local = str_cut(&domain, '@');
    bool is_good = address.size <= HOST_MAX && is_one_of(local, "._%+-") &&
                   is_one_of(domain, ".-") && local.data[0] != '-' && domain.data[0] != '-';
    return is_good ? ERR_OK
                   : err_field(e, "url", "url: mailto: is followed by one address, NAME@DOMAIN");
}

/* A host, with a port and a path perhaps; no login, for that would stand in the clear. */
static enum err check_web(struct str rest, struct error *e)
{
    struct str path = rest;
    struct str host = str_cut(&path, '/');
    if (!is_one_of(host, ".-:[]") || host.size > HOST_MAX)
        return err_field(e, "url", "url: https://HOST[:PORT]/PATH is wanted, without a login");
    for (size_t i = 0; i < path.size; i++) {
        if (path.data[i] <= ' ' || path.data[i] == 0x7f || path.data[i] == '#')
            return err_field(e, "url", "url: its path has a character that has to be encoded");
    }
    return ERR_OK;
}

static enum err check_url(const struct hook_spec *spec, bool is_new, struct error *e)
{
    struct str mail = STR("mailto:");
    struct str safe = STR("https://");
    struct str plain = STR("http://");
    struct str url = spec->url;
    if (url.size > HOOK_URL_MAX)
        return err_field(e, "url", "url: at most %d bytes", HOOK_URL_MAX);
    if (hook_url_is_mail(url) && spec->sealed.size > 0)
        return err_field(e, "secret", "secret: mail is not signed");
    if (!hook_url_is_mail(url) && is_new && spec->sealed.size == 0)
        return err_field(e, "secret", "secret is missing: what is sent is signed with it");
    if (hook_url_is_mail(url))
        return check_address((struct str){ url.data + mail.size, url.size - mail.size }, e);
    size_t skip = str_starts(url, safe) ? safe.size : str_starts(url, plain) ? plain.size : 0;
    if (skip == 0)
        return err_field(e, "url", "url: https://HOST/PATH or mailto:ADDRESS is wanted");
    return check_web((struct str){ url.data + skip, url.size - skip }, e);
}

static enum err check_room(const struct decision *d, const struct project *tenant, struct error *e)
{
    size_t count = 0;
    for (const struct hook *h = d->state->first_hook; h != NULL; h = h->next)
        count += id_eq(h->r.tenant, tenant->r.id);
    if (count < HOOKS_OF_TENANT_MAX)
        return ERR_OK;
    return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                     "the tenant has %d hooks already; remove some", HOOKS_OF_TENANT_MAX);
}

enum err decide_hook_set(struct decision *d, struct error *e)
{
    const struct hook_spec *spec = &d->command->hook_set;
    struct project *project = NULL;
    enum err rc = find_project(d, spec->project, "project", &project, e);
    if (rc == ERR_OK)
        rc = check_name(spec->name, "name", e);
    if (rc == ERR_OK)
        rc = check_text(spec->sealed, SEALED_MAX, "secret", e);
    if (rc != ERR_OK)
        return rc;
    const struct project *tenant = project->tenant;
    const struct hook *old = state_hook_by_name(d->state, tenant->r.id, spec->name);
    bool had_secret = old != NULL && old->r.sealed.size > 0;
    rc = check_url(spec, !had_secret, e);
    if (rc == ERR_OK)
        rc = old != NULL ? decide_match(d, old->r.version, e) : check_room(d, tenant, e);
    if (rc != ERR_OK)
        return rc;
    struct hook_record *r = &decide_add(d, EV_HOOK_SET, tenant->r.id)->hook_set;
    *r = (struct hook_record){ .id = old != NULL ? old->r.id : d->command->new_id,
                               .tenant = tenant->r.id,
                               .project = project->r.id,
                               .name = spec->name,
                               .url = spec->url,
                               .sealed = spec->sealed };
    if (old != NULL && r->sealed.size == 0 && !hook_url_is_mail(spec->url))
        r->sealed = str_copy(d->arena, old->r.sealed); /* the event drops the state's own */
    return ERR_OK;
}

static enum err find_hook(const struct decision *d, const struct hook **out, struct error *e)
{
    const struct hook *hook = state_hook(d->state, d->command->target.id);
    char text[ID_TEXT_MAX];
    if (hook == NULL || !decide_permits(d, hook->r.tenant))
        return not_found(e, "hook", str_of(id_text(ID_HOOK, d->command->target.id, text)));
    *out = hook;
    return ERR_OK;
}

enum err decide_hook_remove(struct decision *d, struct error *e)
{
    const struct hook *hook = NULL;
    enum err rc = find_hook(d, &hook, e);
    if (rc == ERR_OK)
        rc = decide_match(d, hook->r.version, e);
    if (rc == ERR_OK)
        decide_add(d, EV_HOOK_REMOVED, hook->r.tenant)->removed.id = hook->r.id;
    return rc;
}

enum err decide_hook_test(struct decision *d, struct error *e)
{
    const struct hook *hook = NULL;
    enum err rc = find_hook(d, &hook, e);
    if (rc == ERR_OK)
        decide_add(d, EV_HOOK_TESTED, hook->r.tenant)->removed.id = hook->r.id;
    return rc;
}

enum err decide_hook_note(struct decision *d, struct error *e)
{
    const struct hook *hook = NULL;
    struct str fault = d->command->target.reason;
    enum err rc = find_hook(d, &hook, e);
    if (rc == ERR_OK)
        rc = check_text(fault, FAULT_MAX, "reason", e);
    if (rc != ERR_OK || str_eq(fault, hook->r.fault))
        return rc;
    struct hook_record *r = &decide_add(d, EV_HOOK_SET, hook->r.tenant)->hook_set;
    *r = hook->r;
    r->name = str_copy(d->arena, r->name);
    r->url = str_copy(d->arena, r->url);
    r->sealed = str_copy(d->arena, r->sealed);
    r->fault = fault;
    return ERR_OK;
}
