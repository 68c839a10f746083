/* volume.c - a tenant's volumes: named directories whose bytes are on one node. */
#include "core/decide.h"

enum { VOLUMES_OF_TENANT_MAX = 1000 };

static enum err find_volume(const struct decision *d, struct volume **out, struct error *e)
{
    struct volume *volume = state_volume(d->state, d->command->target.id);
    struct str name = d->command->target.name;
    if (volume == NULL && !id_is_none(d->actor.tenant))
        volume = state_volume_by_name(d->state, d->actor.tenant, name);
    char text[ID_TEXT_MAX];
    if (name.size == 0)
        name = str_of(id_text(ID_VOLUME, d->command->target.id, text));
    if (volume == NULL || !decide_permits(d, volume->r.tenant))
        return not_found(e, "volume", name);
    *out = volume;
    return ERR_OK;
}

enum err decide_volume_create(struct decision *d, struct error *e)
{
    const struct volume_spec *spec = &d->command->volume_create;
    const struct range quota = { "quota_mib", spec->quota_mib, 0, INT64_C(1) << 40 };
    struct project *tenant = NULL;
    enum err rc = find_tenant(d, spec->tenant, &tenant, e);
    if (rc == ERR_OK)
        rc = check_name(spec->name, "name", e);
    if (rc == ERR_OK)
        rc = check_ranges(&quota, 1, e);
    if (rc != ERR_OK)
        return rc;
    if (state_volume_by_name(d->state, tenant->r.id, spec->name) != NULL)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "volume %.*s exists already",
                         STR_ARG(spec->name));
    if (tenant->volume_count >= VOLUMES_OF_TENANT_MAX)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                         "the tenant has %d volumes already; remove some", VOLUMES_OF_TENANT_MAX);
    decide_add(d, EV_VOLUME_SET, tenant->r.id)->volume_set =
        (struct volume_record){ .id = d->command->new_id,
                                .tenant = tenant->r.id,
                                .name = spec->name,
                                .quota_mib = given_or(spec->quota_mib, 0),
                                .created = d->wall };
    return ERR_OK;
}

/* Before a volume is first filled: the first usable node will have its bytes. A volume whose node
 * exists stays there. */
enum err decide_volume_place(struct decision *d, struct error *e)
{
    struct volume *volume = NULL;
    enum err rc = find_volume(d, &volume, e);
    if (rc != ERR_OK)
        return rc;
    if (!id_is_none(volume->r.node) && state_node(d->state, volume->r.node) != NULL)
        return ERR_OK;
    const struct node *node = d->state->first_node;
    while (node != NULL && !node_is_usable(node))
        node = node->next;
    if (node == NULL)
        return err_cause(e, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE,
                         "no node is usable now; try again when one is");
    struct event *event = decide_add(d, EV_VOLUME_SET, volume->r.tenant);
    event->volume_set = volume->r;
    event->volume_set.node = node->r.id;
    return ERR_OK;
}

static const struct workload *volume_user(const struct state *state, struct id volume)
{
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        bool is_over = workload_state_is_final(w->r.state) && w->first_allocation == NULL;
        for (size_t i = 0; i < w->r.volumes.count && !is_over; i++)
            if (id_eq(w->r.volumes.items[i], volume))
                return w;
    }
    return NULL;
}

enum err decide_volume_remove(struct decision *d, struct error *e)
{
    struct volume *volume = NULL;
    enum err rc = find_volume(d, &volume, e);
    if (rc == ERR_OK)
        rc = decide_match(d, volume->r.version, e);
    if (rc != ERR_OK)
        return rc;
    const struct workload *user = volume_user(d->state, volume->r.id);
    char text[ID_TEXT_MAX];
    if (user != NULL)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "volume %.*s is used by %s",
                         STR_ARG(volume->r.name), id_text(ID_WORKLOAD, user->r.id, text));
    decide_add(d, EV_VOLUME_REMOVED, volume->r.tenant)->removed.id = volume->r.id;
    return ERR_OK;
}
