/*
 * reservation.c - windows of devices: asked for, confirmed against all others in one decision,
 * given back, and what time makes of them.
 *
 * Every reservation ends: what repeats does so for a year at most. So all of its windows can be
 * counted when it is confirmed, and what was confirmed is never counted twice.
 */
#include <string.h>

#include "core/lifecycle.h"
#include "core/slots.h"
#include "core/when.h"
#include "model/transition.h"

enum { OF_TENANT_MAX = 200 };

static const int64_t gpu_milli_max = INT64_C(1000) * 1000 * 1000;

/* ---- what is asked for --------------------------------------------------------------------- */

/* The next window that is not over; false with text: there is none. */
static enum err fill_window(const struct decision *d, struct reservation_record *r, struct error *e)
{
    struct calendar calendar = reservation_calendar(r);
    struct window window;
    if (!calendar_next(&calendar, d->wall, &window))
        return err_field(e, "end", "end: is over already");
    r->window_start = window.start;
    r->window_end = window.end;
    return ERR_OK;
}

static enum err fill_when(const struct decision *d, struct reservation_record *r, struct error *e)
{
    const struct reservation_spec *s = &d->command->reservation;
    const struct when_spec spec = { .zone = s->zone,
                                    .zone_rule = s->zone_rule,
                                    .start = s->start,
                                    .end = s->end,
                                    .until = s->until,
                                    .start_name = "start",
                                    .end_name = "end",
                                    .until_name = "until",
                                    .duration_s = s->duration_s,
                                    .every = s->every,
                                    .interval = s->interval };
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

static enum err fill(const struct decision *d, struct reservation_record *r, struct error *e)
{
    const struct reservation_spec *s = &d->command->reservation;
    const struct range ranges[] = {
        { "gpu_milli", s->gpu_milli, 1000, gpu_milli_max },
        { "end_policy", s->end_policy, 0, END_POLICY_COUNT - 1 },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    if (rc == ERR_OK && (s->gpu_milli == UNSET || s->gpu_milli % 1000 != 0))
        rc = err_field(e, "gpu_milli", "gpu_milli: whole devices are reserved, 1000 for each");
    if (rc != ERR_OK)
        return rc;
    r->gpu_milli = s->gpu_milli;
    r->end_policy = (enum end_policy)given_or(s->end_policy, END_REQUEUE);
    r->is_lent = s->is_lent;
    return fill_when(d, r, e);
}

static enum err fill_class(const struct decision *d, struct reservation_record *r, struct error *e)
{
    struct class_object *class = NULL;
    enum err rc = find_class(d, d->command->reservation.class_name, "class", &class, e);
    if (rc == ERR_OK && class->r.kind != CLASS_GPU)
        rc = err_field(e, "class", "class: %.*s has no devices; only devices are reserved",
                       STR_ARG(class->r.name));
    if (rc == ERR_OK)
        r->class_number = class->r.number;
    return rc;
}

/* ---- does it fit --------------------------------------------------------------------------- */

/* "; free for it from 2026-06-01T02:00:00, 2026-05-31T22:00:00 (Europe/Berlin)", or "". */
static const char *alternatives(const struct decision *d, const struct reservation_record *r,
                                const struct levels *levels, int64_t milli)
{
    int64_t moves[SLOTS_NEAREST];
    struct calendar calendar = reservation_calendar(r);
    size_t count = slots_nearest(levels, &calendar, milli, d->wall, moves, d->arena);
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        char start[LOCAL_TEXT_MAX];
        const struct local at = { r->start_s + moves[i] };
        text = arena_format(d->arena, "%s%s%s", text,
                            i > 0 ? ", " : "; nearest starts: ", local_text(at, start));
    }
    return text;
}

static enum err refuse(const struct decision *d, const struct reservation_record *r,
                       const struct levels *levels, int64_t capacity, struct error *e)
{
    char wanted[MILLI_TEXT_MAX];
    char left[MILLI_TEXT_MAX];
    struct calendar calendar = reservation_calendar(r);
    struct str class_name = state_class(d->state, r->class_number)->r.name;
    if (r->gpu_milli > capacity)
        return err_cause(e, ERR_CONFLICT, CAUSE_OVERCOMMITTED,
                         "%.*s: %s asked for, but only %s can be reserved at all (devices that"
                         " work, without what is never lent)",
                         STR_ARG(class_name), milli_text(r->gpu_milli, wanted),
                         milli_text(capacity, left));
    int64_t peak = slots_peak_of_all(levels, &calendar, d->wall);
    return err_cause(e, ERR_CONFLICT, CAUSE_OVERLAPS_RESERVATION,
                     "%.*s: %s asked for, but others leave %s in that time%s", STR_ARG(class_name),
                     milli_text(r->gpu_milli, wanted),
                     milli_text(MAX_OF(capacity - peak, INT64_C(0)), left),
                     alternatives(d, r, levels, capacity - r->gpu_milli));
}

/* No level of its path may have more reserved at once than its limit. */
static enum err check_limits(const struct decision *d, const struct reservation_record *r,
                             struct error *e)
{
    struct calendar calendar = reservation_calendar(r);
    char wanted[MILLI_TEXT_MAX];
    char bound[MILLI_TEXT_MAX];
    const struct project *project = state_project(d->state, r->project);
    for (const struct project *p = project; p != NULL; p = p->parent) {
        int64_t limit = project_quota(p, r->class_number).limit_milli;
        const struct slots_of of = { d->state, r->class_number, r->id, p, d->wall };
        if (limit == UNBOUNDED)
            continue;
        struct levels levels = slots_levels(&of, d->arena);
        int64_t peak = slots_peak_of_all(&levels, &calendar, d->wall);
        if (peak + r->gpu_milli > limit)
            return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                             "%.*s would have %s reserved at once, more than its limit of %s",
                             STR_ARG(p->r.path), milli_text(peak + r->gpu_milli, wanted),
                             milli_text(limit, bound));
    }
    return ERR_OK;
}

