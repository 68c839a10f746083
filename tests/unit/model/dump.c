#include "unit/model/dump.h"

#include "model/policy.h"
#include "unit/test.h"

static void add_id(struct buf *out, struct id id)
{
    buf_format(out, " %llx:%llx", (unsigned long long)id.hi, (unsigned long long)id.lo);
}

static void add_str(struct buf *out, struct str s)
{
    buf_format(out, " %zu\"", s.size);
    buf_add_str(out, s);
    buf_add_char(out, '"');
}

static void add_number(struct buf *out, int64_t value)
{
    buf_format(out, " %lld", (long long)value);
}

static void add_unsigned(struct buf *out, uint64_t value)
{
    buf_format(out, " %llu", (unsigned long long)value);
}

static void add_digest(struct buf *out, const struct digest *digest)
{
    char text[2 * DIGEST_BYTES + 1];
    hex_encode(digest->bytes, sizeof(digest->bytes), text);
    buf_format(out, " %s", text);
}

static void add_request(struct buf *out, const struct request *r)
{
    int64_t numbers[] = { r->gpu_milli,   r->gpu_memory_mib, r->devices,
                          r->share_milli, r->cpu_milli,      r->memory_mib };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        add_number(out, numbers[i]);
    for (size_t i = 0; i < r->class_count; i++)
        add_number(out, r->class_numbers[i]);
    buf_format(out, " %d %d .", (int)r->required, (int)r->preferred);
}

static void add_exit(struct buf *out, const struct exit_status *exit)
{
    buf_format(out, " exit %d %d %lld %lld", exit->is_known, exit->is_oom, (long long)exit->code,
               (long long)exit->signal);
}

static void add_decay(struct buf *out, const struct decay *decay)
{
    buf_format(out, " decay %lld %lld %lld", (long long)decay->average, (long long)decay->as_of.ns,
               (long long)decay->level);
}

static void dump_settings(struct buf *out, const struct settings_record *r)
{
    int64_t numbers[] = { r->grace_s,          r->kill_confirm_s,       r->min_runtime_s,
                          r->start_timeout_s,  r->lost_after_s,         r->unknown_after_s,
                          r->gang_repair_s,    r->device_reserve_mib,   r->backoff_base_s,
                          r->backoff_max_s,    r->ended_keep_s,         r->min_runtime_in_quota_s,
                          r->ended_keep_count, r->reclaim_to,           r->placement,
                          r->lead_s,           r->default_time_limit_s, r->starvation_after_s,
                          r->history_k_milli,  r->history_half_life_s,  r->consolidate_max_moves,
                          r->consolidate,      r->user_fairness };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        add_number(out, numbers[i]);
    add_unsigned(out, r->version);
}

static void dump_class(struct buf *out, const struct class_record *r)
{
    add_id(out, r->id);
    add_str(out, r->name);
    add_str(out, r->vendor);
    buf_format(out, " %lld %d %lld %d %lld", (long long)r->number, (int)r->kind,
               (long long)r->memory_mib, (int)r->slicing, (long long)r->price_micros_per_hour);
    add_decay(out, &r->capacity);
    add_unsigned(out, r->version);
}

static void dump_pool(struct buf *out, const struct pool_record *r)
{
    add_id(out, r->id);
    add_str(out, r->name);
    buf_format(out, " %lld %d", (long long)r->class_number, (int)r->site);
    add_unsigned(out, r->version);
}

static void dump_profile(struct buf *out, const struct profile_record *r)
{
    add_id(out, r->id);
    add_str(out, r->name);
    add_str(out, r->description);
    add_request(out, &r->request);
    for (size_t i = 0; i < r->pools.count; i++)
        add_str(out, r->pools.items[i]);
    for (size_t i = 0; i < r->projects.count; i++)
        add_str(out, r->projects.items[i]);
    add_unsigned(out, r->version);
}

