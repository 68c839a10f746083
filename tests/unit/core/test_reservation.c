/* Reservations: what is refused and why, what is offered instead, who may, and that nothing is ever
 * promised twice. */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

#define START_S INT64_C(1780272000) /* 2026-06-01T00:00:00Z, a Monday */

static void world(struct lab *lab)
{
    lab_init(lab);
    lab->wall.ns = START_S * NS_PER_S;
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = { "n1", "n2" };
        (void)lab_add_node(lab, (struct lab_node){ names[i], "h100", .devices = 8 });
    }
    (void)lab_project(lab, "amber", (struct lab_quota){ .class_name = "h100" });
    (void)lab_project(lab, "birch", (struct lab_quota){ .class_name = "h100" });
}

static struct actor member_of(const struct lab *lab, const char *tenant)
{
    const struct project *project = state_project_by_path(lab->state, str_of(tenant));
    return (struct actor){ .role = ROLE_MEMBER, .tenant = project->r.id, .name = STR("ada") };
}

static struct command create(const char *name, int64_t gpus, const char *start, const char *end)
{
    struct command command = { .type = CMD_RESERVATION_CREATE };
    command.reservation = (struct reservation_spec){ .name = str_of(name),
                                                     .project = STR("amber"),
                                                     .class_name = STR("h100"),
                                                     .start = str_of(start),
                                                     .end = str_of(end),
                                                     .gpu_milli = gpus * 1000,
                                                     .duration_s = UNSET,
                                                     .every = UNSET,
                                                     .interval = UNSET,
                                                     .end_policy = UNSET };
    return command;
}

static enum err reserve(struct lab *lab, struct command *command)
{
    command->new_id = lab_id(lab);
    return lab_do(lab, command);
}

static const struct reservation *named(const struct lab *lab, const char *name)
{
    const struct project *tenant = state_project_by_path(lab->state, STR("amber"));
    return state_reservation_by_name(lab->state, tenant->r.id, str_of(name));
}

/* ---- what is refused ----------------------------------------------------------------------- */

#define CHANGE(name, what)                                                                         \
    static void name(struct reservation_spec *s)                                                   \
    {                                                                                              \
        what;                                                                                      \
    }
CHANGE(no_name, s->name = STR(""))
CHANGE(bad_name, s->name = STR("Evening"))
CHANGE(no_project, s->project = STR("oak"))
CHANGE(no_class, s->class_name = STR("b200"))
CHANGE(cpu_class, s->class_name = STR("cpu-x86"))
CHANGE(no_gpus, s->gpu_milli = UNSET)
CHANGE(half_a_gpu, s->gpu_milli = 1500)
CHANGE(no_start, s->start = STR(""))
CHANGE(bad_start, s->start = STR("2026-06-31T00:00:00"))
CHANGE(no_end, s->end = STR(""))
CHANGE(end_and_duration, s->duration_s = 60)
CHANGE(end_first, s->end = STR("2026-06-01T01:00:00"))
CHANGE(in_the_past, s->start = STR("2026-05-01T01:00:00"); s->end = STR("2026-05-01T02:00:00"))
CHANGE(too_far, s->start = STR("2027-07-01T01:00:00"); s->end = STR("2027-07-01T02:00:00"))
CHANGE(too_long, s->end = STR("2027-08-01T01:00:00"))
CHANGE(bad_zone, s->zone = STR("Europe/Atlantis"))
CHANGE(bad_every, s->every = REPEAT_COUNT)
CHANGE(bad_policy, s->end_policy = END_POLICY_COUNT)
CHANGE(other_weekdays, s->every = REPEAT_WEEKDAY; s->interval = 2)
CHANGE(into_the_next, s->every = REPEAT_DAY; s->end = STR("2026-06-02T02:00:00"))
CHANGE(once_until, s->until = STR("2026-07-01T00:00:00"))
CHANGE(until_first, s->every = REPEAT_DAY; s->until = STR("2026-06-01T01:00:00"))
CHANGE(until_too_far, s->every = REPEAT_DAY; s->until = STR("2027-08-01T01:00:00"))
CHANGE(too_many, s->gpu_milli = 17000)

