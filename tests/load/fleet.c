#include "fleet.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/random.h"

enum {
    DIAL_FIRST_MS = 200, /* as the real network half dials again */
    DIAL_MAX_MS = 15000,
    DIAL_TIMEOUT_MS = 30000,
    PEM_MAX = 64 * 1024,
    TOKENS_MAX = 8 * 1024 * 1024,
};

static void on_dial(void *arg);

static void timer_in_ms(struct agent *agent, struct loop_timer *timer, int64_t ms)
{
    struct loop *loop = agent->fleet->loop;
    loop_timer_set(loop, timer, (struct mono){ loop_now(loop).ns + ms * NS_PER_MS });
}

static void send_message(struct agent *agent, enum message_type type, const void *message)
{
    AUTO(buf) struct buf bytes = { 0 };
    message_encode(type, message, &bytes);
    agent->fleet->counts.sent++;
    if (link_send(agent->link, (uint16_t)type, buf_str(&bytes)) != ERR_OK)
        link_abort(agent->link, "no room for a message");
}

/* ---- first dials ----------------------------------------------------------------------------- */

void fleet_start(struct fleet *fleet)
{
    while (fleet->next < fleet->options.count && fleet->starting < fleet->options.concurrency) {
        struct agent *agent = &fleet->agents[fleet->next++];
        agent->is_starting = true;
        fleet->starting++;
        timer_in_ms(agent, &agent->dial, 0);
    }
}

/* This agent needs no place among the first dials any more. */
static void agent_started(struct agent *agent)
{
    if (!agent->is_starting)
        return;
    agent->is_starting = false;
    agent->fleet->starting--;
    fleet_start(agent->fleet);
}

/* ---- granted work ---------------------------------------------------------------------------- */

static void sha256(void *self, struct str bytes, struct grant_digest *out)
{
    (void)self;
    (void)crypto_hash_sha256(out->bytes, (const unsigned char *)bytes.data, bytes.size);
}

static bool verify(void *self, struct str bytes, const uint8_t signature[GRANT_SIGNATURE_SIZE])
{
    const struct agent *agent = self;
    return crypto_sign_verify_detached(signature, (const unsigned char *)bytes.data, bytes.size,
                                       agent->grant_key) == 0;
}

static void observed_send(struct agent *agent)
{
    AUTO(arena) struct arena arena = { 0 };
    struct node_observed observed = { .node = agent->node,
                                      .generation = agent->generation,
                                      .epoch = agent->epoch };
    if (!agent->is_welcome)
        return;
    observed.observed.items = arena_new(&arena, agent->works.count, sizeof(struct observed));
    for (size_t i = 0; i < agent->works.count; i++) {
        const struct work *work = &agent->works.items[i];
        bool is_over = work->state == OBSERVED_EXITED;
        observed.observed.items[observed.observed.count++] = (struct observed){
            .allocation = work->allocation,
            .attempt = work->attempt,
            .state = work->state,
            .exit = { .is_known = is_over, .signal = is_over && work->is_stopped ? 15 : 0 },
        };
    }
    send_message(agent, MESSAGE_OBSERVED, &observed);
}

/* The timer stands at the first end to come. */
static void work_end_arm(struct agent *agent)
{
    int64_t first = 0;
    for (size_t i = 0; i < agent->works.count; i++) {
        const struct work *work = &agent->works.items[i];
        if (work->state == OBSERVED_RUNNING && work->ends_ns != 0 &&
            (first == 0 || work->ends_ns < first))
            first = work->ends_ns;
    }
    if (first != 0)
        loop_timer_set(agent->fleet->loop, &agent->work_end, (struct mono){ first });
}

static void work_end(struct agent *agent, struct work *work, bool is_stopped)
{
    work->state = OBSERVED_EXITED;
    work->is_stopped = is_stopped;
    agent->fleet->counts.running--;
    if (is_stopped)
        agent->fleet->counts.stopped++;
    else
        agent->fleet->counts.finished++;
}

