#include "controller/herald.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "controller/delivery.h"
#include "controller/letter.h"
#include "controller/state_load.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "store/query.h"
#include "wire/event_copy.h"

enum {
    PAGE_ROWS = 500,
    QUEUE_MAX = 1000, /* notices of one hook */
    BATCH_MAX = 20,   /* notices of one delivery */
    BATCH_BYTES_MAX = 64 * 1024,
    DELIVERIES_MAX = 8, /* at once */
    BUSY_S = 1,
    AGAIN_S = 5, /* after the first fault; twice as long after each further one */
    AGAIN_MAX_S = 3600,
    AGAIN_SHIFT_MAX = 10,
    KEEP_S = 72 * 3600, /* an older notice is dropped, if it was tried */
    MAIL_PAUSE_S = 60,  /* between two messages to one address */
    SAVE_S = 10,        /* places are kept so often, besides after each delivery */
    CURSOR_BYTES_MAX = 8 * 1024 * 1024,
    PASSWORD_MAX = 4096,
};

/* A hook, and what it is still to be told. */
struct channel {
    struct herald *herald; /* borrowed */
    struct id hook;
    uint64_t told; /* everything up to it */
    VEC(struct letter) letters;
    size_t sending; /* of them, the first so many */
    uint64_t dropped;
    uint64_t dropped_told; /* of `dropped`, what the delivery under way says */
    unsigned faults;       /* in a row */
    struct delivery *delivery;
    struct loop_timer timer;
    struct channel *next;
};

struct herald {
    struct herald_options o;
    struct channel *first;
    size_t deliveries;
    uint64_t read_to;   /* of the journal */
    uint64_t published; /* the newest event there is */
    bool is_live;       /* what is published is what comes next */
    bool is_paging;
    bool is_started;
    bool is_ending;
    /* Of the page that a worker reads. */
    struct arena page;
    struct event_list found;
    uint64_t page_from, page_to, page_published;
    enum err page_rc;
    struct error page_error;
    /* Of the places that a worker keeps. */
    struct buf places;
    bool is_saving, is_dirty;
    struct loop_timer save;
};

/* ---- places -------------------------------------------------------------------------------- */

static uint64_t place_of(const struct channel *channel)
{
    const struct herald *herald = channel->herald;
    return channel->letters.count > 0 ? channel->told : MAX_OF(channel->told, herald->read_to);
}

static void write_places(const struct herald *herald, struct buf *out)
{
    char text[ID_TEXT_MAX];
    for (const struct channel *c = herald->first; c != NULL; c = c->next)
        buf_format(out, "%s %llu\n", id_text(ID_HOOK, c->hook, text),
                   (unsigned long long)place_of(c));
}

static void save_run(void *arg)
{
    struct herald *herald = arg;
    struct error e = { 0 };
    if (file_write_atomic(herald->o.cursor_path, buf_str(&herald->places), 0600, &e) != ERR_OK)
        log_warning("what hooks were told cannot be kept", LOG_ERR(&e));
}

static void save_done(void *arg)
{
    struct herald *herald = arg;
    herald->is_saving = false;
    if (herald->is_dirty)
        loop_timer_set(herald->o.loop, &herald->save, mono_add_s(loop_now(herald->o.loop), SAVE_S));
}

static void save(void *arg)
{
    struct herald *herald = arg;
    if (herald->is_saving)
        return;
    herald->is_saving = true;
    herald->is_dirty = false;
    buf_clear(&herald->places);
    write_places(herald, &herald->places);
    loop_work(herald->o.loop, save_run, save_done, herald);
}

static void save_later(struct herald *herald, int64_t seconds)
{
    herald->is_dirty = true;
    if (!herald->is_saving && (herald->save.slot == 0 || seconds == 0))
        loop_timer_set(herald->o.loop, &herald->save,
                       mono_add_s(loop_now(herald->o.loop), seconds));
}

/* What the file says of that hook; 0: nothing. */
static uint64_t place_read(struct str places, struct id hook)
{
    char text[ID_TEXT_MAX];
    struct str name = str_of(id_text(ID_HOOK, hook, text));
    while (places.size > 0) {
        struct str line = str_cut(&places, '\n');
        struct str word = str_cut(&line, ' ');
        int64_t place = 0;
        if (str_eq(word, name) && str_to_i64(line, 0, INT64_MAX, &place))
            return (uint64_t)place;
    }
    return 0;
}

/* ---- channels ------------------------------------------------------------------------------ */

static void channel_send(void *arg);