/* clang-format off */
static const struct {
    const char *name;
    void (*change)(struct reservation_spec *s);
    enum err rc;
    enum cause cause;
    const char *field;
} refusals[] = {
    { "no name", no_name, ERR_INVALID, CAUSE_NONE, "name" },
    { "a name that is none", bad_name, ERR_INVALID, CAUSE_NONE, "name" },
    { "an absent project", no_project, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "" },
    { "an absent class", no_class, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "class" },
    { "cores", cpu_class, ERR_INVALID, CAUSE_NONE, "class" },
    { "no amount", no_gpus, ERR_INVALID, CAUSE_NONE, "gpu_milli" },
    { "parts of devices", half_a_gpu, ERR_INVALID, CAUSE_NONE, "gpu_milli" },
    { "no start", no_start, ERR_INVALID, CAUSE_NONE, "start" },
    { "a day that does not exist", bad_start, ERR_INVALID, CAUSE_NONE, "start" },
    { "no end", no_end, ERR_INVALID, CAUSE_NONE, "end" },
    { "an end and a duration", end_and_duration, ERR_INVALID, CAUSE_NONE, "end" },
    { "an end before the start", end_first, ERR_INVALID, CAUSE_NONE, "end" },
    { "a window that is over", in_the_past, ERR_INVALID, CAUSE_NONE, "end" },
    { "a start too far away", too_far, ERR_INVALID, CAUSE_NONE, "start" },
    { "more than a year", too_long, ERR_INVALID, CAUSE_NONE, "end" },
    { "a zone that is none", bad_zone, ERR_INVALID, CAUSE_NONE, "zone" },
    { "a recurrence that is none", bad_every, ERR_INVALID, CAUSE_NONE, "every" },
    { "an end policy that is none", bad_policy, ERR_INVALID, CAUSE_NONE, "end_policy" },
    { "every second weekday", other_weekdays, ERR_INVALID, CAUSE_NONE, "interval" },
    { "windows that meet", into_the_next, ERR_INVALID, CAUSE_NONE, "end" },
    { "an end of what comes once", once_until, ERR_INVALID, CAUSE_NONE, "until" },
    { "an end of all before the start", until_first, ERR_INVALID, CAUSE_NONE, "until" },
    { "windows beyond a year", until_too_far, ERR_INVALID, CAUSE_NONE, "until" },
    { "more than there is", too_many, ERR_CONFLICT, CAUSE_OVERCOMMITTED, "" },
};
/* clang-format on */

static void refused_with_the_field(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    FOR_EACH_CASE (c, refusals) {
        struct command command = create("slot", 8, "2026-06-01T01:00:00", "2026-06-01T02:00:00");
        uint64_t before = lab.state->sequence;
        c->change(&command.reservation);
        if (reserve(&lab, &command) != c->rc)
            fail_msg("%s: %s", c->name, lab.e.text);
        CHECK(c->name, lab.e.cause == c->cause);
        if (strcmp(lab.e.field, c->field) != 0)
            fail_msg("%s: field %s (%s)", c->name, lab.e.field, lab.e.text);
        CHECK("changes nothing", lab.state->sequence == before);
    }
    struct command command = create("slot", 8, "2026-06-01T01:00:00", "2026-06-01T02:00:00");
    CHECK("and without any of that it is taken", reserve(&lab, &command) == ERR_OK);
    CHECK("confirmed", named(&lab, "slot")->r.state == RSV_CONFIRMED);
    CHECK("a name is there once", reserve(&lab, &command) == ERR_CONFLICT);
}

static void offers_the_nearest(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command first = create("first", 10, "2026-06-01T10:00:00", "2026-06-01T12:00:00");
    struct command second = create("second", 10, "2026-06-01T14:00:00", "2026-06-01T16:00:00");
    struct command third = create("third", 10, "2026-06-01T11:00:00", "2026-06-01T13:00:00");
    CHECK("the first", reserve(&lab, &first) == ERR_OK);
    CHECK("the second", reserve(&lab, &second) == ERR_OK);
    CHECK("the third does not fit", reserve(&lab, &third) == ERR_CONFLICT);
    CHECK("for want of time", lab.e.cause == CAUSE_OVERLAPS_RESERVATION);
    CHECK("how much is left", strstr(lab.e.text, "others leave 6 in that time") != NULL);
    CHECK("later, earlier, and after all",
          strstr(lab.e.text, "2026-06-01T12:00:00, 2026-06-01T08:00:00, 2026-06-01T16:00:00") !=
              NULL);
    third.reservation.gpu_milli = 6000;
    CHECK("less fits beside it", reserve(&lab, &third) == ERR_OK);
    struct command touching = create("touching", 10, "2026-06-01T12:00:00", "2026-06-01T13:00:00");
    CHECK("windows are half open", reserve(&lab, &touching) == ERR_OK);
}

