/* nodes.c - machines and their devices: for operators. */
#include <stdio.h>

#include "api/call.h"
#include "api/handlers.h"
#include "wire/spec_json.h"

static void fill(const struct call *c, const struct node *node, struct node_view *view)
{
    const struct api_ops *ops = c->context->ops;

    node_view_fill(view, call_state(c), node, c->context->now, call_arena(c));
    if (ops->clock_skew_ms != NULL)
        view->clock_skew_ms = ops->clock_skew_ms(ops->arg, node->r.id);
}

static void answer_node(struct call *c, const struct node *node)
{
    struct node_view view;

    fill(c, node, &view);
    call_answer(c, &node_view_schema, &view, node->r.version);
}

enum err list_nodes(struct call *c, struct error *e)
{
    struct str pool = call_param(c, "pool");
    int64_t contact = UNSET;
    struct list list;
    enum err rc = call_param_enum(c, "contact", &node_contact_names, &contact, e);
    if (rc == ERR_OK)
        rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct node *node = call_state(c)->first_node; node != NULL && !list.has_more;
         node = node->next) {
        char text[ID_TEXT_MAX];
        struct node_view view;
        bool is_wanted = (contact == UNSET || (int64_t)node->r.contact == contact) &&
                         (pool.data == NULL || str_eq(node->pool->r.name, pool));
        if (!is_wanted || !list_wants(&list, id_text(ID_NODE, node->r.id, text)))
            continue;
        fill(c, node, &view);
        list_add(&list, &node_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

enum err get_node(struct call *c, struct error *e)
{
    struct node *node = NULL;
    enum err rc = call_node(c, c->request->params[0], &node, e);

    if (rc == ERR_OK)
        answer_node(c, node);
    return rc;
}

/* ---- actions ------------------------------------------------------------------------------- */

static enum err act(struct call *c, enum command_type type, struct error *e)
{
    struct node *node = NULL;
    enum err rc = call_node(c, c->request->params[0], &node, e);

    return rc == ERR_OK ? call_action(c, type, node->r.id, e) : rc;
}

enum err set_node(struct call *c, struct error *e)
{
    struct node *node = NULL;
    enum err rc = call_node(c, c->request->params[0], &node, e);

    if (rc == ERR_OK)
        rc = call_command(c, CMD_NODE_SET, e);
    if (rc != ERR_OK)
        return rc;
    c->result->command.target.id = node->r.id;
    return call_body(c, &c->result->command.node_set, e);
}

enum err cordon_node(struct call *c, struct error *e)
{
    return act(c, CMD_NODE_CORDON, e);
}

enum err uncordon_node(struct call *c, struct error *e)
{
    return act(c, CMD_NODE_UNCORDON, e);
}

enum err drain_node(struct call *c, struct error *e)
{
    return act(c, CMD_NODE_DRAIN, e);
}

enum err undrain_node(struct call *c, struct error *e)
{
    return act(c, CMD_NODE_UNDRAIN, e);
}

enum err confirm_lost_node(struct call *c, struct error *e)
{
    return act(c, CMD_NODE_CONFIRM_LOST, e);
}

enum err finish_node(struct call *c, struct error *e)
{
    const struct node *node = state_node(call_state(c), c->before->command.target.id);

    if (node == NULL)
        return call_not_found("node", c->request->params[0], e);
    answer_node(c, node);
    return ERR_OK;
}

enum err remove_node(struct call *c, struct error *e)
{
    struct node *node = NULL;
    enum err rc = call_node(c, c->request->params[0], &node, e);

    if (rc == ERR_OK)
        rc = call_target(c, CMD_NODE_REMOVE, node->r.id, e);
    if (rc == ERR_OK)
        rc = call_param_bool(c, "force", &c->result->command.target.is_forced, e);
    return rc;
}

/* ---- devices ------------------------------------------------------------------------------- */

/* Rows have no id of their own: the cursor is node and index. */
static void add_devices(struct call *c, struct list *list, const struct node *node,
                        struct str class_name)
{
    for (size_t i = 0; i < node->r.devices.count && !list->has_more; i++) {
        const struct device_record *device = &node->r.devices.items[i];
        struct device_view view;
        char node_text[ID_TEXT_MAX];
        char cursor[2 * ID_TEXT_MAX];

        device_view_fill(&view, call_state(c), node, device);
        if (class_name.data != NULL && !str_eq(class_name, view.class_name))
            continue;
        (void)snprintf(cursor, sizeof(cursor), "%s.%lld", id_text(ID_NODE, node->r.id, node_text),
                       (long long)device->index);
        if (list_wants(list, cursor))
            list_add(list, &device_view_schema, &view);
    }
}

enum err list_devices(struct call *c, struct error *e)
{
    struct str name = call_param(c, "node");
    struct node *only = NULL;
    struct list list;
    enum err rc = ERR_OK;
    if (name.data != NULL)
        rc = call_node(c, name, &only, e);
    if (rc == ERR_OK)
        rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct node *node = call_state(c)->first_node; node != NULL && !list.has_more;
         node = node->next)
        if (only == NULL || node == only)
            add_devices(c, &list, node, call_param(c, "class"));
    return call_list_end(c, &list, e);
}

static enum err act_on_device(struct call *c, enum command_type type, struct error *e)
{
    int64_t index = 0;
    enum err rc = act(c, type, e);

    if (rc != ERR_OK)
        return rc;
    if (!str_to_i64(c->request->params[1], 0, 65535, &index))
        return call_not_found("device", c->request->params[1], e);
    c->result->command.target.index = index;
    return ERR_OK;
}

enum err hold_device(struct call *c, struct error *e)
{
    return act_on_device(c, CMD_DEVICE_HOLD, e);
}

enum err release_device(struct call *c, struct error *e)
{
    return act_on_device(c, CMD_DEVICE_RELEASE, e);
}

enum err finish_device(struct call *c, struct error *e)
{
    const struct target *target = &c->before->command.target;
    const struct node *node = state_node(call_state(c), target->id);

    for (size_t i = 0; node != NULL && i < node->r.devices.count; i++) {
        struct device_view view;
        if (node->r.devices.items[i].index != target->index)
            continue;
        device_view_fill(&view, call_state(c), node, &node->r.devices.items[i]);
        call_answer(c, &device_view_schema, &view, node->r.version);
        return ERR_OK;
    }
    return call_not_found("device", c->request->params[1], e);
}

/* ---- what nodes hold ----------------------------------------------------------------------- */

enum err list_allocations(struct call *c, struct error *e)
{
    struct str name = call_param(c, "node");
    struct node *only = NULL;
    struct list list;
    enum err rc = ERR_OK;
    if (name.data != NULL)
        rc = call_node(c, name, &only, e);
    if (rc == ERR_OK)
        rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct node *node = call_state(c)->first_node; node != NULL; node = node->next) {
        const struct allocation *a = only == NULL || node == only ? node->first_allocation : NULL;
        for (; a != NULL && !list.has_more; a = a->next_on_node) {
            char text[ID_TEXT_MAX];
            struct allocation_view view;
            if (!list_wants(&list, id_text(ID_ALLOCATION, a->r.id, text)))
                continue;
            allocation_view_fill(&view, call_state(c), a);
            list_add(&list, &allocation_view_schema, &view);
        }
    }
    return call_list_end(c, &list, e);
}