static struct channel *channel_add(struct herald *herald, struct id hook, uint64_t told)
{
    struct channel *channel = mem_new(1, sizeof(*channel));
    *channel = (struct channel){ .herald = herald, .hook = hook, .told = told };
    channel->timer = (struct loop_timer){ .fn = channel_send, .arg = channel };
    channel->next = herald->first;
    herald->first = channel;
    return channel;
}

static void letters_drop(struct channel *channel, size_t count)
{
    if (count == 0)
        return;
    channel->told = channel->letters.items[count - 1].sequence;
    for (size_t i = 0; i < count; i++)
        letter_done(&channel->letters.items[i]);
    channel->letters.count -= count;
    memmove(channel->letters.items, channel->letters.items + count,
            channel->letters.count * sizeof(channel->letters.items[0]));
}

static void channel_free(struct channel *channel)
{
    struct herald *herald = channel->herald;
    if (channel->delivery != NULL)
        herald->deliveries--;
    delivery_abort(channel->delivery);
    loop_timer_stop(herald->o.loop, &channel->timer);
    letters_drop(channel, channel->letters.count);
    vec_done(&channel->letters);
    mem_free(channel);
}

static void channel_remove(struct herald *herald, struct id hook)
{
    for (struct channel **at = &herald->first; *at != NULL; at = &(*at)->next) {
        if (id_eq((*at)->hook, hook)) {
            struct channel *gone = *at;
            *at = gone->next;
            channel_free(gone);
            return;
        }
    }
}

static struct channel *channel_of(const struct herald *herald, struct id hook)
{
    struct channel *channel = herald->first;
    while (channel != NULL && !id_eq(channel->hook, hook))
        channel = channel->next;
    return channel;
}

static void send_in(struct channel *channel, int64_t seconds)
{
    struct loop *loop = channel->herald->o.loop;
    loop_timer_set(loop, &channel->timer, mono_add_s(loop_now(loop), seconds));
}

/* ---- what is to be delivered --------------------------------------------------------------- */

/* "host:port" of "https://host:port/path". */
static struct str host_of(struct str url)
{
    struct str rest = url;
    (void)str_cut(&rest, ':');
    rest = rest.size > 2 ? (struct str){ rest.data + 2, rest.size - 2 } : rest;
    struct str host = str_cut(&rest, '/');
    struct str query = host;
    return str_cut(&query, '?');
}

static struct letters batch_of(struct channel *channel)
{
    size_t bytes = 0;
    size_t count = 0;
    while (count < channel->letters.count && count < BATCH_MAX) {
        const struct letter *letter = &channel->letters.items[count];
        bytes += MAX_OF(letter->json.size, letter->text.size);
        if (count > 0 && bytes > BATCH_BYTES_MAX)
            break;
        count++;
    }
    return (struct letters){ .items = channel->letters.items,
                             .count = count,
                             .dropped = channel->dropped,
                             .hook = channel->hook,
                             .now = clock_wall() };
}

static void add_authority(const struct config *config, struct buf *task)
{
    if (config->notice_authority.size > 0)
        buf_format(task, "authority %.*s\n", STR_ARG(config->notice_authority));
}

static void wipe(struct buf *secret)
{
    if (secret->data != NULL)
        sodium_memzero(secret->data, secret->capacity);
    buf_done(secret);
}
DEFINE_CLEANUP_AT(wipe, struct buf, wipe)

static enum err fill_post(const struct herald *herald, const struct hook *hook,
                          const struct letters *letters, struct delivery_order *order,
                          struct buf *task, struct error *e)
{
    AUTO(buf) struct buf body = { 0 };
    AUTO(wipe) struct buf secret = { 0 };
    order->host = host_of(hook->r.url);
    bool is_named = str_list_has(&herald->o.config->notice_hosts, order->host);
    order->reach = is_named ? REACH_NEAR : REACH_PUBLIC;
    if (!is_named && !str_starts(hook->r.url, STR("https://")))
        return err_set(e, ERR_DENIED,
                       "https:// is needed, but for hosts that operators name (notice_hosts)");
    enum err rc = keys_open(herald->o.keys, hook->r.sealed, &secret, e);
    if (rc != ERR_OK)
        return rc;
    letters_post(letters, &body);
    buf_format(task, "url %.*s\nheader Content-Type: application/json\nheader ",
               STR_ARG(hook->r.url));
    letters_sign(letters, buf_str(&secret), buf_str(&body), task);
    buf_add_char(task, '\n');
    add_authority(herald->o.config, task);
    buf_add_char(task, '\n');
    buf_add_str(task, buf_str(&body));
    return ERR_OK;
}