static void forced_is_flagged(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = create("slot", 17, "2026-06-01T01:00:00", "2026-06-01T02:00:00");
    command.reservation.is_forced = true;
    command.actor = member_of(&lab, "amber");
    CHECK("not by members", reserve(&lab, &command) == ERR_DENIED);
    command.actor = (struct actor){ 0 };
    CHECK("by operators", reserve(&lab, &command) == ERR_OK);
    CHECK("it says so", named(&lab, "slot")->r.is_overcommitted);
    struct command other = create("other", 4, "2026-06-02T01:00:00", "2026-06-02T02:00:00");
    other.reservation.is_forced = true;
    CHECK("what fits is not",
          reserve(&lab, &other) == ERR_OK && !named(&lab, "other")->r.is_overcommitted);
}

static void never_lent_is_not_there(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    lab_set_quota(&lab, "birch",
                  (struct lab_quota){ "h100", .quota_milli = 8000, .lend_milli = 5500 });
    struct command command = create("slot", 14, "2026-06-01T01:00:00", "2026-06-01T02:00:00");
    CHECK("two and a half are never lent", reserve(&lab, &command) == ERR_CONFLICT);
    CHECK("too much at any time", lab.e.cause == CAUSE_OVERCOMMITTED);
    command.reservation.gpu_milli = 13000;
    CHECK("the rest is there", reserve(&lab, &command) == ERR_OK);
}

static void limits_hold(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    lab_set_quota(&lab, "amber", (struct lab_quota){ "h100", .limit_milli = 8000 });
    struct command first = create("first", 6, "2026-06-01T01:00:00", "2026-06-01T03:00:00");
    struct command second = create("second", 3, "2026-06-01T02:00:00", "2026-06-01T04:00:00");
    CHECK("within", reserve(&lab, &first) == ERR_OK);
    CHECK("together beyond", reserve(&lab, &second) == ERR_LIMIT);
    CHECK("by its limit", lab.e.cause == CAUSE_EXCEEDS_LIMIT);
    second.reservation.start = STR("2026-06-01T03:00:00");
    CHECK("one after the other", reserve(&lab, &second) == ERR_OK);
}

static void own_tenant_only(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = create("slot", 8, "2026-06-01T01:00:00", "2026-06-01T02:00:00");
    command.actor = member_of(&lab, "birch");
    CHECK("not for others", reserve(&lab, &command) == ERR_NOT_FOUND);
    command.actor = member_of(&lab, "amber");
    CHECK("for one's own", reserve(&lab, &command) == ERR_OK);
    static const enum command_type types[] = { CMD_RESERVATION_CONFIRM, CMD_RESERVATION_RELEASE,
                                               CMD_RESERVATION_CANCEL };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct command act = { .type = types[i], .actor = member_of(&lab, "birch") };
        act.target.id = named(&lab, "slot")->r.id;
        CHECK("foreign is absent", lab_do(&lab, &act) == ERR_NOT_FOUND);
        struct error foreign = lab.e;
        act.target.id = lab_id(&lab);
        CHECK("absent", lab_do(&lab, &act) == ERR_NOT_FOUND);
        CHECK("in the same words", strncmp(foreign.text, lab.e.text, 20) == 0);
    }
    struct lab_job job = { "birch", .gpu_milli = 1000, .reservation = "slot",
                           .actor = member_of(&lab, "birch") };
    CHECK("nor to run in", id_is_none(lab_submit(&lab, job)));
    CHECK("which is said of the field", strcmp(lab.e.field, "reservation") == 0);
}

