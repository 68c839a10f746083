/* server_metrics.h - what the engine counted, in the text format of Prometheus. */
#ifndef CONTROLLER_SERVER_METRICS_H
#define CONTROLLER_SERVER_METRICS_H

#include "engine/engine.h"

void server_metrics_of_engine(const struct engine *engine, struct buf *out);

#endif