static enum err add_login(const struct config *config, struct buf *task, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(wipe) struct buf password = { 0 };
    if (config->smtp_user.size == 0)
        return ERR_OK;
    enum err rc = file_read(str_c(&arena, config->smtp_password_file), PASSWORD_MAX, &password, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "smtp_password_file");
    struct str rest = buf_str(&password);
    struct str line = str_cut(&rest, '\n');
    buf_format(task, "user %.*s\npassword %.*s\n", STR_ARG(config->smtp_user), STR_ARG(line));
    return ERR_OK;
}

static enum err fill_mail(const struct herald *herald, const struct hook *hook,
                          const struct letters *letters, struct delivery_order *order,
                          struct buf *task, struct error *e)
{
    const struct config *config = herald->o.config;
    AUTO(arena) struct arena arena = { 0 };
    struct str to = hook->r.url;
    (void)str_cut(&to, ':');
    if (config->smtp_relay.size == 0)
        return err_set(e, ERR_DENIED, "operators have set no relay for mail (smtp_relay)");
    order->host = config->smtp_relay;
    order->reach = REACH_NEAR; /* it is the operator's */
    buf_format(task, "url %s://%.*s\nfrom <%.*s>\nto <%.*s>\n",
               str_is(config->smtp_tls, "tls") ? "smtps" : "smtp", STR_ARG(config->smtp_relay),
               STR_ARG(config->smtp_from), STR_ARG(to));
    if (!str_is(config->smtp_tls, "none"))
        buf_add_text(task, "tls needed\n");
    enum err rc = add_login(config, task, e);
    if (rc != ERR_OK)
        return rc;
    add_authority(config, task);
    buf_add_char(task, '\n');
    letters_mail(letters, str_c(&arena, config->smtp_from), str_c(&arena, to), task);
    return ERR_OK;
}

/* ---- delivering ---------------------------------------------------------------------------- */

/* People see it with the hook; the journal has a row only when it becomes another. */
static void note_fault(struct herald *herald, const struct hook *hook, const char *fault)
{
    struct error e = { 0 };
    struct command command = { .type = CMD_HOOK_NOTE,
                               .actor = { .role = ROLE_SYSTEM, .name = STR("system") } };
    char text[ID_TEXT_MAX];
    if (str_is(hook->r.fault, fault))
        return;
    if (fault[0] != '\0')
        log_warning("a hook is not reached", LOG_STR("hook", id_text(ID_HOOK, hook->r.id, text)),
                    LOG_STR("why", fault));
    command.target.id = hook->r.id;
    command.target.reason = str_of(fault);
    if (engine_command(herald->o.engine, &command, &e) != ERR_OK)
        log_warning("a hook's fault cannot be noted", LOG_ERR(&e));
    herald->o.on_decided(herald->o.arg);
}

static void drop_old(struct channel *channel)
{
    int64_t oldest_ns = clock_wall().ns - KEEP_S * NS_PER_S;
    size_t count = 0;
    while (count < channel->letters.count && channel->letters.items[count].at.ns < oldest_ns)
        count++;
    channel->dropped += count;
    letters_drop(channel, count);
}

static void on_fault(struct channel *channel, const char *why)
{
    char fault[DELIVERY_FAULT_MAX];
    (void)snprintf(fault, sizeof(fault), "%s", why);
    const struct hook *hook = state_hook(engine_state(channel->herald->o.engine), channel->hook);
    unsigned shift = MIN_OF(channel->faults, (unsigned)AGAIN_SHIFT_MAX);
    channel->faults++;
    channel->sending = 0;
    drop_old(channel);
    send_in(channel, MIN_OF((int64_t)AGAIN_S << shift, (int64_t)AGAIN_MAX_S));
    if (hook != NULL)
        note_fault(channel->herald, hook, fault);
}

static void on_delivered(void *arg, const char *fault)
{
    struct channel *channel = arg;
    struct herald *herald = channel->herald;
    const struct hook *hook = state_hook(engine_state(herald->o.engine), channel->hook);
    channel->delivery = NULL;
    herald->deliveries--;
    if (fault[0] != '\0') {
        on_fault(channel, fault);
        return;
    }
    channel->faults = 0;
    channel->dropped -= channel->dropped_told;
    letters_drop(channel, channel->sending);
    channel->sending = 0;
    save_later(herald, 0);
    if (hook == NULL)
        return;
    if (channel->letters.count > 0)
        send_in(channel, hook_url_is_mail(hook->r.url) ? MAIL_PAUSE_S : 0);
    note_fault(herald, hook, "");
}

