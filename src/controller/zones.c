#include "controller/zones.h"

#include "os/log.h"
#include "os/zone_file.h"

/* The first reservation whose zone, by name, none before it had. */
static bool is_first_of_zone(const struct state *state, const struct reservation *reservation)
{
    const struct reservation *r = state->first_reservation;
    while (r != reservation &&
           (reservation_state_is_final(r->r.state) || !str_eq(r->r.zone, reservation->r.zone)))
        r = r->next;
    return r == reservation;
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
    const char **zones = arena_new(&arena, RESERVATIONS_MAX, sizeof(*zones));
    size_t count = 0;
    for (const struct reservation *r = state->first_reservation; r != NULL; r = r->next) {
        if (!reservation_state_is_final(r->r.state) && is_first_of_zone(state, r))
            zones[count++] = str_c(&arena, r->r.zone);
    }
    for (size_t i = 0; i < count; i++)
        zone_refresh(engine, zones[i], now);
}