static void dump_project(struct buf *out, const struct project_record *r)
{
    add_id(out, r->id);
    add_id(out, r->parent);
    add_str(out, r->name);
    add_str(out, r->path);
    buf_format(out, " %lld %lld %lld %lld %d %llu %lld", (long long)r->number,
               (long long)r->priority, (long long)r->log_quota_mib, (long long)r->log_days,
               r->is_overcommitted, (unsigned long long)r->created_sequence,
               (long long)r->created.ns);
    for (size_t i = 0; i < r->quotas.count; i++) {
        const struct quota *q = &r->quotas.items[i];
        buf_format(out, " quota %lld %lld %lld %lld %lld", (long long)q->class_number,
                   (long long)q->quota_milli, (long long)q->lend_limit_milli,
                   (long long)q->limit_milli, (long long)q->over_quota_weight);
    }
    for (size_t i = 0; i < r->usage.count; i++) {
        const struct usage_total *u = &r->usage.items[i];
        buf_format(out, " usage %lld %lld %lld %lld", (long long)u->class_number,
                   (long long)u->milli_ms, (long long)u->amount_micros, (long long)u->segments);
    }
    for (size_t i = 0; i < r->past.count; i++) {
        add_number(out, r->past.items[i].class_number);
        add_decay(out, &r->past.items[i].decay);
    }
    for (size_t i = 0; i < r->users.count; i++) {
        add_str(out, r->users.items[i].user);
        add_decay(out, &r->users.items[i].devices);
        add_decay(out, &r->users.items[i].cores);
    }
    add_unsigned(out, r->version);
    add_unsigned(out, r->feed_sequence);
}

static void dump_token(struct buf *out, const struct token_record *r)
{
    add_id(out, r->id);
    add_digest(out, &r->secret);
    add_str(out, r->name);
    add_id(out, r->tenant);
    add_str(out, r->user);
    add_str(out, r->pool);
    buf_format(out, " %d %lld %lld %d", (int)r->role, (long long)r->created.ns,
               (long long)r->expires.ns, r->is_revoked);
    add_unsigned(out, r->version);
}

static void dump_volume(struct buf *out, const struct volume_record *r)
{
    add_id(out, r->id);
    add_id(out, r->tenant);
    add_str(out, r->name);
    add_id(out, r->node);
    buf_format(out, " %lld %lld", (long long)r->quota_mib, (long long)r->created.ns);
    add_unsigned(out, r->version);
}

static void dump_reservation(struct buf *out, const struct reservation_record *r)
{
    int64_t numbers[] = { r->class_number, r->gpu_milli,  r->start_s,         r->end_s,
                          r->repeat,       r->interval,   r->until_s,         r->end_policy,
                          r->is_lent,      r->state,      r->window_start.ns, r->window_end.ns,
                          r->ended_at.ns,  r->created.ns, r->windows_passed,  r->is_overcommitted };
    struct str texts[] = { r->name, r->user, r->zone, r->zone_rule, r->detail };
    add_id(out, r->id);
    add_id(out, r->project);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        add_str(out, texts[i]);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        add_number(out, numbers[i]);
    add_unsigned(out, r->created_sequence);
    add_unsigned(out, r->version);
}

static void dump_gang(struct buf *out, const struct gang_record *r)
{
    add_id(out, r->workload);
    for (size_t i = 0; i < r->missing.count; i++)
        add_number(out, r->missing.items[i].rank);
    buf_format(out, " since %lld %lld", (long long)r->short_since.ns, (long long)r->grow_after.ns);
}

static void dump_patch(struct buf *out, const struct policy_patch *patch)
{
    struct policy_patch copy = *patch;
    struct policy_cell cell;
    for (size_t at = 0; policy_next(&copy, &at, &cell);)
        buf_format(out, " %s %lld %lld", cell.field->name, (long long)cell.class_number,
                   (long long)*cell.value);
}

