/*
 * charge.h - what a request costs of a class, before it is known where it will run: the
 * amounts that quotas, limits and bills count. Exact integers; a part of a device's
 * memory is charged rounded up.
 */
#ifndef SCHED_CHARGE_H
#define SCHED_CHARGE_H

#include "model/mig.h"
#include "model/state.h"

enum request_kind {
    REQUEST_CORES,  /* no device: charged in milli-cores of a CPU class */
    REQUEST_WHOLE,  /* whole devices */
    REQUEST_SHARE,  /* a share in thousandths of each of one or more devices */
    REQUEST_MEMORY, /* a share of one device by its memory */
};

enum request_kind request_kind(const struct request *request);
int64_t request_devices(const struct request *request); /* distinct devices of one member */

/* Which partition each of its devices is to have in that class. */
struct slicing_need {
    const struct mig_table *table;     /* NULL: the class has no table, or it asks for no part */
    const struct mig_profile *profile; /* with a table, NULL: none of it covers the part */
};
struct slicing_need request_slice(const struct state *state, const struct request *request,
                                  int64_t class_number);

/* What one member is charged in that class; the class is of the right kind. */
int64_t request_charge(const struct state *state, const struct request *request,
                       int64_t class_number);

/* The classes a request may use, in order of preference: those it names, else all of its kind. */
size_t request_class_count(const struct state *state, const struct request *request);
/* The i-th of them; -1 for one that does not exist, is removed, is of the wrong kind, or has no
 * partition that covers what is asked for. */
int64_t request_class(const struct state *state, const struct request *request, size_t i);

/* Memory of a device, or of the class's devices, that work may use. */
int64_t usable_mib(const struct state *state, int64_t memory_mib);

#endif