static void asked_for_and_confirmed(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command ask = create("ask", 16, "2026-06-01T01:00:00", "2026-06-01T02:00:00");
    struct command other = create("other", 16, "2026-06-01T01:00:00", "2026-06-01T02:00:00");
    ask.reservation.is_request = true;
    CHECK("asked for", reserve(&lab, &ask) == ERR_OK);
    CHECK("no more than that", named(&lab, "ask")->r.state == RSV_REQUESTED);
    CHECK("it keeps nothing", reserve(&lab, &other) == ERR_OK);
    struct command confirm = { .type = CMD_RESERVATION_CONFIRM };
    confirm.target.id = ask.new_id;
    CHECK("it does not fit any more", lab_do(&lab, &confirm) == ERR_CONFLICT);
    struct command cancel = { .type = CMD_RESERVATION_CANCEL };
    cancel.target.id = other.new_id;
    lab_must(&lab, &cancel);
    CHECK("now it does", lab_do(&lab, &confirm) == ERR_OK);
    CHECK("confirmed", named(&lab, "ask")->r.state == RSV_CONFIRMED);
    uint64_t before = lab.state->sequence;
    CHECK("twice is once", lab_do(&lab, &confirm) == ERR_OK && lab.state->sequence == before);
    cancel.target.id = ask.new_id;
    cancel.if_match = 1;
    CHECK("another version", lab_do(&lab, &cancel) == ERR_CONFLICT);
    struct command release = { .type = CMD_RESERVATION_RELEASE };
    release.target.id = ask.new_id;
    lab_must(&lab, &release);
    CHECK("released", named(&lab, "ask")->r.state == RSV_RELEASED);
    CHECK("what has ended does not end otherwise", lab_do(&lab, &confirm) == ERR_CONFLICT);
    CHECK("its name is free", reserve(&lab, &other) == ERR_OK);
}

static void laws_of_zones_change(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = create("slot", 8, "2026-06-02T12:00:00", "2026-06-02T14:00:00");
    command.reservation.zone = STR("Etc/East");
    command.reservation.zone_rule = STR("<+01>-1");
    CHECK("an hour east", reserve(&lab, &command) == ERR_OK);
    int64_t noon_ns = (START_S + 36 * 3600) * NS_PER_S;
    CHECK("at eleven", named(&lab, "slot")->r.window_start.ns == noon_ns - 3600 * NS_PER_S);
    struct command rezone = { .type = CMD_RESERVATION_REZONE,
                              .actor = { .role = ROLE_SYSTEM, .name = STR("system") } };
    rezone.reservation.zone = STR("Etc/East");
    rezone.reservation.zone_rule = STR("<+02>-2");
    lab_must(&lab, &rezone);
    CHECK("then two", named(&lab, "slot")->r.window_start.ns == noon_ns - 7200 * NS_PER_S);
    uint64_t before = lab.state->sequence;
    lab_must(&lab, &rezone);
    CHECK("once", lab.state->sequence == before);
    rezone.actor = (struct actor){ .role = ROLE_ADMIN, .name = STR("root") };
    CHECK("nobody else says so", lab_do(&lab, &rezone) == ERR_DENIED);
}

static void the_earliest_slots(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command first = create("first", 10, "2026-06-01T01:00:00", "2026-06-01T03:00:00");
    struct command second = create("second", 16, "2026-06-01T04:00:00", "2026-06-01T05:00:00");
    CHECK("one", reserve(&lab, &first) == ERR_OK && reserve(&lab, &second) == ERR_OK);
    struct slot slots[SLOTS_MAX];
    struct slot_query query = { .class_number = named(&lab, "first")->r.class_number,
                                .gpu_milli = 8000,
                                .duration_s = 3600,
                                .from = { (START_S + 1800) * NS_PER_S } };
    int64_t most = 0;
    size_t count = core_slots(lab.state, lab.sched, &query, slots, 3, &most);
    CHECK("three of them, of all there is", count == 3 && most == 16000);
    CHECK("between the two", slots[0].window.start.ns == (START_S + 3 * 3600) * NS_PER_S);
    CHECK("with all of it", slots[0].free_milli == 16000);
    CHECK("after the second", slots[1].window.start.ns == (START_S + 5 * 3600) * NS_PER_S);
    CHECK("and then", slots[2].window.start.ns == slots[1].window.end.ns);
    query.gpu_milli = 6000;
    CHECK("less at once", core_slots(lab.state, lab.sched, &query, slots, 1, &most) == 1 &&
                              slots[0].window.start.ns == query.from.ns &&
                              slots[0].free_milli == 6000);
    query.gpu_milli = 17000;
    CHECK("never", core_slots(lab.state, lab.sched, &query, slots, 1, &most) == 0);
}

/* ---- nothing is promised twice ------------------------------------------------------------- */

enum { HOURS = 24 * 21, DEVICES = 16, TRIES = 60 };

/* The second opinion: hours, one by one. */
struct oracle {
    int64_t reserved[HOURS];
};

struct wish {
    int64_t start_h, hours, gpus, step_h, count;
};