/* Against all that is kept; by force it is accepted anyway, and flagged. */
static enum err confirm(const struct decision *d, struct reservation_record *r, bool is_forced,
                        struct error *e)
{
    const struct slots_of of = { d->state, r->class_number, r->id, NULL, d->wall };
    struct calendar calendar = reservation_calendar(r);
    struct levels levels = slots_levels(&of, d->arena);
    int64_t capacity = slots_capacity(d->state, d->sched, r->class_number);
    if (is_forced && d->actor.role == ROLE_MEMBER)
        return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED,
                         "only operators reserve more than there is");
    enum err rc = check_limits(d, r, e);
    if (rc != ERR_OK)
        return rc;
    bool fits = slots_peak_of_all(&levels, &calendar, d->wall) + r->gpu_milli <= capacity;
    if (!fits && !is_forced)
        return refuse(d, r, &levels, capacity, e);
    r->is_overcommitted = !fits;
    r->state = RSV_CONFIRMED;
    return ERR_OK;
}

/* ---- commands ------------------------------------------------------------------------------ */

static struct reservation_record *set(struct decision *d, const struct reservation_record *r)
{
    struct id tenant = state_project(d->state, r->project)->tenant->r.id;
    struct event *event = decide_add(d, EV_RESERVATION_SET, tenant);
    event->reservation_set = *r;
    return &event->reservation_set;
}

static enum err check_room(const struct decision *d, const struct project *tenant, struct error *e)
{
    size_t all = 0;
    size_t own = 0;
    for (const struct reservation *r = d->state->first_reservation; r != NULL; r = r->next) {
        bool is_live = !reservation_state_is_final(r->r.state);
        all += is_live;
        own += is_live && r->project->tenant == tenant;
    }
    if (all >= RESERVATIONS_MAX || own >= OF_TENANT_MAX)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                         "there are %zu reservations that have not ended, %zu of the tenant;"
                         " cancel some",
                         all, own);
    return ERR_OK;
}