static void on_work_end(void *arg)
{
    struct agent *agent = arg;
    int64_t now_ns = loop_now(agent->fleet->loop).ns;
    for (size_t i = 0; i < agent->works.count; i++) {
        struct work *work = &agent->works.items[i];
        if (work->state == OBSERVED_RUNNING && work->ends_ns != 0 && work->ends_ns <= now_ns)
            work_end(agent, work, false);
    }
    work_end_arm(agent);
    observed_send(agent);
}

static const struct grant *grant_of(const struct grant_set *set, const struct work *work)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (id_eq(set->grants[i].allocation, work->allocation) &&
            set->grants[i].attempt == work->attempt)
            return &set->grants[i];
    }
    return NULL;
}

static bool has_work(const struct agent *agent, const struct grant *grant)
{
    for (size_t i = 0; i < agent->works.count; i++) {
        if (id_eq(agent->works.items[i].allocation, grant->allocation) &&
            agent->works.items[i].attempt == grant->attempt)
            return true;
    }
    return false;
}

/* What is there follows the set: the real agent's reconciliation in small. */
static void works_follow(struct agent *agent, const struct grant_set *set)
{
    struct fleet *fleet = agent->fleet;
    for (size_t left = agent->works.count; left > 0; left--) {
        size_t i = left - 1;
        struct work *work = &agent->works.items[i];
        const struct grant *grant = grant_of(set, work);
        bool is_running = work->state == OBSERVED_RUNNING;
        if (grant == NULL && is_running) {
            fleet->counts.vanished++;
            fleet->counts.running--;
        }
        if (grant == NULL)
            *work = agent->works.items[--agent->works.count];
        else if (grant->is_stop && is_running)
            work_end(agent, work, true);
    }
    for (uint32_t i = 0; i < set->count; i++) {
        const struct grant *grant = &set->grants[i];
        if (grant->is_stop || has_work(agent, grant))
            continue;
        int64_t work_ns = fleet->options.work_ms * NS_PER_MS;
        const struct work work = { .allocation = grant->allocation,
                                   .attempt = grant->attempt,
                                   .state = OBSERVED_RUNNING,
                                   .ends_ns =
                                       work_ns > 0 ? loop_now(fleet->loop).ns + work_ns : 0 };
        vec_push(&agent->works, work);
        fleet->counts.started++;
        fleet->counts.running++;
    }
}

static void on_desired(struct agent *agent, struct str payload)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(grant_set) struct grant_set set = { 0 };
    struct desired_message message;
    struct error e = { 0 };
    const struct grant_crypto crypto = { .self = agent, .sha256 = sha256, .verify = verify };
    agent->fleet->counts.sets++;
    if (desired_decode(payload, &arena, &message, &e) != ERR_OK ||
        grant_set_decode(message.set, agent->node, &crypto, &set, &e) != ERR_OK) {
        agent->fleet->counts.bad_sets++;
        (void)fprintf(stderr, "agent %zu: a bad set: %s\n", agent->index, e.text);
        return;
    }
    const struct grant_stamp stored = { agent->epoch, agent->generation };
    if (grant_order(stored, (struct grant_stamp){ set.epoch, set.generation }) == GRANT_OLDER) {
        agent->fleet->counts.bad_sets++;
        return;
    }
    agent->epoch = set.epoch;
    agent->generation = set.generation;
    works_follow(agent, &set);
    work_end_arm(agent);
    observed_send(agent);
}

/* ---- identity -------------------------------------------------------------------------------- */

static const char *identity_path(const struct agent *agent, struct arena *arena)
{
    return arena_format(arena, "%s/%06zu", agent->fleet->options.dir, agent->index);
}

/* "node grant-key\n", then the key, then the certificate. */
static bool identity_load(struct agent *agent)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    static const char divider[] = "-----BEGIN CERTIFICATE-----";
    if (file_read(identity_path(agent, &arena), PEM_MAX, &bytes, NULL) != ERR_OK)
        return false;
    struct str rest = buf_str(&bytes);
    struct str head = str_cut(&rest, '\n');
    struct str node = str_cut(&head, ' ');
    const char *certificate = strstr(rest.data, divider);
    if (certificate == NULL || !id_parse(ID_NODE, node, &agent->node) ||
        !hex_decode(head, agent->grant_key, sizeof(agent->grant_key)))
        return false;
    size_t key_size = (size_t)(certificate - rest.data);
    buf_add(&agent->key, rest.data, key_size);
    buf_add(&agent->certificate, certificate, rest.size - key_size);
    agent->has_identity = true;
    agent->fleet->counts.joined++;
    return true;
}