static void dump_change(struct buf *out, const struct change_record *r)
{
    int64_t numbers[] = { r->is_forced,     r->start_s,        r->end_s,       r->repeat,
                          r->interval,      r->until_s,        r->state,       r->window_start.ns,
                          r->window_end.ns, r->windows_passed, r->ended_at.ns, r->created.ns };
    struct str texts[] = { r->name, r->user, r->reason, r->zone, r->zone_rule, r->detail };
    add_id(out, r->id);
    add_id(out, r->project);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        add_str(out, texts[i]);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        add_number(out, numbers[i]);
    dump_patch(out, &r->to);
    dump_patch(out, &r->former);
    add_unsigned(out, r->active_sequence);
    add_unsigned(out, r->created_sequence);
    add_unsigned(out, r->version);
}

static void dump_image(struct buf *out, const struct image_record *r)
{
    add_id(out, r->id);
    add_id(out, r->tenant);
    add_str(out, r->name);
    add_digest(out, &r->manifest);
    add_str(out, r->source);
    buf_format(out, " %lld %lld", (long long)r->size_bytes, (long long)r->created.ns);
    add_unsigned(out, r->version);
}

static void dump_hook(struct buf *out, const struct hook_record *r)
{
    add_id(out, r->id);
    add_id(out, r->tenant);
    add_id(out, r->project);
    add_str(out, r->name);
    add_str(out, r->url);
    add_str(out, r->sealed);
    add_str(out, r->fault);
    add_unsigned(out, r->created_sequence);
    add_number(out, r->created.ns);
    add_unsigned(out, r->version);
}

static void dump_credential(struct buf *out, const struct credential_record *r)
{
    add_id(out, r->id);
    add_id(out, r->tenant);
    add_str(out, r->registry);
    add_str(out, r->username);
    add_str(out, r->sealed);
    add_unsigned(out, r->version);
}

static void dump_upload(struct buf *out, const struct upload_stored *r)
{
    add_id(out, r->tenant);
    add_digest(out, &r->digest);
    add_number(out, r->size_bytes);
    add_str(out, r->name);
}

static void dump_node(struct buf *out, const struct node_record *r)
{
    add_id(out, r->id);
    add_str(out, r->name);
    add_id(out, r->pool);
    add_digest(out, &r->fingerprint);
    add_digest(out, &r->next_fingerprint);
    buf_format(out, " %lld %lld", (long long)r->certified.ns, (long long)r->next_certified.ns);
    add_str(out, r->boot_id);
    add_str(out, r->agent_version);
    add_str(out, r->kernel);
    add_str(out, r->driver);
    add_str(out, r->runtime);
    add_str(out, r->problems);
    add_str(out, r->rack);
    add_str(out, r->block);
    buf_format(out, " %d %lld %lld %lld %lld", (int)r->contact, (long long)r->contact_since.ns,
               (long long)r->cpu_milli, (long long)r->memory_mib, (long long)r->drain_deadline.ns);
    for (size_t i = 0; i < r->devices.count; i++) {
        const struct device_record *d = &r->devices.items[i];
        buf_format(out, " device %lld %lld %lld %lld %d %d %d", (long long)d->index,
                   (long long)d->class_number, (long long)d->memory_mib, (long long)d->numa_node,
                   (int)d->health, d->is_simulated, d->is_held);
        add_str(out, d->uuid);
        add_str(out, d->model);
        add_str(out, d->hold_reason);
        add_str(out, d->health_reason);
    }
    for (size_t i = 0; i < r->holds.count; i++) {
        const struct hold *hold = &r->holds.items[i];
        buf_format(out, " hold %d %lld", (int)hold->kind, (long long)hold->since.ns);
        add_str(out, hold->by);
        add_str(out, hold->reason);
    }
    add_number(out, r->cpu_class_number);
    add_unsigned(out, r->generation);
    add_unsigned(out, r->created_sequence);
    add_unsigned(out, r->version);
}