enum err decide_reservation_create(struct decision *d, struct error *e)
{
    const struct reservation_spec *s = &d->command->reservation;
    struct project *project = NULL;
    struct reservation_record r = {
        .id = d->command->new_id, .name = s->name, .user = d->actor.name, .state = RSV_REQUESTED
    };
    enum err rc = find_project(d, s->project, "project", &project, e);
    if (rc == ERR_OK)
        rc = check_name(s->name, "name", e);
    if (rc == ERR_OK)
        rc = fill_class(d, &r, e);
    if (rc == ERR_OK)
        rc = fill(d, &r, e);
    if (rc != ERR_OK)
        return rc;
    const struct reservation *other =
        state_reservation_by_name(d->state, project->tenant->r.id, s->name);
    if (other != NULL && !reservation_state_is_final(other->r.state))
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "reservation %.*s exists already",
                         STR_ARG(s->name));
    r.project = project->r.id;
    rc = check_room(d, project->tenant, e);
    if (rc == ERR_OK && !s->is_request)
        rc = confirm(d, &r, s->is_forced, e);
    if (rc == ERR_OK)
        (void)set(d, &r);
    return rc;
}

static enum err find_reservation(const struct decision *d, struct reservation **out,
                                 struct error *e)
{
    struct reservation *reservation = state_reservation(d->state, d->command->target.id);
    char text[ID_TEXT_MAX];
    if (reservation == NULL || !decide_permits(d, reservation->project->tenant->r.id))
        return not_found(e, "reservation",
                         str_of(id_text(ID_RESERVATION, d->command->target.id, text)));
    *out = reservation;
    return decide_match(d, reservation->r.version, e);
}

/* ERR_CONFLICT: it cannot become that. */
static enum err check_step(const struct reservation *reservation, enum reservation_state to,
                           struct error *e)
{
    enum reservation_state state = reservation->r.state;
    if (reservation_may_become(state, to))
        return ERR_OK;
    return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "reservation %.*s is %s, and cannot be %s",
                     STR_ARG(reservation->r.name), enum_name(&reservation_state_names, state),
                     enum_name(&reservation_state_names, to));
}

enum err decide_reservation_confirm(struct decision *d, struct error *e)
{
    struct reservation *reservation = NULL;
    enum err rc = find_reservation(d, &reservation, e);
    if (rc != ERR_OK || reservation_is_kept(reservation->r.state))
        return rc;
    struct reservation_record r = reservation->r;
    rc = check_step(reservation, RSV_CONFIRMED, e);
    if (rc == ERR_OK)
        rc = fill_window(d, &r, e);
    if (rc == ERR_OK)
        rc = confirm(d, &r, d->command->target.is_forced, e);
    if (rc == ERR_OK)
        (void)set(d, &r);
    return rc;
}

/* What its work becomes when there is no window any more. */
static void end_of_work(struct decision *d, const struct reservation *reservation)
{
    struct str name = reservation->r.name;
    struct workload *workload = NULL;
    for (size_t i = 0; (workload = sched_tied(d->sched, reservation, i)) != NULL; i++) {
        struct workload_image *image = workload_image(d, workload);
        bool is_on = image->next.state == WL_STARTING || image->next.state == WL_RUNNING;
        if (is_on && reservation->r.end_policy == END_ON_DEMAND) {
            decide_add(d, EV_WORKLOAD_UNTIED, workload->project->tenant->r.id)->removed.id =
                workload->r.id;
            continue;
        }
        bool is_stopped = reservation->r.end_policy == END_STOP;
        const struct stop stop = {
            .after = is_stopped ? WL_TIMED_OUT : WL_QUEUED,
            .cause = CAUSE_RESERVATION_ENDED,
            .detail = str_of(arena_format(d->arena, "the window of %.*s is over", STR_ARG(name))),
        };
        if (is_on)
            workload_stop(d, image, &stop);
    }
}

static enum err end_now(struct decision *d, enum reservation_state to, struct error *e)
{
    struct reservation *reservation = NULL;
    enum err rc = find_reservation(d, &reservation, e);
    if (rc == ERR_OK && reservation->r.state == to)
        return ERR_OK;
    if (rc == ERR_OK)
        rc = check_step(reservation, to, e);
    if (rc != ERR_OK)
        return rc;
    struct reservation_record r = reservation->r;
    r.state = to;
    r.detail = d->command->target.reason;
    end_of_work(d, reservation);
    (void)set(d, &r);
    lifecycle_settle(d);
    return ERR_OK;
}

enum err decide_reservation_release(struct decision *d, struct error *e)
{
    return end_now(d, RSV_RELEASED, e);
}

