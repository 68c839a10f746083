/*
 * change.c - changes of projects and of the settings, at once or by the calendar, and taken back.
 *
 * A change that is active is a layer: it has what its fields were before it. Ending one takes that
 * layer out, wherever it lies. Of a field that a later layer set as well, that one gets what was
 * before ours; of one that somebody set otherwise, nothing is touched: the last word of a person
 * counts. So changes may overlap in any order and none has to know of the others.
 */
#include <string.h>

#include "core/lifecycle.h"
#include "core/policy.h"
#include "core/when.h"
#include "model/transition.h"

enum { REASON_MAX = 1024 };

static struct id tenant_of(const struct change_record *r, const struct state *state)
{
    const struct project *project =
        id_is_none(r->project) ? NULL : state_project(state, r->project);
    return project != NULL ? project->tenant->r.id : (struct id){ 0 };
}

static void set(struct decision *d, const struct change_record *r)
{
    decide_add(d, EV_CHANGE_SET, tenant_of(r, d->state))->change_set = *r;
}

/* ---- what it does -------------------------------------------------------------------------- */

/* Puts a patch on the project, or on the settings. */
static enum err apply(struct decision *d, const struct change_record *r,
                      const struct policy_patch *patch, bool is_forced, struct error *e)
{
    const struct project *project = NULL;
    if (id_is_none(r->project)) {
        struct settings_record settings;
        enum err rc = settings_patch(d, patch, &settings, e);
        if (rc == ERR_OK && settings_differ(&settings, &d->state->settings))
            decide_add(d, EV_SETTINGS_CHANGED, tenant_of(r, d->state))->settings = settings;
        return rc;
    }
    project = state_project(d->state, r->project);
    struct project_record next;
    enum err rc = project_patch(d, project, patch, is_forced, &next, e);
    if (rc == ERR_OK && project_differs(&next, &project->r))
        decide_add(d, EV_PROJECT_SET, project->tenant->r.id)->project_set = next;
    return rc;
}

/* What the fields of `to` are now. */
static struct policy_patch present(const struct decision *d, const struct change_record *r)
{
    const struct project *project =
        id_is_none(r->project) ? NULL : state_project(d->state, r->project);
    struct policy_patch to = r->to; /* only read */
    struct policy_patch former = policy_blank(&to, d->arena);
    struct policy_cell cell;
    for (size_t at = 0; policy_next(&to, &at, &cell);)
        *policy_find(&former, &cell) = policy_present(d->state, project, &cell);
    return former;
}

/* It becomes active, with what it does; on a refusal nothing is done. */
static enum err begin(struct decision *d, struct change_record *r, struct error *e)
{
    size_t mark = d->events->count;
    r->former = present(d, r);
    r->state = CHG_ACTIVE;
    r->detail = (struct str){ 0 };
    set(d, r);
    enum err rc = apply(d, r, &r->to, r->is_forced, e);
    if (rc != ERR_OK)
        d->events->count = mark;
    return rc;
}

/* The first layer above `change` that has that field; NULL: it lies on top. */
static const struct change *above(const struct decision *d, const struct change *change,
                                  const struct policy_cell *cell)
{
    const struct change *found = NULL;
    for (const struct change *c = d->state->first_change; c != NULL; c = c->next) {
        if (c->r.state != CHG_ACTIVE || !id_eq(c->r.project, change->r.project) ||
            c->r.active_sequence <= change->r.active_sequence || !policy_has(&c->r.to, cell))
            continue;
        if (found == NULL || c->r.active_sequence < found->r.active_sequence)
            found = c;
    }
    return found;
}

/* The layers above that lay on this one lie on what was below it. */
static void relay(struct decision *d, const struct change *change)
{
    struct policy_patch former = change->r.former; /* only read */
    for (const struct change *c = d->state->first_change; c != NULL; c = c->next) {
        struct change_record r = c->r;
        struct policy_cell cell;
        bool is_changed = false;
        r.former = policy_copy(&r.former, d->arena);
        for (size_t at = 0; policy_next(&former, &at, &cell);) {
            if (above(d, change, &cell) != c)
                continue;
            *policy_find(&r.former, &cell) = *cell.value;
            is_changed = true;
        }
        if (is_changed)
            set(d, &r);
    }
}

