/*
 * user.c - whose turn it is among the users of a project (setting `user_fairness`).
 *
 * Among work of one priority, that of whoever used less comes first. Use is what a user's work in
 * this very project holds now plus the decayed average of what it held (model/past.c): of devices
 * of all classes together, or of cores for work without devices. Users are ranked at the beginning
 * of a pass, and only in projects that the pass looks at: nothing has to be woken for it. Groups
 * are of one user then, so that a change of turns moves groups and not all their workloads.
 */
#include <stdlib.h>

#include "model/keep.h"
#include "sched/internal.h"

static bool is_devices(const struct request *request)
{
    return request_kind(request) != REQUEST_CORES;
}

struct suser *user_of(struct sched *sched, struct sproject *project, const struct workload *work)
{
    if (sched->state->settings.user_fairness == USER_FAIRNESS_OFF)
        return NULL;
    struct suser **at = &project->users;
    while (*at != NULL && !str_eq((*at)->name, work->r.user))
        at = &(*at)->next;
    if (*at == NULL) {
        *at = pool_new(&sched->pool, sizeof(**at));
        **at = (struct suser){ .name = work->r.user, .serial = ++project->user_serial };
        str_keep(&sched->pool, &(*at)->name);
    }
    return *at;
}

void user_leave(struct sched *sched, struct sproject *project, struct suser *user)
{
    user->groups--;
    if (user->groups > 0)
        return;
    struct suser **at = &project->users;
    while (*at != user)
        at = &(*at)->next;
    *at = user->next;
    str_drop(&sched->pool, &user->name);
    pool_free(&sched->pool, user, sizeof(*user));
}

/* ---- turns --------------------------------------------------------------------------------- */

static uint64_t rank_of(const struct sgroup *group)
{
    if (group == NULL || group->user == NULL)
        return 0;
    return group->user->ranks[is_devices(&group->request)];
}

struct skip_key user_turn(const struct swork *work)
{
    return (struct skip_key){ .major = work->key.major,
                              .minor = rank_of(work->group),
                              .tie = work->key.minor };
}

struct skip_key user_bound(const struct sgroup *group, const struct swork *work)
{
    uint64_t theirs = rank_of(group);
    uint64_t ours = rank_of(work->group);
    struct skip_key bound = work->key;
    if (theirs != ours)
        bound.minor = theirs < ours ? UINT64_MAX : 0;
    return bound;
}

/* ---- ranks --------------------------------------------------------------------------------- */

/* Of cores or devices, in thousandths of one. */
struct user_use {
    int64_t held_milli;
    int64_t average_milli;
};

static struct user_use user_use(const struct sched *sched, const struct sproject *project,
                                struct str user, bool is_devices, struct mono now)
{
    const struct user_past *past = project_user_past(project->project, user);
    if (past == NULL)
        return (struct user_use){ 0 };
    const struct decay *decay = is_devices ? &past->devices : &past->cores;
    int64_t average = decay_at(decay, now, sched->state->settings.history_half_life_s);
    return (struct user_use){ decay->level, average / DECAY_ONE };
}

/* A user's place in the order of one kind. */
struct standing {
    int64_t use;
    struct suser *user;
};

static int compare_standings(const void *left, const void *right)
{
    const struct standing *a = left;
    const struct standing *b = right;
    return (a->use > b->use) - (a->use < b->use);
}

/* Equal use, equal rank: then who submitted earlier. True: somebody's rank is another. */
static bool rank_by(const struct sched *sched, struct sproject *project, struct standing *standings,
                    bool is_devices, struct mono now)
{
    size_t count = 0;
    for (struct suser *user = project->users; user != NULL; user = user->next) {
        const struct user_use use = user_use(sched, project, user->name, is_devices, now);
        standings[count++] = (struct standing){ use.held_milli + use.average_milli, user };
    }
    qsort(standings, count, sizeof(*standings), compare_standings);
    bool any = false;
    uint64_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        rank = i > 0 && standings[i].use > standings[i - 1].use ? i : rank;
        any = any || standings[i].user->ranks[is_devices] != rank;
        standings[i].user->ranks[is_devices] = rank;
    }
    return any;
}

/* A group that moves is met again, perhaps, and then stays. */
static void reorder(struct sched *sched, struct sproject *project)
{
    struct skip_node *next = NULL;
    for (struct skip_node *n = skip_first(&project->groups); n != NULL; n = next) {
        struct sgroup *group = n->item;
        const struct skip_key turn = user_turn(skip_first(&group->queue)->item);
        next = skip_next(n);
        if (skip_compare(turn, group->key) == 0)
            continue;
        skip_remove(&project->groups, &sched->pool, group->key);
        group->key = turn;
        skip_insert(&project->groups, &sched->pool, group->key, group);
    }
}

bool user_rank(struct sched *sched, struct sproject *project, struct mono now, struct arena *arena)
{
    size_t count = 0;
    for (const struct suser *user = project->users; user != NULL; user = user->next)
        count++;
    if (count == 0)
        return false;
    struct standing *standings = arena_new(arena, count, sizeof(*standings));
    bool cores = rank_by(sched, project, standings, false, now);
    bool devices = rank_by(sched, project, standings, true, now);
    if (cores || devices)
        reorder(sched, project);
    return cores || devices;
}

/* ---- explaining ---------------------------------------------------------------------------- */

static const char *user_text(const struct sched *sched, const struct swork *work, struct str user,
                             struct mono now, struct arena *arena)
{
    char held[MILLI_TEXT_MAX];
    char average[MILLI_TEXT_MAX];
    bool devices = is_devices(&work->group->request);
    const struct user_use use = user_use(sched, work->project, user, devices, now);
    return arena_format(arena, "%.*s (now %s %s, lately %s on average)", STR_ARG(user),
                        milli_text(use.held_milli, held), devices ? "devices" : "cores",
                        milli_text(use.average_milli, average));
}

struct str user_explain(const struct sched *sched, const struct swork *work, struct mono now,
                        struct arena *arena)
{
    const struct skip_key turn = user_turn(work);
    for (const struct skip_node *n = skip_first(&work->project->groups);
         n != NULL && work->group->user != NULL && skip_compare(n->key, turn) < 0;
         n = skip_next(n)) {
        const struct sgroup *group = n->item;
        bool is_turn = n->key.major == turn.major && n->key.minor < turn.minor &&
                       is_devices(&group->request) == is_devices(&work->group->request);
        if (is_turn)
            return str_of(arena_format(arena, "%s comes before %s, who uses more of %.*s",
                                       user_text(sched, work, group->user->name, now, arena),
                                       user_text(sched, work, work->group->user->name, now, arena),
                                       STR_ARG(work->project->project->r.path)));
    }
    return (struct str){ 0 };
}