enum err decide_reservation_cancel(struct decision *d, struct error *e)
{
    return end_now(d, RSV_CANCELLED, e);
}

/* The laws of a zone changed: windows to come move with its clocks, the open one stays. What then
 * does not fit any more is flagged, not taken back. */
enum err decide_reservation_rezone(struct decision *d, struct error *e)
{
    const struct reservation_spec *s = &d->command->reservation;
    struct zone zone;
    enum err rc = zone_parse(s->zone_rule, &zone, e);
    if (rc != ERR_OK)
        return rc;
    for (const struct reservation *at = d->state->first_reservation; at != NULL; at = at->next) {
        struct reservation_record r = at->r;
        struct window window;
        if (reservation_state_is_final(r.state) || !str_eq(r.zone, s->zone) ||
            str_eq(r.zone_rule, s->zone_rule))
            continue;
        r.zone_rule = s->zone_rule;
        bool is_open = reservation_is_kept(r.state) && d->wall.ns >= r.window_start.ns;
        struct calendar calendar = reservation_calendar(&r);
        if (!is_open && calendar_next(&calendar, d->wall, &window)) {
            r.window_start = window.start;
            r.window_end = window.end;
        }
        const struct slots_of of = { d->state, r.class_number, r.id, NULL, d->wall };
        struct levels levels = slots_levels(&of, d->arena);
        int64_t peak = slots_peak_of_all(&levels, &calendar, d->wall);
        r.is_overcommitted |=
            peak + r.gpu_milli > slots_capacity(d->state, d->sched, r.class_number);
        (void)set(d, &r);
    }
    changes_rezone(d);
    return ERR_OK;
}

/* ---- time ---------------------------------------------------------------------------------- */

/* On to the next window, or to the end of all. */
static void window_is_over(struct decision *d, const struct reservation *reservation)
{
    struct reservation_record r = reservation->r;
    struct calendar calendar = reservation_calendar(&r);
    struct window next;
    end_of_work(d, reservation);
    r.windows_passed++;
    r.detail = (struct str){ 0 };
    r.state = RSV_COMPLETED;
    if (calendar_next(&calendar, d->wall, &next)) {
        r.state = RSV_CONFIRMED;
        r.window_start = next.start;
        r.window_end = next.end;
    }
    (void)set(d, &r);
}

static void window_is_there(struct decision *d, const struct reservation *reservation)
{
    struct reservation_record r = reservation->r;
    struct reservation_use use = sched_reservation(d->sched, reservation);
    bool is_open = d->wall.ns >= r.window_start.ns;
    bool is_whole = use.available_milli == UNSET || use.available_milli >= r.gpu_milli;
    char there[MILLI_TEXT_MAX];
    char wanted[MILLI_TEXT_MAX];
    r.state = !is_whole ? RSV_DEGRADED : is_open ? RSV_ACTIVE : RSV_CONFIRMED;
    r.detail = (struct str){ 0 };
    if (!is_whole)
        r.detail = str_of(arena_format(d->arena, "%s of %s devices are there",
                                       milli_text(use.available_milli, there),
                                       milli_text(r.gpu_milli, wanted)));
    if (r.state != reservation->r.state || !str_eq(r.detail, reservation->r.detail))
        (void)set(d, &r);
}

void reservation_tick(struct decision *d, struct reservation *reservation)
{
    struct reservation_record r = reservation->r;
    struct id tenant = reservation->project->tenant->r.id;
    switch (r.state) {
    case RSV_REQUESTED:
        if (d->wall.ns < r.window_start.ns)
            break;
        r.state = RSV_CANCELLED;
        r.detail = STR("nobody confirmed it before its window");
        (void)set(d, &r);
        break;
    case RSV_CONFIRMED:
    case RSV_ACTIVE:
    case RSV_DEGRADED:
        if (d->wall.ns >= r.window_end.ns)
            window_is_over(d, reservation);
        else
            window_is_there(d, reservation);
        break;
    case RSV_COMPLETED:
    case RSV_RELEASED:
    case RSV_CANCELLED:
        decide_add(d, EV_RESERVATION_REMOVED, tenant)->removed.id = r.id;
        break;
    case RSV_NONE:
    case RSV_STATE_COUNT:
        break;
    }
}
