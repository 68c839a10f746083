/* agents.h - simulated nodes: what a real one's agent does, without processes. */
#ifndef SIM_AGENTS_H
#define SIM_AGENTS_H

#include "sim/world.h"

/* Devices, cores and memory as they are now; the first one makes the node known. */
enum err agent_inventory(struct world *world, struct agent *agent, struct error *e) MUST_CHECK;
/* Contact, where there is any. Now, or only when the last one is long ago. */
void agents_heartbeat(struct world *world);
void agents_keep_contact(struct world *world);
/* It has something to carry out or to tell; without that nobody looks at it. */
void agent_stir(struct world *world, struct agent *agent);
void agent_report_later(struct world *world, struct agent *agent);
/* What has ended by itself by now is reported. */
void agents_end_work(struct world *world);
/* Carries out what the state wants of the nodes that were stirred. */
void agents_act(struct world *world);
/* All that ran there is gone. */
void agent_power_off(struct world *world, struct agent *agent);
/* The next instant at which one of them has something to do; INT64_MAX: never. */
struct mono agents_next(const struct world *world);

#endif