static void dump_workload(struct buf *out, const struct workload_record *r)
{
    int64_t numbers[] = { r->array_index,    r->kind,        r->members,       r->members_min,
                          r->priority,       r->preemptible, r->time_limit_s,  r->grace_s,
                          r->retries,        r->restart,     r->fence_after_s, r->state,
                          r->cause,          r->after_stop,  r->attempt,       r->failures,
                          r->evictions,      r->node_losses, r->submitted.ns,  r->not_before.ns,
                          r->state_since.ns, r->started.ns,  r->ended.ns,      r->on_contact_loss };
    struct id ids[] = { r->id, r->array, r->project };
    struct str texts[] = { r->name, r->user, r->spec_json, r->detail };
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        add_id(out, ids[i]);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        add_str(out, texts[i]);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        add_number(out, numbers[i]);
    add_digest(out, &r->image);
    add_digest(out, &r->upload);
    add_request(out, &r->request);
    for (size_t i = 0; i < r->depends_on.count; i++) {
        add_id(out, r->depends_on.items[i].workload);
        add_number(out, r->depends_on.items[i].when);
    }
    for (size_t i = 0; i < r->volumes.count; i++)
        add_id(out, r->volumes.items[i]);
    for (size_t i = 0; i < r->nodes.count; i++)
        add_id(out, r->nodes.items[i]);
    add_id(out, r->reservation);
    add_number(out, r->is_on_demand);
    add_exit(out, &r->exit);
    add_unsigned(out, r->submitted_sequence);
    add_unsigned(out, r->version);
}

static void dump_allocation(struct buf *out, const struct allocation_record *r)
{
    int64_t numbers[] = {
        r->attempt,         r->rank,        r->class_number, r->charge_milli,    r->cpu_milli,
        r->memory_mib,      r->state,       r->stop_cause,   r->grace_s,         r->granted.ns,
        r->started.ns,      r->stopping.ns, r->gone.ns,      r->started_wall.ns, r->is_borrowed,
        r->checkpointed.ns, r->checkpoints, r->extended_s
    };
    struct id ids[] = { r->id, r->workload, r->project, r->node, r->evictor };
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        add_id(out, ids[i]);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        add_number(out, numbers[i]);
    for (size_t i = 0; i < r->shares.count; i++)
        buf_format(out, " share %lld %lld %lld", (long long)r->shares.items[i].device,
                   (long long)r->shares.items[i].milli, (long long)r->shares.items[i].memory_mib);
    add_exit(out, &r->exit);
    add_unsigned(out, r->created_sequence);
}

static void dump_catalog(struct buf *out, const struct state *state)
{
    buf_add_text(out, "settings");
    dump_settings(out, &state->settings);
    for (size_t i = 0; i < state->classes.count; i++) {
        buf_format(out, "\nclass %d", state->classes.items[i]->is_removed);
        dump_class(out, &state->classes.items[i]->r);
    }
    for (size_t i = 0; i < state->pools.count; i++) {
        buf_format(out, "\npool %zu", state->pools.items[i]->node_count);
        dump_pool(out, &state->pools.items[i]->r);
    }
    for (size_t i = 0; i < state->profiles.count; i++) {
        buf_add_text(out, "\nprofile");
        dump_profile(out, &state->profiles.items[i]->r);
    }
    buf_add_char(out, '\n');
}

static void dump_projects(struct buf *out, const struct state *state)
{
    for (const struct project *p = state->first_tenant; p != NULL; p = project_next(p)) {
        buf_format(out, "project %zu %zu %zu %zu %llu", p->live_workloads, p->volume_count,
                   p->image_count, p->token_count, (unsigned long long)p->last_sequence);
        dump_project(out, &p->r);
        buf_add_char(out, '\n');
    }
}