/* A class that was removed meanwhile: nobody could see what is set of it, nor set it otherwise. */
static bool is_of_removed(const struct decision *d, const struct policy_cell *cell)
{
    return cell->field->kind == POLICY_QUOTA &&
           state_class(d->state, cell->class_number)->is_removed;
}

/* What is left of it to take back: the fields on top that are still as it made them. */
static struct policy_patch what_is_left(const struct decision *d, const struct change *change)
{
    struct policy_patch former = change->r.former; /* only read */
    struct policy_patch to = change->r.to;         /* likewise */
    struct policy_patch left = policy_blank(&former, d->arena);
    struct policy_cell cell;
    for (size_t at = 0; policy_next(&to, &at, &cell);) {
        if (above(d, change, &cell) == NULL && !is_of_removed(d, &cell) &&
            policy_present(d->state, change->project, &cell) == *cell.value)
            *policy_find(&left, &cell) = *policy_find(&former, &cell);
    }
    return left;
}

/* Takes the layer out; its record goes on as `r` says. What was once there is put back even where
 * others were promised it meanwhile: that is flagged, not refused. */
static enum err take_out(struct decision *d, const struct change *change, struct change_record *r,
                         struct error *e)
{
    const struct policy_patch left = what_is_left(d, change);
    enum err rc = apply(d, r, &left, true, e);
    if (rc != ERR_OK)
        return rc;
    relay(d, change);
    r->former = policy_nothing();
    set(d, r);
    return ERR_OK;
}

/* ---- commands ------------------------------------------------------------------------------ */

static enum err fill_when(const struct decision *d, struct change_record *r, struct error *e)
{
    const struct change_spec *s = &d->command->change;
    const struct when_spec spec = { .zone = s->zone,
                                    .zone_rule = s->zone_rule,
                                    .start = s->from,
                                    .end = s->until,
                                    .until = s->repeat_until,
                                    .start_name = "from",
                                    .end_name = "until",
                                    .until_name = "repeat_until",
                                    .duration_s = s->duration_s,
                                    .every = s->every,
                                    .interval = s->interval,
                                    .may_be_now = true,
                                    .may_be_open = true };
    struct when when;
    enum err rc = when_fill(&spec, d->wall, &when, e);
    if (rc != ERR_OK)
        return rc;
    r->zone = when.zone;
    r->zone_rule = when.zone_rule;
    r->start_s = when.start_s;
    r->end_s = when.end_s;
    r->repeat = when.repeat;
    r->interval = when.interval;
    r->until_s = when.until_s;
    r->window_start = when.window.start;
    r->window_end = when.window.end;
    return ERR_OK;
}

static enum err fill_patch(const struct decision *d, struct change_record *r, struct error *e)
{
    const struct change_spec *s = &d->command->change;
    struct policy_cell cell;
    size_t at = 0;
    enum err rc = quotas_resolve(d, &s->quotas, &r->to.quotas, e);
    if (rc != ERR_OK)
        return rc;
    r->to.priority = s->priority;
    r->to.log_quota_mib = s->log_quota_mib;
    r->to.log_days = s->log_days;
    r->to.settings = s->settings;
    if (!policy_next(&r->to, &at, &cell))
        return err_field(e, "quotas", "nothing to change is named: quotas, priority or settings");
    bool is_of_settings = id_is_none(r->project);
    for (at = 0; policy_next(&r->to, &at, &cell);) {
        if ((cell.field->kind == POLICY_SETTING) == is_of_settings)
            continue;
        return err_field(e, "project",
                         is_of_settings ? "project is missing: %s is one of a project"
                                        : "project: %s is one of the whole installation",
                         cell.field->name);
    }
    return ERR_OK;
}

