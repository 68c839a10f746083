/*
 * feed.h - the public form of an event: what subscribers of the change feed see. No secrets, names
 * instead of class numbers, and nothing of the operator's in a tenant's feed.
 */
#ifndef WIRE_FEED_H
#define WIRE_FEED_H

#include "model/event.h"
#include "wire/schema.h"

/* Who reads: operators see who acted and every event; tenants only events of their own. */
enum feed_view { FEED_TENANT, FEED_OPERATOR };

/* False when an event is of no interest to that view; it still counts in the sequence. */
bool feed_shows(const struct event *event, enum feed_view view);

/* Its number in such a feed: tenants have their own, so that nobody counts what others do. */
uint64_t feed_sequence(const struct event *event, enum feed_view view);

/* Appends one line: {"sequence":..,"type":..,"at":..,"object":..,"actor":..,"data":{..}}. */
void feed_encode(const struct event *event, enum feed_view view, const struct wire_names *names,
                 struct buf *out);

#endif