#define DUMP_LIST(out, state, kind)                                                                \
    for (const struct kind *at = (state)->first_##kind; at != NULL; at = at->next) {               \
        buf_add_text(out, #kind);                                                                  \
        dump_##kind(out, &at->r);                                                                  \
        buf_add_char(out, '\n');                                                                   \
    }

static void dump_belongings(struct buf *out, const struct state *state)
{
    DUMP_LIST(out, state, token)
    DUMP_LIST(out, state, volume)
    DUMP_LIST(out, state, reservation)
    DUMP_LIST(out, state, gang)
    DUMP_LIST(out, state, change)
    DUMP_LIST(out, state, image)
    DUMP_LIST(out, state, credential)
    DUMP_LIST(out, state, hook)
    DUMP_LIST(out, state, upload)
}

static void dump_work(struct buf *out, const struct state *state)
{
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        buf_add_text(out, "node");
        dump_node(out, &node->r);
        for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
            add_id(out, a->r.id);
        buf_add_char(out, '\n');
    }
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        buf_format(out, "workload %lld", (long long)w->ended_at.ns);
        add_id(out, w->array_next != NULL ? w->array_next->r.id : (struct id){ 0 });
        dump_workload(out, &w->r);
        for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload) {
            buf_add_text(out, "\n  allocation");
            dump_allocation(out, &a->r);
        }
        buf_add_char(out, '\n');
    }
}

/* Bytes that the pool has for specs. Which of them are shared is chance: neighbours at
 * submission. */
static size_t spec_bytes(const struct state *state)
{
    size_t bytes = 0;
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        struct str spec = w->r.spec_json;
        if (spec.size > 0 && (w->prev == NULL || w->prev->r.spec_json.data != spec.data))
            bytes += (sizeof(uint32_t) + spec.size + 15) / 16 * 16;
    }
    return bytes;
}

static void dump_mix(struct buf *out, const struct request_mix *mix)
{
    buf_format(out, "mix %llu %llu", (unsigned long long)mix->arrivals,
               (unsigned long long)mix->dealt_at);
    for (size_t i = 0; i < mix->seen.count; i++) {
        add_request(out, &mix->seen.items[i].request);
        add_unsigned(out, mix->seen.items[i].times);
    }
    buf_add_text(out, " dealt");
    for (size_t i = 0; i < mix->dealt.count; i++) {
        add_request(out, &mix->dealt.items[i].request);
        add_unsigned(out, mix->dealt.items[i].times);
    }
    buf_add_char(out, '\n');
}

void dump_state(struct buf *out, const struct state *state)
{
    buf_format(out, "header %llu %lld %lld %llu %lld %02x..%02x\n",
               (unsigned long long)state->sequence, (long long)state->now.ns,
               (long long)state->wall.ns, (unsigned long long)state->epoch,
               (long long)state->next_tenant_number, state->id_key[0], state->id_key[2]);
    dump_mix(out, &state->mix);
    dump_catalog(out, state);
    dump_projects(out, state);
    dump_belongings(out, state);
    dump_work(out, state);
    buf_format(out, "counts %zu %zu %zu %zu %zu, %zu other bytes\n", state->project_count,
               state->node_count, state->workload_count, state->ended_count,
               state->allocation_count, state->pool.used - spec_bytes(state));
}

bool dump_is_equal(const struct state *a, const struct state *b)
{
    AUTO(buf) struct buf one = { 0 };
    AUTO(buf) struct buf two = { 0 };
    dump_state(&one, a);
    dump_state(&two, b);
    struct str left = buf_str(&one);
    struct str right = buf_str(&two);
    if (str_eq(left, right))
        return true;
    while (left.size > 0 || right.size > 0) {
        struct str x = str_cut(&left, '\n');
        struct str y = str_cut(&right, '\n');
        if (!str_eq(x, y)) {
            print_error("%.*s\n%.*s\n", STR_ARG(x), STR_ARG(y));
            break;
        }
    }
    return false;
}

static void emit_to_state(void *arg, const struct event *event)
{
    evolve_restored(arg, event);
}

struct state *restore_copy(const struct state *state)
{
    struct state *copy = state_new();
    struct state_header header = state_header(state);
    state_restore_header(copy, &header);
    state_walk(state, emit_to_state, copy);
    return copy;
}
