#include "controller/zones.h"

#include "os/log.h"
#include "os/zone_file.h"

/* Names of zones, each once. */
struct zone_names {
    struct arena *arena; /* borrowed */
    VEC(const char *) names;
};

static void add_zone(struct zone_names *zones, struct str name)
{
    for (size_t i = 0; i < zones->names.count; i++) {
        if (str_is(name, zones->names.items[i]))
            return;
    }
    vec_push(&zones->names, str_c(zones->arena, name));
}

static void zone_refresh(struct engine *engine, const char *zone, struct wall now)
{
    AUTO(buf) struct buf rule = { 0 };
    struct error e = { 0 };
    struct command command = { .type = CMD_RESERVATION_REZONE,
                               .actor = { .role = ROLE_SYSTEM, .name = STR("system") } };
    enum err rc = zone_file_rule(str_of(zone), now, &rule, &e);
    command.reservation.zone = str_of(zone);
    command.reservation.zone_rule = buf_str(&rule);
    if (rc == ERR_OK)
        rc = engine_command(engine, &command, &e);
    if (rc != ERR_OK)
        log_warning("a time zone keeps the rule it had", LOG_STR("zone", zone), LOG_ERR(&e));
}

void zones_refresh(struct engine *engine, struct wall now)
{
    AUTO(arena) struct arena arena = { 0 };
    const struct state *state = engine_state(engine);
    struct zone_names zones = { .arena = &arena };
    for (const struct reservation *r = state->first_reservation; r != NULL; r = r->next) {
        if (!reservation_state_is_final(r->r.state))
            add_zone(&zones, r->r.zone);
    }
    for (const struct change *c = state->first_change; c != NULL; c = c->next) {
        if (!change_state_is_final(c->r.state))
            add_zone(&zones, c->r.zone);
    }
    for (size_t i = 0; i < zones.names.count; i++)
        zone_refresh(engine, zones.names.items[i], now);
    vec_done(&zones.names);
}