static enum err begin(struct channel *channel, const struct hook *hook, struct error *e)
{
    struct herald *herald = channel->herald;
    AUTO(wipe) struct buf task = { 0 };
    const struct letters letters = batch_of(channel);
    struct delivery_order order = { .loop = herald->o.loop, .done = on_delivered, .arg = channel };
    buf_reserve(&task, 4 * BATCH_BYTES_MAX); /* so that no copy of a secret stays behind */
    enum err rc = hook_url_is_mail(hook->r.url)
                      ? fill_mail(herald, hook, &letters, &order, &task, e)
                      : fill_post(herald, hook, &letters, &order, &task, e);
    if (rc != ERR_OK)
        return rc;
    order.task = buf_str(&task);
    rc = delivery_start(&order, &channel->delivery, e);
    if (rc != ERR_OK)
        return rc;
    channel->sending = letters.count;
    channel->dropped_told = letters.dropped;
    herald->deliveries++;
    return ERR_OK;
}

static void channel_send(void *arg)
{
    struct channel *channel = arg;
    struct herald *herald = channel->herald;
    struct error e = { 0 };
    const struct hook *hook = state_hook(engine_state(herald->o.engine), channel->hook);
    if (hook == NULL || channel->delivery != NULL || channel->letters.count == 0 ||
        herald->is_ending)
        return;
    if (herald->deliveries >= DELIVERIES_MAX)
        send_in(channel, BUSY_S);
    else if (begin(channel, hook, &e) != ERR_OK)
        on_fault(channel, e.text);
}

/* ---- what has happened --------------------------------------------------------------------- */

static bool is_told(const struct hook *hook, const struct state *state, const struct event *event)
{
    if (event->type == EV_HOOK_TESTED)
        return id_eq(hook->r.id, event->removed.id);
    if (!id_eq(hook->r.tenant, event->tenant))
        return false;
    /* Of work that has left memory nobody knows the project any more: better told than not. */
    const struct workload *workload = state_workload(state, event->workload_changed.workload);
    const struct project *project = state_project(state, hook->r.project);
    return workload == NULL || project == NULL || project_is_within(workload->project, project);
}

static void channel_take(struct channel *channel, const struct state *state,
                         const struct event *event)
{
    struct letter letter;
    if (channel->letters.count >= QUEUE_MAX + channel->sending) {
        channel->dropped++; /* the newest: the others are in order, and known to come */
        return;
    }
    letter_write(state, event, &letter);
    vec_push(&channel->letters, letter);
    bool is_urgent = event->type == EV_HOOK_TESTED; /* somebody looks */
    if (channel->delivery == NULL && (channel->timer.slot == 0 || is_urgent))
        send_in(channel, 0);
}

/* A new one, or one that may be reached now. */
static void hook_follows(struct herald *herald, const struct event *event)
{
    struct channel *channel = channel_of(herald, event->hook_set.id);
    if (channel == NULL) {
        (void)channel_add(herald, event->hook_set.id, event->sequence);
    } else if (event->actor.role != ROLE_SYSTEM) {
        channel->faults = 0;
        send_in(channel, 0);
    }
}

static void hooks_follow(struct herald *herald, const struct event *event)
{
    if (event->type == EV_HOOK_REMOVED)
        channel_remove(herald, event->removed.id);
    if (event->type == EV_HOOK_SET)
        hook_follows(herald, event);
    if (event->type != EV_PROJECT_REMOVED)
        return;
    const struct state *state = engine_state(herald->o.engine);
    struct channel *next = NULL;
    for (struct channel *c = herald->first; c != NULL; c = next) {
        next = c->next;
        if (state_hook(state, c->hook) == NULL)
            channel_remove(herald, c->hook);
    }
}

static void take(struct herald *herald, const struct event *event)
{
    const struct state *state = engine_state(herald->o.engine);
    herald->read_to = event->sequence;
    if (!letter_is_wanted(event))
        return;
    for (struct channel *c = herald->first; c != NULL; c = c->next) {
        const struct hook *hook = state_hook(state, c->hook);
        if (hook != NULL && event->sequence > c->told && is_told(hook, state, event))
            channel_take(c, state, event);
    }
    save_later(herald, SAVE_S);
}