/* A change is found by its name, and by whose newest it is: no word may mean both. */
static enum err check_name_is_free(const struct decision *d, struct str name, struct error *e)
{
    if (name.size == 0)
        return ERR_OK;
    enum err rc = check_name(name, "name", e);
    const struct change *other = state_change_by_name(d->state, name);
    if (rc != ERR_OK)
        return rc;
    if (str_is(name, CHANGES_OF_SETTINGS))
        return err_field(e, "name", "name: \"%s\" means the newest change of the settings",
                         CHANGES_OF_SETTINGS);
    if (state_project_by_path(d->state, name) != NULL)
        return err_field(e, "name", "name: \"%.*s\" means the newest change of that project",
                         STR_ARG(name));
    if (other != NULL && !change_state_is_final(other->r.state))
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "change %.*s exists already",
                         STR_ARG(name));
    return ERR_OK;
}

static bool is_for_good(const struct change_record *r)
{
    return r->state == CHG_ACTIVE && r->end_s == 0;
}

/* Only the last few that are for good can be taken back; what has a time is bounded as a whole. */
static enum err make_room(struct decision *d, const struct change_record *r, struct error *e)
{
    size_t timed = 0;
    size_t kept = 0;
    const struct change *oldest = NULL;
    for (const struct change *c = d->state->first_change; c != NULL; c = c->next) {
        timed += !change_state_is_final(c->r.state) && !is_for_good(&c->r);
        if (!is_for_good(&c->r) || !id_eq(c->r.project, r->project))
            continue;
        kept++;
        oldest = oldest != NULL ? oldest : c;
    }
    if (timed >= CHANGES_MAX)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                         "there are %zu changes that have a time; revert some", timed);
    if (kept < CHANGES_KEPT_MAX)
        return ERR_OK;
    struct change_record settled = oldest->r;
    settled.state = CHG_SETTLED;
    settled.detail = STR("later ones took its place");
    set(d, &settled);
    return ERR_OK;
}

/* What it does could be done now: else it is refused although its time is to come. */
static enum err rehearse(struct decision *d, const struct change_record *r, struct error *e)
{
    size_t mark = d->events->count;
    enum err rc = apply(d, r, &r->to, r->is_forced, e);
    d->events->count = mark;
    return rc;
}

enum err decide_change_create(struct decision *d, struct error *e)
{
    const struct change_spec *s = &d->command->change;
    struct project *project = NULL;
    struct change_record r = { .id = d->command->new_id,
                               .name = s->name,
                               .user = d->actor.name,
                               .reason = s->reason,
                               .is_forced = s->is_forced,
                               .to = policy_nothing(),
                               .former = policy_nothing(),
                               .state = CHG_SCHEDULED };
    const struct id nobody = { 0 };
    enum err rc = ERR_OK;
    if (s->project.size > 0)
        rc = find_project(d, s->project, "project", &project, e);
    else if (!decide_permits(d, nobody))
        rc = err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED, "settings are for operators");
    if (rc == ERR_OK && project != NULL)
        r.project = project->r.id;
    if (rc == ERR_OK)
        rc = check_text(s->reason, REASON_MAX, "reason", e);
    if (rc == ERR_OK)
        rc = check_name_is_free(d, s->name, e);
    if (rc == ERR_OK)
        rc = fill_patch(d, &r, e);
    if (rc == ERR_OK)
        rc = fill_when(d, &r, e);
    if (rc == ERR_OK)
        rc = make_room(d, &r, e);
    if (rc != ERR_OK)
        return rc;
    if (d->wall.ns >= r.window_start.ns)
        return begin(d, &r, e);
    rc = rehearse(d, &r, e);
    if (rc == ERR_OK)
        set(d, &r);
    return rc;
}

