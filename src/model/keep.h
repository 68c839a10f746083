/*
 * keep.h - deep copies of records into the pool of a state, and their release.
 *
 * foo_keep() turns every string and list that `*r` borrows into a copy owned by the pool;
 * foo_drop() gives exactly those copies back. Keep the new record before dropping the old one: an
 * after-image often borrows from the record it replaces. Only src/model includes this.
 */
#ifndef MODEL_KEEP_H
#define MODEL_KEEP_H

#include "base/mem.h"
#include "model/event.h"

/* Plain text; an empty one takes no memory. */
void str_keep(struct pool *pool, struct str *s);
void str_drop(struct pool *pool, struct str *s);

/* What operators configure. */
void class_keep(struct pool *pool, struct class_record *r);
void class_drop(struct pool *pool, struct class_record *r);
void profile_keep(struct pool *pool, struct profile_record *r);
void profile_drop(struct pool *pool, struct profile_record *r);

/* Lists of projects. */
void quotas_keep(struct pool *pool, struct quota_list *list);
void quotas_drop(struct pool *pool, struct quota_list *list);
void usage_keep(struct pool *pool, struct usage_list *list);
void usage_drop(struct pool *pool, struct usage_list *list);
void past_keep(struct pool *pool, struct past_list *list);
void past_drop(struct pool *pool, struct past_list *list);
void users_keep(struct pool *pool, struct user_past_list *list);
void users_drop(struct pool *pool, struct user_past_list *list);

/* What tenants own beside their work. */
void token_keep(struct pool *pool, struct token_record *r);
void token_drop(struct pool *pool, struct token_record *r);
void image_keep(struct pool *pool, struct image_record *r);
void image_drop(struct pool *pool, struct image_record *r);
void hook_keep(struct pool *pool, struct hook_record *r);
void hook_drop(struct pool *pool, struct hook_record *r);
void credential_keep(struct pool *pool, struct credential_record *r);
void credential_drop(struct pool *pool, struct credential_record *r);

void reservation_keep(struct pool *pool, struct reservation_record *r);
void reservation_drop(struct pool *pool, struct reservation_record *r);

void change_keep(struct pool *pool, struct change_record *r);
void change_drop(struct pool *pool, struct change_record *r);

/* Lists of nodes. */
void devices_keep(struct pool *pool, struct device_list *list);
void devices_drop(struct pool *pool, struct device_list *list);
void holds_keep(struct pool *pool, struct hold_list *list);
void holds_drop(struct pool *pool, struct hold_list *list);

/* `before` is the workload submitted just before, or NULL: an equal spec is kept only once. */
void workload_keep(struct pool *pool, struct workload_record *r,
                   const struct workload_record *before);
/* Its own parts; a spec that others share goes with the last of them. */
void workload_drop(struct pool *pool, struct workload_record *r);
/* The nodes of a workload's gang alone, which a new attempt replaces. */
void nodes_drop(struct pool *pool, struct id_list *nodes);
/* Of gangs that are not whole. */
void gaps_keep(struct pool *pool, struct gap_list *list);
void gaps_drop(struct pool *pool, struct gap_list *list);
/* Allocations, with the devices they hold. */
void allocation_keep(struct pool *pool, struct allocation_record *r);
void allocation_drop(struct pool *pool, struct allocation_record *r);

#endif