void herald_publish(struct herald *herald, const struct event *event)
{
    if (herald == NULL || !herald->is_started)
        return;
    herald->published = event->sequence;
    hooks_follow(herald, event);
    if (herald->is_live && event->sequence > herald->read_to)
        take(herald, event); /* else a page had it before it was published */
}

/* ---- what had happened before -------------------------------------------------------------- */

static enum err page_row(void *arg, const struct store_row *row, struct error *e)
{
    struct herald *herald = arg;
    AUTO(arena) struct arena arena = { 0 };
    struct event event;
    enum err rc = state_decode_row(NULL, row, &arena, &event, e);
    if (rc != ERR_OK)
        return rc;
    herald->page_to = event.sequence;
    if (!letter_is_wanted(&event))
        return ERR_OK;
    struct event *kept = event_add(&herald->page, &herald->found, event.type);
    event_copy(&herald->page, &event, kept);
    return ERR_OK;
}

/* On a worker. */
static void page_run(void *arg)
{
    struct herald *herald = arg;
    const struct query_page page = { .after = herald->page_from, .limit = PAGE_ROWS };
    AUTO(query) struct query *query = NULL;
    herald->page_error = (struct error){ 0 };
    herald->page_rc = query_open_sqlite(herald->o.store_path, &query, &herald->page_error);
    if (herald->page_rc == ERR_OK)
        herald->page_rc = query_events(query, &page, page_row, herald, &herald->page_error);
}

static void page_next(struct herald *herald);

static void page_done(void *arg)
{
    struct herald *herald = arg;
    herald->is_paging = false;
    if (herald->page_rc != ERR_OK) {
        log_error("hooks are not told what happened before", LOG_ERR(&herald->page_error));
        herald->read_to = herald->published;
        herald->is_live = true;
        return;
    }
    for (size_t i = 0; i < herald->found.count; i++)
        take(herald, &herald->found.items[i]);
    herald->read_to = MAX_OF(herald->read_to, herald->page_to);
    if (herald->read_to >= herald->published)
        herald->is_live = true;
    if (herald->is_live || herald->is_ending)
        return;
    if (herald->page_to == herald->page_from) { /* the journal has let go what came then */
        herald->read_to = herald->published;
        herald->is_live = true;
    } else {
        page_next(herald);
    }
}

static void page_next(struct herald *herald)
{
    arena_reset(&herald->page);
    herald->found = (struct event_list){ 0 };
    herald->page_from = herald->page_to = herald->read_to;
    herald->is_paging = true;
    loop_work(herald->o.loop, page_run, page_done, herald);
}

/* ---- life ---------------------------------------------------------------------------------- */

struct herald *herald_new(const struct herald_options *options)
{
    struct herald *herald = mem_new(1, sizeof(*herald));
    herald->o = *options;
    herald->save = (struct loop_timer){ .fn = save, .arg = herald };
    return herald;
}

void herald_start(struct herald *herald)
{
    AUTO(buf) struct buf places = { 0 };
    struct error e = { 0 };
    const struct state *state = engine_state(herald->o.engine);
    enum err rc = file_read(herald->o.cursor_path, CURSOR_BYTES_MAX, &places, &e);
    if (rc != ERR_OK && rc != ERR_NOT_FOUND)
        log_warning("what hooks were told is not known: they are told again", LOG_ERR(&e));
    herald->is_started = true;
    herald->published = herald->read_to = state->sequence;
    for (const struct hook *h = state->first_hook; h != NULL; h = h->next) {
        uint64_t told = MIN_OF(place_read(buf_str(&places), h->r.id), state->sequence);
        told = MAX_OF(told, h->r.created_sequence);
        (void)channel_add(herald, h->r.id, told);
        herald->read_to = MIN_OF(herald->read_to, told);
    }
    herald->is_live = herald->read_to == herald->published;
    if (!herald->is_live)
        page_next(herald);
}

void herald_stop(struct herald *herald)
{
    herald->is_ending = true;
    for (struct channel *c = herald->first; c != NULL; c = c->next) {
        loop_timer_stop(herald->o.loop, &c->timer);
        delivery_abort(c->delivery);
        c->delivery = NULL;
    }
}

void herald_free(struct herald *herald)
{
    if (herald == NULL)
        return;
    loop_timer_stop(herald->o.loop, &herald->save);
    if (herald->is_started) {
        buf_clear(&herald->places);
        write_places(herald, &herald->places);
        save_run(herald);
    }
    while (herald->first != NULL)
        channel_remove(herald, herald->first->hook);
    arena_done(&herald->page);
    buf_done(&herald->places);
    mem_free(herald);
}