static void identity_keep(struct agent *agent, const struct joined_message *joined)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    char node[ID_TEXT_MAX];
    agent->node = joined->node;
    if (!hex_decode(joined->grant_key, agent->grant_key, sizeof(agent->grant_key)))
        return;
    buf_add_str(&agent->certificate, joined->certificate);
    buf_format(&bytes, "%s %.*s\n", id_text(ID_NODE, joined->node, node),
               STR_ARG(joined->grant_key));
    buf_add_str(&bytes, buf_str(&agent->key));
    buf_add_str(&bytes, joined->certificate);
    FILE *file = fopen(identity_path(agent, &arena), "we"); /* not durable: of a load test */
    if (file == NULL || fwrite(bytes.data, 1, bytes.size, file) != bytes.size)
        perror("identity");
    if (file != NULL)
        (void)fclose(file);
    agent->has_identity = true;
    agent->fleet->counts.joined++;
}

static enum err join_send(struct agent *agent, struct error *e)
{
    struct fleet *fleet = agent->fleet;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf request = { 0 };
    if (fleet->tokens_used == fleet->tokens.count)
        return err_set(e, ERR_INVALID, "there are fewer join tokens than agents to join");
    buf_clear(&agent->key);
    enum err rc = ca_key_new(CA_KEY_P256, &agent->key, e);
    if (rc == ERR_OK)
        rc = ca_request_new(buf_str(&agent->key), STR("node"), &request, e);
    if (rc != ERR_OK)
        return rc;
    const struct join_message join = {
        .protocol_min = PROTOCOL_MIN,
        .protocol_max = PROTOCOL_MAX,
        .token = fleet->tokens.items[fleet->tokens_used++],
        .name = str_of(arena_format(&arena, "load-%06zu", agent->index)),
        .request = buf_str(&request),
        .agent_version = STR("load"),
        .wall_ns = clock_wall().ns,
    };
    send_message(agent, MESSAGE_JOIN, &join);
    return ERR_OK;
}

/* ---- the link -------------------------------------------------------------------------------- */

static void hello_send(struct agent *agent)
{
    const struct hello_message hello = {
        .protocol_min = PROTOCOL_MIN,
        .protocol_max = PROTOCOL_MAX,
        .node = agent->node,
        .boot_id = str_of(agent->fleet->boot_id),
        .agent_version = STR("load"),
        .wall_ns = clock_wall().ns,
        .epoch = agent->epoch,
        .generation = agent->generation,
    };
    send_message(agent, MESSAGE_HELLO, &hello);
}

static void inventory_send(struct agent *agent)
{
    AUTO(arena) struct arena arena = { 0 };
    size_t count = (size_t)agent->fleet->options.gpus;
    struct found_device *devices = arena_new(&arena, count, sizeof(*devices));
    for (size_t i = 0; i < count; i++) {
        devices[i] = (struct found_device){
            .index = (int64_t)i,
            .class_name = STR("h100-80g"),
            .vendor = STR("sim"),
            .uuid = str_of(arena_format(&arena, "SIM-%06zu-%zu", agent->index, i)),
            .model = STR("a simulated device of a load test"),
            .memory_mib = 81920,
            .health = DEVICE_OK,
            .is_simulated = true,
        };
    }
    const struct inventory_message message = {
        .inventory = { .node = agent->node,
                       .boot_id = str_of(agent->fleet->boot_id),
                       .agent_version = STR("load"),
                       .cpu_class_name = STR("cpu-x86"),
                       .cpu_milli = 8000,
                       .memory_mib = 65536,
                       .devices = { devices, count } },
    };
    send_message(agent, MESSAGE_INVENTORY, &message);
}

static void on_beat(void *arg)
{
    struct agent *agent = arg;
    if (!agent->is_welcome)
        return;
    const struct heartbeat_message beat = { .number = ++agent->beat_number,
                                            .boottime_ns = clock_boottime().ns,
                                            .wall_ns = clock_wall().ns,
                                            .epoch = agent->epoch,
                                            .generation = agent->generation };
    send_message(agent, MESSAGE_HEARTBEAT, &beat);
    timer_in_ms(agent, &agent->beat, HEARTBEAT_S * 1000);
}

