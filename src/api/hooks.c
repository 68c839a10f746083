/* Hooks: where owners are told what becomes of their work. */
#include "api/call.h"
#include "api/handlers.h"

enum err list_hooks(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    struct list list;
    enum err rc = call_tenant_list_begin(c, &tenant, &list, e);
    if (rc != ERR_OK)
        return rc;
    for (const struct hook *h = call_state(c)->first_hook; h != NULL && !list.has_more;
         h = h->next) {
        char text[ID_TEXT_MAX];
        struct hook_view view;
        bool is_listed =
            (tenant == NULL || id_eq(tenant->r.id, h->r.tenant)) && call_allows(c, h->r.tenant);
        if (!is_listed || !list_wants(&list, id_text(ID_HOOK, h->r.id, text)))
            continue;
        hook_view_fill(&view, call_state(c), h);
        list_add(&list, &hook_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

/* The secret is sealed before anything else sees it; its plain text goes with the request. */
enum err set_hook(struct call *c, struct error *e)
{
    struct hook_spec *spec = &c->result->command.hook_set;
    enum err rc = call_command(c, CMD_HOOK_SET, e);
    if (rc == ERR_OK)
        rc = call_body(c, spec, e);
    if (rc == ERR_OK && spec->sealed.size > 0 && spec->sealed.size < HOOK_SECRET_MIN)
        rc = err_field(e, "secret", "secret: at least %d bytes; `openssl rand -hex 32` makes one",
                       HOOK_SECRET_MIN);
    if (rc == ERR_OK && spec->sealed.size > 0)
        spec->sealed = c->context->ops->seal(c->context->ops->arg, call_arena(c), spec->sealed);
    return rc;
}

static void answer_hook(struct call *c, const struct hook *hook)
{
    struct hook_view view;
    hook_view_fill(&view, call_state(c), hook);
    call_answer(c, &hook_view_schema, &view, hook->r.version);
}

enum err finish_hook(struct call *c, struct error *e)
{
    const struct hook_spec *spec = &c->before->command.hook_set;
    const struct project *project = state_project_by_path(call_state(c), spec->project);
    const struct hook *hook =
        project != NULL ? state_hook_by_name(call_state(c), project->tenant->r.id, spec->name)
                        : NULL;
    char text[ID_TEXT_MAX];
    if (hook == NULL)
        return call_not_found("hook", spec->name, e);
    answer_hook(c, hook);
    call_location(c, "/v1/hooks/", id_text(ID_HOOK, hook->r.id, text));
    return ERR_OK;
}

static enum err find_hook(const struct call *c, const struct hook **out, struct error *e)
{
    struct id id = { 0 };
    const struct hook *hook =
        id_parse(ID_HOOK, c->request->params[0], &id) ? state_hook(call_state(c), id) : NULL;
    if (hook == NULL || !call_allows(c, hook->r.tenant))
        return call_not_found("hook", c->request->params[0], e);
    *out = hook;
    return ERR_OK;
}

enum err get_hook(struct call *c, struct error *e)
{
    const struct hook *hook = NULL;
    enum err rc = find_hook(c, &hook, e);
    if (rc == ERR_OK)
        answer_hook(c, hook);
    return rc;
}

enum err remove_hook(struct call *c, struct error *e)
{
    const struct hook *hook = NULL;
    enum err rc = find_hook(c, &hook, e);
    return rc == ERR_OK ? call_target(c, CMD_HOOK_REMOVE, hook->r.id, e) : rc;
}

enum err test_hook(struct call *c, struct error *e)
{
    const struct hook *hook = NULL;
    enum err rc = find_hook(c, &hook, e);
    return rc == ERR_OK ? call_target(c, CMD_HOOK_TEST, hook->r.id, e) : rc;
}

enum err finish_hook_test(struct call *c, struct error *e)
{
    return get_hook(c, e);
}