static bool oracle_fits(const struct oracle *oracle, const struct wish *w, int64_t move_h)
{
    for (int64_t i = 0; i < w->count; i++) {
        for (int64_t h = 0; h < w->hours; h++) {
            int64_t at = w->start_h + move_h + i * w->step_h + h;
            if (at >= 0 && at < HOURS && oracle->reserved[at] + w->gpus > DEVICES)
                return false;
        }
    }
    return w->gpus <= DEVICES;
}

static void oracle_take(struct oracle *oracle, const struct wish *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        for (int64_t h = 0; h < w->hours; h++)
            oracle->reserved[w->start_h + i * w->step_h + h] += w->gpus;
    }
}

static const char *hour_text(struct arena *arena, int64_t h)
{
    return local_text((struct local){ START_S + h * 3600 }, arena_new(arena, LOCAL_TEXT_MAX, 1));
}

static struct wish random_wish(uint64_t *seed)
{
    struct wish w = { .gpus = 1 + (int64_t)test_below(seed, DEVICES + 1), .count = 1 };
    size_t kind = test_below(seed, 3);
    w.step_h = kind == 1 ? 24 * (1 + (int64_t)test_below(seed, 3)) : 7 * 24;
    w.hours = 1 + (int64_t)test_below(seed, kind == 0 ? 40 : 20);
    w.start_h = 1 + (int64_t)test_below(seed, 100);
    if (kind > 0)
        w.count = 1 + (HOURS - w.hours - w.start_h - 1) / w.step_h;
    return w;
}

static struct command command_of(struct arena *arena, const struct wish *w, const char *name)
{
    struct command command = create(name, w->gpus, hour_text(arena, w->start_h),
                                    hour_text(arena, w->start_h + w->hours));
    bool is_weekly = w->step_h == 7 * 24;
    if (w->count == 1)
        return command;
    command.reservation.every = is_weekly ? REPEAT_WEEK : REPEAT_DAY;
    command.reservation.interval = is_weekly ? 1 : w->step_h / 24;
    command.reservation.until =
        str_of(hour_text(arena, w->start_h + (w->count - 1) * w->step_h + 1));
    return command;
}

/* Of every start that is offered instead the oracle says that it fits. */
static void check_offers(const struct lab *lab, const struct oracle *oracle, const struct wish *w)
{
    const char *at = strstr(lab->e.text, "nearest starts: ");
    if (at == NULL)
        return;
    struct str rest = str_of(at + strlen("nearest starts: "));
    while (rest.size > 0) {
        struct local local = { 0 };
        struct str text = str_cut(&rest, ',');
        if (rest.size > 0 && rest.data[0] == ' ')
            rest = (struct str){ rest.data + 1, rest.size - 1 };
        CHECK("a time", local_parse(text, &local));
        int64_t move_s = local.s - (START_S + w->start_h * 3600);
        CHECK("a whole hour, or at once", move_s % 60 == 0);
        if (move_s % 3600 == 0)
            CHECK("it fits there", oracle_fits(oracle, w, move_s / 3600));
    }
}

static void nothing_is_promised_twice(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (int round = 0; round < 40; round++) {
        AUTO(lab) struct lab lab;
        struct oracle oracle = { 0 };
        size_t taken = 0;
        world(&lab);
        lab.is_paused = true;
        for (int i = 0; i < TRIES; i++) {
            struct wish w = random_wish(&seed);
            const char *name = arena_format(&lab.arena, "r%d", i);
            struct command command = command_of(&lab.arena, &w, name);
            bool fits = oracle_fits(&oracle, &w, 0);
            enum err rc = reserve(&lab, &command);
            if ((rc == ERR_OK) != fits)
                fail_msg("round %d, %d: %lld gpus from %lld for %lld h, %lld times: %s", round, i,
                         (long long)w.gpus, (long long)w.start_h, (long long)w.hours,
                         (long long)w.count, rc == ERR_OK ? "taken" : lab.e.text);
            if (rc == ERR_OK)
                oracle_take(&oracle, &w);
            else
                check_offers(&lab, &oracle, &w);
            taken += rc == ERR_OK;
        }
        CHECK("some are taken, and some are not", taken > 0 && taken < TRIES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_with_the_field),
        cmocka_unit_test(offers_the_nearest),
        cmocka_unit_test(forced_is_flagged),
        cmocka_unit_test(never_lent_is_not_there),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(own_tenant_only),
        cmocka_unit_test(asked_for_and_confirmed),
        cmocka_unit_test(laws_of_zones_change),
        cmocka_unit_test(the_earliest_slots),
        cmocka_unit_test(nothing_is_promised_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
