#include "controller/letter.h"

#include <sodium.h>
#include <time.h>

#include "wire/json_writer.h"

void letter_done(struct letter *letter)
{
    buf_done(&letter->json);
    buf_done(&letter->text);
}

/* ---- what is told -------------------------------------------------------------------------- */

static const char *kind_of(const struct event *event)
{
    if (event->type == EV_HOOK_TESTED)
        return "test";
    enum workload_state state = event->workload_changed.state;
    if (state == WL_STOPPING)
        return "stopping";
    if (state == WL_QUEUED)
        return "requeued";
    return workload_state_is_final(state) ? "ended" : NULL;
}

bool letter_is_wanted(const struct event *event)
{
    if (event->type == EV_HOOK_TESTED)
        return true;
    return event->type == EV_WORKLOAD_CHANGED &&
           cause_is_of_system(event->workload_changed.cause) && kind_of(event) != NULL;
}

static void add_workload(struct json_writer *w, const struct state *state,
                         const struct workload_changed *changed)
{
    const struct workload *workload = state_workload(state, changed->workload);
    char text[ID_TEXT_MAX];
    json_put_text(w, "workload", id_text(ID_WORKLOAD, changed->workload, text));
    if (workload != NULL) {
        json_put_str(w, "name", workload->r.name);
        json_put_str(w, "project", workload->project->r.path);
        json_put_str(w, "user", workload->r.user);
    }
    json_put_text(w, "state", enum_name(&workload_state_names, changed->state));
    if (changed->state == WL_STOPPING)
        json_put_text(w, "then", enum_name(&workload_state_names, changed->after_stop));
    json_put_text(w, "cause", cause_name(changed->cause));
    json_put_text(w, "meaning", cause_meaning(changed->cause));
    if (changed->detail.size > 0)
        json_put_str(w, "detail", changed->detail);
    json_put_i64(w, "attempt", changed->attempt);
    json_put_i64(w, "evictions", changed->evictions);
    if (workload != NULL && changed->state == WL_STOPPING)
        json_put_i64(w, "grace_s", workload->r.grace_s);
}

static void write_json(const struct state *state, const struct event *event, struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    char at[WALL_TEXT_MAX];
    json_begin_object(&w);
    json_put_u64(&w, "sequence", event->tenant_sequence);
    json_put_text(&w, "kind", kind_of(event));
    json_put_text(&w, "at", wall_text(event->wall, at));
    if (event->type == EV_WORKLOAD_CHANGED)
        add_workload(&w, state, &event->workload_changed);
    json_end_object(&w);
}

/* Names are their owners': no line of a message begins or ends with them. */
static void add_plain(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' || c == 0x7f)
            buf_add_char(out, '?');
        else
            buf_add_char(out, text.data[i]);
    }
}

static void write_text(const struct state *state, const struct event *event, struct buf *out)
{
    static const char *const endings[] = { "is told to stop", "was put back into the queue",
                                           "was ended" };
    const struct workload_changed *changed = &event->workload_changed;
    char text[ID_TEXT_MAX];
    char at[WALL_TEXT_MAX];
    buf_format(out, "%s  ", wall_text(event->wall, at));
    if (event->type == EV_HOOK_TESTED) {
        buf_add_text(out, "This is a test: somebody asked whether messages arrive here.\r\n\r\n");
        return;
    }
    const struct workload *workload = state_workload(state, changed->workload);
    buf_format(out, "%s ", id_text(ID_WORKLOAD, changed->workload, text));
    if (workload != NULL) {
        buf_add_text(out, "(");
        add_plain(out, workload->r.name);
        buf_format(out, ", %.*s) ", STR_ARG(workload->project->r.path));
    }
    size_t which = changed->state == WL_STOPPING ? 0 : changed->state == WL_QUEUED ? 1 : 2;
    buf_format(out, "%s: %s. %s", endings[which], cause_name(changed->cause),
               cause_meaning(changed->cause));
    if (changed->detail.size > 0) {
        buf_add_text(out, " ");
        add_plain(out, changed->detail);
    }
    buf_add_text(out, "\r\n\r\n");
}

void letter_write(const struct state *state, const struct event *event, struct letter *out)
{
    *out = (struct letter){ .sequence = event->sequence,
                            .number = event->tenant_sequence,
                            .at = event->wall };
    write_json(state, event, &out->json);
    write_text(state, event, &out->text);
}

/* ---- how it travels ------------------------------------------------------------------------ */

void letters_post(const struct letters *letters, struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    char hook[ID_TEXT_MAX];
    char at[WALL_TEXT_MAX];
    json_begin_object(&w);
    json_put_i64(&w, "version", 1);
    json_put_text(&w, "hook", id_text(ID_HOOK, letters->hook, hook));
    json_put_text(&w, "sent", wall_text(letters->now, at));
    json_put_u64(&w, "dropped", letters->dropped);
    json_key(&w, "notices");
    json_begin_array(&w);
    for (size_t i = 0; i < letters->count; i++)
        json_add_raw(&w, buf_str(&letters->items[i].json));
    json_end_array(&w);
    json_end_object(&w);
}

void letters_sign(const struct letters *letters, struct str secret, struct str body,
                  struct buf *out)
{
    crypto_auth_hmacsha256_state state;
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    char hex[2 * sizeof(mac) + 1];
    AUTO(buf) struct buf time_text = { 0 };
    buf_format(&time_text, "%lld", (long long)(letters->now.ns / NS_PER_S));
    (void)crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret.data, secret.size);
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)time_text.data,
                                        time_text.size);
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)".", 1);
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)body.data, body.size);
    (void)crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(&state, sizeof(state));
    (void)sodium_bin2hex(hex, sizeof(hex), mac, sizeof(mac));
    buf_format(out, "Berth-Signature: t=%s,v1=%s", time_text.data, hex);
}

/* As mail writes it: "Tue, 01 Dec 2026 07:28:27 +0000", in no language but its own. */
static void add_date(struct buf *out, struct wall at)
{
    static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    time_t seconds = (time_t)(at.ns / NS_PER_S);
    struct tm parts = { 0 };
    if (gmtime_r(&seconds, &parts) == NULL)
        return;
    buf_format(out, "Date: %s, %02d %s %04d %02d:%02d:%02d +0000\r\n", days[parts.tm_wday],
               parts.tm_mday, months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
               parts.tm_min, parts.tm_sec);
}

void letters_mail(const struct letters *letters, const char *from, const char *to, struct buf *out)
{
    char hook[ID_TEXT_MAX];
    buf_format(out, "From: Berth <%s>\r\nTo: <%s>\r\n", from, to);
    add_date(out, letters->now);
    /* The same one, when it is sent again. */
    buf_format(out, "Message-ID: <%llu.%s@berth>\r\n", (unsigned long long)letters->items[0].number,
               id_text(ID_HOOK, letters->hook, hook));
    buf_format(out, "Subject: Berth: %zu notice%s about your work\r\n", letters->count,
               letters->count == 1 ? "" : "s");
    buf_add_text(out, "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                      "Content-Type: text/plain; charset=utf-8\r\n"
                      "Content-Transfer-Encoding: 8bit\r\n\r\n");
    for (size_t i = 0; i < letters->count; i++)
        buf_add_str(out, buf_str(&letters->items[i].text));
    if (letters->dropped > 0)
        buf_format(out, "%llu more could not be delivered in time.\r\n\r\n",
                   (unsigned long long)letters->dropped);
    buf_add_text(out, "`berth show WORKLOAD` and `berth explain WORKLOAD` tell more.\r\n");
}
