/* reservations.c - devices in windows of time, and when they could be had. */
#include "api/call.h"
#include "api/handlers.h"
#include "wire/resource.h"
#include "wire/spec_json.h"

enum { SLOTS_DEFAULT = 3, HOUR_S = 3600, YEAR_S = 366 * 86400 };

static void view_fill(const struct call *c, const struct reservation *reservation,
                      struct reservation_view *view)
{
    struct reservation_use use = sched_reservation(c->context->sched, reservation);

    reservation_view_fill(view, call_state(c), reservation, call_arena(c));
    view->used_milli = use.used_milli;
    view->running = (int64_t)use.running;
    view->waiting = (int64_t)use.waiting;
    if (reservation_is_kept(reservation->r.state))
        view->available_milli = use.available_milli;
}

static void answer(struct call *c, const struct reservation *reservation)
{
    struct reservation_view view;

    view_fill(c, reservation, &view);
    call_answer(c, &reservation_view_schema, &view, reservation->r.version);
}

/* ---- finding ------------------------------------------------------------------------------- */

/* Who belongs to no tenant may leave it out where the name is in use once. */
static enum err by_name(const struct call *c, const struct project *tenant, struct str name,
                        struct reservation **out, struct error *e)
{
    for (const struct project *t = call_state(c)->first_tenant; t != NULL; t = t->next_sibling) {
        if ((tenant != NULL && t != tenant) || !call_allows(c, t->r.id))
            continue;
        struct reservation *found = state_reservation_by_name(call_state(c), t->r.id, name);
        if (found != NULL && *out != NULL)
            return err_field(e, "tenant", "tenant: more than one has a reservation %.*s; name one",
                             STR_ARG(found->r.name));
        *out = found != NULL ? found : *out;
    }
    return ERR_OK;
}

static enum err find(const struct call *c, struct reservation **out, struct error *e)
{
    struct str name = c->request->params[0];
    struct project *tenant = NULL;
    struct reservation *found = NULL;
    struct id id = { 0 };
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;

    if (id_parse(ID_RESERVATION, name, &id))
        found = state_reservation(call_state(c), id);
    else
        rc = by_name(c, tenant, name, &found, e);
    if (rc != ERR_OK)
        return rc;
    if (found == NULL || !call_allows(c, found->project->tenant->r.id))
        return call_not_found("reservation", name, e);
    *out = found;
    return ERR_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct reservation_filter {
    const struct project *tenant, *project;
    int64_t state; /* UNSET: any */
};

static enum err filter_read(const struct call *c, struct reservation_filter *out, struct error *e)
{
    struct str path = call_param(c, "project");
    struct project *project = NULL;
    enum err rc = call_param_enum(c, "state", &reservation_state_names, &out->state, e);

    if (rc == ERR_OK && path.data != NULL)
        rc = call_project(c, path, &project, e);
    out->project = project;
    return rc;
}

static bool is_listed(const struct call *c, const struct reservation_filter *filter,
                      const struct reservation *r)
{
    return call_allows(c, r->project->tenant->r.id) &&
           (filter->tenant == NULL || r->project->tenant == filter->tenant) &&
           (filter->project == NULL || project_is_within(r->project, filter->project)) &&
           (filter->state == UNSET || (int64_t)r->r.state == filter->state);
}

enum err list_reservations(struct call *c, struct error *e)
{
    struct reservation_filter filter = { .state = UNSET };
    struct project *tenant = NULL;
    struct list list;
    enum err rc = filter_read(c, &filter, e);
    if (rc == ERR_OK)
        rc = call_tenant_list_begin(c, &tenant, &list, e);
    if (rc != ERR_OK)
        return rc;