static void on_welcome(struct agent *agent)
{
    struct fleet *fleet = agent->fleet;
    agent->is_welcome = true;
    agent->failures = 0;
    fleet->counts.connected++;
    fleet->counts.resumed += link_peer(agent->link)->is_resumed;
    if (fleet->counts.connected == fleet->options.count)
        fleet->all_since = clock_monotonic();
    inventory_send(agent);
    observed_send(agent);
    timer_in_ms(agent, &agent->beat, (int64_t)random_below(HEARTBEAT_S * 1000));
    agent_started(agent);
}

static void on_refuse(struct agent *agent, const struct refuse_message *refuse)
{
    if (agent->fleet->counts.refused++ < 10)
        (void)fprintf(stderr, "agent %zu was refused: %.*s\n", agent->index,
                      STR_ARG(refuse->detail));
    if (refuse->reason != REFUSE_BUSY && agent->fleet->fatal.code == ERR_OK)
        (void)err_set(&agent->fleet->fatal, ERR_DENIED, "refused: %.*s", STR_ARG(refuse->detail));
}

static void on_message(struct link *link, uint16_t type, struct str payload, void *arg)
{
    struct agent *agent = arg;
    AUTO(arena) struct arena arena = { 0 };
    struct error e = { 0 };
    agent->fleet->counts.received++;
    const struct schema *schema = message_schema((enum message_type)type);
    if (schema == NULL) {
        if (type == MESSAGE_DESIRED)
            on_desired(agent, payload);
        return;
    }
    void *message = arena_new(&arena, 1, schema->size);
    if (message_decode((enum message_type)type, payload, &arena, message, &e) != ERR_OK) {
        (void)fprintf(stderr, "agent %zu: %s\n", agent->index, e.text);
        link_abort(link, "a message cannot be read");
    } else if (type == MESSAGE_WELCOME) {
        on_welcome(agent);
    } else if (type == MESSAGE_HEARTBEAT_ACK) {
        agent->fleet->counts.beats_acked++;
    } else if (type == MESSAGE_REFUSE) {
        on_refuse(agent, message);
    } else if (type == MESSAGE_JOINED) {
        identity_keep(agent, message);
        tls_context_free(agent->tls); /* the next dial shows the certificate */
        agent->tls = NULL;
        link_close(link, "joined");
    }
}

static void on_up(struct link *link, void *arg)
{
    struct agent *agent = arg;
    struct error e = { 0 };
    if (agent->has_identity) {
        hello_send(agent);
    } else if (join_send(agent, &e) != ERR_OK) {
        agent->fleet->fatal = e;
        link_abort(link, "cannot join");
    }
}

static void on_down(struct link *link, const char *why, void *arg)
{
    struct agent *agent = arg;
    struct fleet *fleet = agent->fleet;
    (void)link;
    (void)why;
    agent->link = NULL;
    loop_timer_stop(fleet->loop, &agent->beat);
    if (agent->is_welcome) {
        if (fleet->counts.connected == fleet->options.count) {
            fleet->all_since = (struct mono){ 0 };
            fleet->all_lost = clock_monotonic();
        }
        agent->is_welcome = false;
        fleet->counts.connected--;
    }
    if (agent->is_starting && agent->has_identity && agent->failures == 0 && agent->tls == NULL) {
        timer_in_ms(agent, &agent->dial, 0); /* just joined */
        return;
    }
    int64_t ms =
        MIN_OF((int64_t)DIAL_FIRST_MS << MIN_OF(agent->failures, 7U), (int64_t)DIAL_MAX_MS);
    agent->failures++;
    timer_in_ms(agent, &agent->dial, ms / 2 + (int64_t)random_below((uint64_t)ms));
}

static const struct link_events link_events = {
    .on_up = on_up,
    .on_message = on_message,
    .on_down = on_down,
};

