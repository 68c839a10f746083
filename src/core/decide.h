/*
 * decide.h - one decision under way, shared by the handlers of core/. Only src/core includes this.
 *
 * A handler reads the state, which does not change under it, and appends events. Where one command
 * takes several steps of the same workload or allocation (a node reports ten exits), later steps
 * must see earlier ones: `steps` and `images` remember them.
 */
#ifndef CORE_DECIDE_H
#define CORE_DECIDE_H

#include "core/core.h"

struct decision {
    const struct state *state;
    const struct sched *sched;
    const struct command *command; /* NULL while a plan is carried out */
    struct arena *arena;
    struct event_list *events;
    struct actor actor;
    struct mono now;
    struct wall wall;
    struct id request;
    struct id_map steps;              /* allocation -> struct allocation_image *: lifecycle.h */
    struct id_map images;             /* workload -> struct workload_image * */
    struct workload_image *unsettled; /* in the order in which they were first touched */
    struct workload_image **unsettled_end;
};

/* Borrows state and arena; the events go to the end of `events`, in the arena. */
void decision_init(struct decision *d, const struct state *state, struct arena *arena,
                   struct event_list *events);
/* Frees the maps; events that were appended stay. */
void decision_done(struct decision *d);
DEFINE_CLEANUP_AT(decision, struct decision, decision_done)

/* Appends an event of this decision's actor, request and times; `tenant` is whose feed it is in. */
struct event *decide_add(struct decision *d, enum event_type type, struct id tenant);

/* May the actor run this command on objects of that tenant? When not, the caller answers as if the
 * object were absent. Commands that are about no tenant are checked before their handler runs. */
bool decide_permits(const struct decision *d, struct id tenant);

/* The i-th id of what this command creates: the first came with it, the others derive from that. */
struct id decide_id(const struct decision *d, uint64_t i);

/* Refuses when the caller saw another version than the present one. */
enum err decide_match(const struct decision *d, uint64_t version, struct error *e) MUST_CHECK;

bool digest_is_none(const struct digest *digest);

/* Returns ERR_NOT_FOUND, with "there is no `what` NAME" as its text. */
static inline enum err not_found(struct error *e, const char *what, struct str name)
{
    return err_cause(e, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "there is no %s \"%.*s\"", what,
                     (int)MIN_OF(name.size, (size_t)100), name.data != NULL ? name.data : "");
}

/* Lower-case letters, digits, inside also "-", "." or "_"; at most NAME_MAX_BYTES. ERR_INVALID. */
enum err check_name(struct str name, const char *field, struct error *e) MUST_CHECK;
/* Printable text of at most `max` bytes; else ERR_INVALID. */
enum err check_text(struct str text, size_t max, const char *field, struct error *e) MUST_CHECK;

struct range {
    const char *field;
    int64_t value; /* UNSET passes */
    int64_t min;
    int64_t max;
};
/* ERR_INVALID names the first value outside its range. */
enum err check_ranges(const struct range *ranges, size_t count, struct error *e) MUST_CHECK;

/* A value of a patch, or the present one where it gives none. */
static inline int64_t given_or(int64_t value, int64_t otherwise)
{
    return value != UNSET ? value : otherwise;
}

/* Finds what a path or an id names, as far as the actor may know it; else ERR_NOT_FOUND. */
enum err find_project(const struct decision *d, struct str name, const char *field,
                      struct project **out, struct error *e) MUST_CHECK;
/* The tenant a command is about: the one named, or the actor's own when none is. */
enum err find_tenant(const struct decision *d, struct str name, struct project **out,
                     struct error *e) MUST_CHECK;
/* A class by its name; ERR_NOT_FOUND also for one that was removed. */
enum err find_class(const struct decision *d, struct str name, const char *field,
                    struct class_object **out, struct error *e) MUST_CHECK;

/* Turns a list of class names into numbers of a request; at most REQUEST_CLASSES_MAX. */
enum err resolve_classes(const struct decision *d, const struct str_list *names,
                         struct request *request, struct error *e) MUST_CHECK;
/* The amounts of a request alone: ranges, and which fields exclude each other. */
enum err check_request(const struct request *request, struct error *e) MUST_CHECK;

/*
 * Handlers, one file an object kind: each checks its command against the state and appends the
 * events that carry it out, or says why not. decide() drops the events of one that fails.
 */
enum err decide_controller_start(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_settings_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_class_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_class_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_pool_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_pool_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_profile_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_profile_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_project_create(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_project_update(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_project_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_token_create(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_token_revoke(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_join(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_renew(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_inventory(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_observed(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_contact(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_cordon(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_uncordon(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_drain(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_undrain(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_confirm_lost(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_node_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_device_hold(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_device_release(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_workload_submit(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_workload_cancel(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_workload_hold(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_workload_release(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_workload_requeue(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_volume_create(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_volume_place(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_volume_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_image_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_image_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_credential_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_credential_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_hook_set(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_hook_remove(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_hook_test(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_hook_note(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_upload_stored(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_reservation_create(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_reservation_confirm(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_reservation_release(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_reservation_cancel(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_reservation_rezone(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_change_create(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_change_revert(struct decision *d, struct error *e) MUST_CHECK;
enum err decide_tick(struct decision *d, struct error *e) MUST_CHECK;

#endif