enum err decide_change_revert(struct decision *d, struct error *e)
{
    const struct change *change = state_change(d->state, d->command->target.id);
    char text[ID_TEXT_MAX];
    if (change == NULL || !decide_permits(d, tenant_of(&change->r, d->state)))
        return not_found(e, "change", str_of(id_text(ID_CHANGE, d->command->target.id, text)));
    enum err rc = decide_match(d, change->r.version, e);
    if (rc != ERR_OK)
        return rc;
    if (!change_may_become(change->r.state, CHG_REVERTED))
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "the change is %s already",
                         enum_name(&change_state_names, change->r.state));
    struct change_record r = change->r;
    r.state = CHG_REVERTED;
    r.detail = d->command->target.reason;
    if (change->r.state == CHG_ACTIVE)
        return take_out(d, change, &r, e);
    set(d, &r);
    return ERR_OK;
}

/* ---- time ---------------------------------------------------------------------------------- */

/* On to the next window, or to the end of all. */
static void next_window(const struct decision *d, struct change_record *r,
                        enum change_state otherwise)
{
    struct window next;
    r->state = otherwise;
    r->windows_passed++;
    if (r->end_s == 0)
        return;
    struct calendar calendar = change_calendar(r);
    if (!calendar_next(&calendar, (struct wall){ MAX_OF(d->wall.ns, r->window_end.ns) }, &next))
        return;
    r->state = CHG_SCHEDULED;
    r->window_start = next.start;
    r->window_end = next.end;
}

static void its_time_comes(struct decision *d, const struct change *change)
{
    struct change_record r = change->r;
    struct error why = { 0 };
    bool has_passed = r.end_s != 0 && d->wall.ns >= r.window_end.ns;
    if (!has_passed && begin(d, &r, &why) == ERR_OK)
        return;
    r = change->r;
    next_window(d, &r, has_passed ? CHG_EXPIRED : CHG_FAILED);
    r.detail = has_passed ? STR("its time passed while the controller was away")
                          : str_of(arena_format(d->arena, "%s", why.text));
    set(d, &r);
}

static void its_time_is_over(struct decision *d, const struct change *change)
{
    struct change_record r = change->r;
    struct error why = { 0 };
    next_window(d, &r, CHG_EXPIRED);
    r.detail = (struct str){ 0 };
    if (take_out(d, change, &r, &why) == ERR_OK)
        return;
    /* What was before does not go with what others set meanwhile: that stays as it is. */
    r.detail = str_of(arena_format(d->arena, "what was before was not put back: %s", why.text));
    r.former = policy_nothing();
    relay(d, change);
    set(d, &r);
}

void change_tick(struct decision *d, const struct change *change)
{
    switch (change->r.state) {
    case CHG_SCHEDULED:
        its_time_comes(d, change);
        break;
    case CHG_ACTIVE:
        its_time_is_over(d, change);
        break;
    case CHG_EXPIRED:
    case CHG_REVERTED:
    case CHG_SETTLED:
    case CHG_FAILED:
        decide_add(d, EV_CHANGE_REMOVED, tenant_of(&change->r, d->state))->removed.id =
            change->r.id;
        break;
    case CHG_NONE:
    case CHG_STATE_COUNT:
        break;
    }
}

void changes_rezone(struct decision *d)
{
    const struct reservation_spec *s = &d->command->reservation;
    for (const struct change *at = d->state->first_change; at != NULL; at = at->next) {
        struct change_record r = at->r;
        struct window window = { r.window_start, r.window_end };
        if (change_state_is_final(r.state) || !str_eq(r.zone, s->zone) ||
            str_eq(r.zone_rule, s->zone_rule))
            continue;
        r.zone_rule = s->zone_rule;
        struct calendar calendar = change_calendar(&r);
        if (r.end_s == 0)
            window.start.ns = zone_instant(&calendar.zone, calendar.start) * NS_PER_S;
        if (r.state == CHG_SCHEDULED &&
            (r.end_s == 0 || calendar_next(&calendar, d->wall, &window))) {
            r.window_start = window.start;
            r.window_end = window.end;
        }
        set(d, &r);
    }
}