static enum err tls_open(struct agent *agent, struct error *e)
{
    const struct tls_client_options options = {
        .ca_pem = buf_str(&agent->fleet->authority),
        .certificate_pem = agent->has_identity ? buf_str(&agent->certificate) : (struct str){ 0 },
        .key_pem = agent->has_identity ? buf_str(&agent->key) : (struct str){ 0 },
        .protocol = TLS_PROTOCOL_LINK,
    };
    return tls_client_new(&options, &agent->tls, e);
}

static void on_dial(void *arg)
{
    struct agent *agent = arg;
    struct fleet *fleet = agent->fleet;
    if (agent->link != NULL)
        return;
    if (agent->tls == NULL && tls_open(agent, &fleet->fatal) != ERR_OK)
        return;
    const struct conn_dial_options dial = { .host = fleet->options.host,
                                            .port = fleet->options.port,
                                            .tls = agent->tls,
                                            .tls_name = "localhost",
                                            .timeout_ms = DIAL_TIMEOUT_MS };
    static const struct link_options options = { 0 };
    fleet->counts.dials++;
    agent->link = link_dial(fleet->loop, &dial, &options, &link_events, agent);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void agent_init(struct fleet *fleet, size_t index)
{
    struct agent *agent = &fleet->agents[index];
    *agent = (struct agent){
        .fleet = fleet,
        .index = index,
        .dial = { .fn = on_dial, .arg = agent },
        .beat = { .fn = on_beat, .arg = agent },
        .work_end = { .fn = on_work_end, .arg = agent },
    };
    (void)identity_load(agent);
}

static enum err tokens_load(struct fleet *fleet, struct error *e)
{
    AUTO(buf) struct buf bytes = { 0 };
    if (fleet->options.token_file == NULL)
        return ERR_OK;
    enum err rc = file_read(fleet->options.token_file, TOKENS_MAX, &bytes, e);
    if (rc != ERR_OK)
        return rc;
    fleet->tokens.items = arena_new(&fleet->arena, fleet->options.count, sizeof(struct str));
    struct str rest = buf_str(&bytes);
    while (rest.size > 0 && fleet->tokens.count < fleet->options.count) {
        struct str line = str_cut(&rest, '\n');
        if (line.size > 0)
            fleet->tokens.items[fleet->tokens.count++] = str_copy(&fleet->arena, line);
    }
    return ERR_OK;
}

enum err fleet_open(const struct fleet_options *options, struct str authority, struct fleet **out,
                    struct error *e)
{
    if (sodium_init() < 0)
        return err_set(e, ERR_IO, "libsodium cannot be used");
    struct fleet *fleet = mem_new(1, sizeof(*fleet));
    fleet->options = *options;
    buf_add_str(&fleet->authority, authority);
    enum err rc = loop_new(&fleet->loop, e);
    if (rc == ERR_OK)
        rc = clock_boot_id(fleet->boot_id, e);
    if (rc == ERR_OK)
        rc = file_make_dirs(options->dir, 0700, e);
    if (rc == ERR_OK)
        rc = tokens_load(fleet, e);
    fleet->agents = mem_new(options->count, sizeof(*fleet->agents));
    if (rc != ERR_OK) {
        fleet->options.count = 0;
        fleet_free(fleet);
        return rc;
    }
    for (size_t i = 0; i < options->count; i++)
        agent_init(fleet, i);
    *out = fleet;
    return ERR_OK;
}

void fleet_free(struct fleet *fleet)
{
    if (fleet == NULL)
        return;
    for (size_t i = 0; i < fleet->options.count; i++) {
        if (fleet->agents[i].link != NULL)
            link_abort(fleet->agents[i].link, "the load test ends");
    }
    struct error e = { 0 };
    bool is_turned = fleet->loop != NULL && loop_turn(fleet->loop, 0, &e) == ERR_OK;
    assert(is_turned ||
           fleet->options.count == 0); /* on_down of all came at the end of the round */
    for (size_t i = 0; i < fleet->options.count; i++) {
        struct agent *agent = &fleet->agents[i];
        tls_context_free(agent->tls);
        buf_done(&agent->key);
        buf_done(&agent->certificate);
        vec_done(&agent->works);
    }
    loop_free(fleet->loop);
    mem_free(fleet->agents);
    buf_done(&fleet->authority);
    arena_done(&fleet->arena);
    mem_free(fleet);
}