    filter.tenant = tenant;
    for (const struct reservation *r = call_state(c)->first_reservation;
         r != NULL && !list.has_more; r = r->next) {
        char text[ID_TEXT_MAX];
        struct reservation_view view;
        if (!is_listed(c, &filter, r) || !list_wants(&list, id_text(ID_RESERVATION, r->r.id, text)))
            continue;
        view_fill(c, r, &view);
        list_add(&list, &reservation_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

enum err get_reservation(struct call *c, struct error *e)
{
    struct reservation *reservation = NULL;
    enum err rc = find(c, &reservation, e);

    if (rc == ERR_OK)
        answer(c, reservation);
    return rc;
}

/* ---- changing ------------------------------------------------------------------------------ */

enum err create_reservation(struct call *c, struct error *e)
{
    const struct api_ops *ops = c->context->ops;
    struct reservation_spec *spec = &c->result->command.reservation;
    enum err rc = call_command(c, CMD_RESERVATION_CREATE, e);
    if (rc == ERR_OK)
        rc = call_body(c, spec, e);
    if (rc == ERR_OK)
        rc = call_zone_rule(c, spec->zone, &spec->zone_rule, e);
    if (rc == ERR_OK)
        c->result->command.new_id = ops->new_id(ops->arg);
    return rc;
}

enum err finish_reservation(struct call *c, struct error *e)
{
    const struct command *command = &c->before->command;
    bool is_new = command->type == CMD_RESERVATION_CREATE;
    struct id id = is_new ? command->new_id : command->target.id;
    const struct reservation *reservation = state_reservation(call_state(c), id);
    char text[ID_TEXT_MAX];

    if (reservation == NULL)
        return call_not_found("reservation", str_of(id_text(ID_RESERVATION, id, text)), e);
    answer(c, reservation);
    if (is_new)
        call_location(c, "/v1/reservations/", id_text(ID_RESERVATION, id, text));
    return ERR_OK;
}

static enum err act(struct call *c, enum command_type type, struct error *e)
{
    struct reservation *reservation = NULL;
    enum err rc = find(c, &reservation, e);

    return rc == ERR_OK ? call_action(c, type, reservation->r.id, e) : rc;
}

enum err confirm_reservation(struct call *c, struct error *e)
{
    return act(c, CMD_RESERVATION_CONFIRM, e);
}

enum err release_reservation(struct call *c, struct error *e)
{
    return act(c, CMD_RESERVATION_RELEASE, e);
}

enum err cancel_reservation(struct call *c, struct error *e)
{
    return act(c, CMD_RESERVATION_CANCEL, e);
}

/* ---- when ---------------------------------------------------------------------------------- */

static enum err slots_query(const struct call *c, struct slot_query *out, int64_t *limit,
                            struct error *e)
{
    struct str name = call_param(c, "class");
    int64_t after_s = 0;
    const struct class_object *class = state_class_by_name(call_state(c), name);
    *out = (struct slot_query){ .gpu_milli = 1000, .duration_s = HOUR_S };
    if (name.data == NULL)
        return err_field(e, "class", "class: name the class of the devices");
    if (class == NULL)
        return call_not_found("class", name, e);
    if (class->r.kind != CLASS_GPU)
        return err_field(e, "class", "class: %.*s has no devices; only devices are reserved",
                         STR_ARG(class->r.name));

    enum err rc = call_param_i64(c, "gpu_milli", 1000, INT64_C(1000000000), &out->gpu_milli, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "duration_s", 1, YEAR_S, &out->duration_s, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "after_s", 0, YEAR_S, &after_s, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "limit", 1, SLOTS_MAX, limit, e);
    if (rc == ERR_OK && out->gpu_milli % 1000 != 0)
        rc = err_field(e, "gpu_milli", "gpu_milli: whole devices are reserved, 1000 for each");
    out->class_number = class->r.number;
    out->from = (struct wall){ c->context->wall.ns + after_s * NS_PER_S };
    return rc;
}

enum err list_slots(struct call *c, struct error *e)
{
    struct slot_query query;
    struct slot slots[SLOTS_MAX];
    struct list list;
    char text[MILLI_TEXT_MAX];
    int64_t limit = SLOTS_DEFAULT;
    int64_t most = 0;
    enum err rc = slots_query(c, &query, &limit, e);
    if (rc != ERR_OK)
        return rc;
    size_t count =
        core_slots(call_state(c), c->context->sched, &query, slots, (size_t)limit, &most);
    struct str class_name = state_class(call_state(c), query.class_number)->r.name;
    if (count == 0)
        return err_cause(e, ERR_CONFLICT, CAUSE_OVERCOMMITTED,
                         "%.*s: only %s can be reserved at all", STR_ARG(class_name),
                         milli_text(most, text));
    rc = call_list_begin(c, &list, e);
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        const struct slot_view view = { slots[i].window.start, slots[i].window.end, class_name,
                                        slots[i].free_milli };
        list_add(&list, &slot_view_schema, &view);
    }
    return rc == ERR_OK ? call_list_end(c, &list, e) : rc;
}
