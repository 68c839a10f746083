/* What hooks are told, and how it reads. */
#include <jansson.h>
#include <string.h>

#include "controller/letter.h"
#include "unit/sched/lab.h"
#include "unit/test.h"

static struct id running_work(struct lab *lab)
{
    lab_init(lab);
    lab_add_node(lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 2 });
    lab_project(lab, "amber", (struct lab_quota){ .class_name = "h100", .quota_milli = 2000 });
    struct id id = lab_submit(lab, (struct lab_job){ .project = "amber", .gpu_milli = 1000 });
    lab_settle(lab);
    return id;
}

static struct event change(struct id workload, enum workload_state state, enum cause cause)
{
    struct event event = { .type = EV_WORKLOAD_CHANGED, .version = 1 };
    event.sequence = 900;
    event.tenant_sequence = 12;
    event.wall = (struct wall){ INT64_C(1796110107123) * NS_PER_MS };
    event.workload_changed = (struct workload_changed){
        .workload = workload, .state = state, .after_stop = WL_QUEUED, .cause = cause, .attempt = 1
    };
    return event;
}

static void who_is_told_of_what(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum workload_state state;
        enum cause cause;
        bool is_wanted;
    } cases[] = {
        { "an eviction", WL_STOPPING, CAUSE_RECLAIMED_FOR_QUOTA, true },
        { "back in the queue", WL_QUEUED, CAUSE_DRAINED, true },
        { "the time limit", WL_TIMED_OUT, CAUSE_TIME_LIMIT, true },
        { "an operator's cancel", WL_CANCELLED, CAUSE_ADMIN_CANCELLED, true },
        { "one's own cancel is known", WL_CANCELLED, CAUSE_USER_CANCELLED, false },
        { "so is its own end", WL_SUCCEEDED, CAUSE_EXITED, false },
        { "a start is none", WL_RUNNING, CAUSE_STARTED, false },
        { "nor what only begins", WL_STARTING, CAUSE_NODE_FAILURE, false },
    };
    FOR_EACH_CASE (c, cases) {
        struct event event = change((struct id){ 1, 2 }, c->state, c->cause);
        CHECK(c->name, letter_is_wanted(&event) == c->is_wanted);
    }
    struct event test = { .type = EV_HOOK_TESTED };
    struct event other = { .type = EV_HOOK_SET };
    CHECK("a test is", letter_is_wanted(&test));
    CHECK("what hooks are is not", !letter_is_wanted(&other));
}

static void it_says_what_happened(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id id = running_work(&lab);
    AUTO(buf) struct buf body = { 0 };
    struct letter letter;
    struct event event = change(id, WL_STOPPING, CAUSE_RECLAIMED_FOR_QUOTA);
    letter_write(lab.state, &event, &letter);
    const struct letters letters = { .items = &letter, .count = 1, .dropped = 3, .hook = { 7, 8 } };
    letters_post(&letters, &body);
    json_t *json = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL);
    json_t *notice = json_array_get(json_object_get(json, "notices"), 0);
    CHECK("is JSON", json_is_object(notice));
    CHECK("dropped", json_integer_value(json_object_get(json, "dropped")) == 3);
    CHECK("the tenant's number, not the journal's",
          json_integer_value(json_object_get(notice, "sequence")) == 12 &&
              strstr(body.data, "900") == NULL);
    CHECK("kind", strcmp(json_string_value(json_object_get(notice, "kind")), "stopping") == 0);
    CHECK("cause",
          strcmp(json_string_value(json_object_get(notice, "cause")), "reclaimed_for_quota") == 0);
    CHECK("project", strcmp(json_string_value(json_object_get(notice, "project")), "amber") == 0);
    CHECK("what is next",
          strcmp(json_string_value(json_object_get(notice, "then")), "queued") == 0);
    json_decref(json);
    letter_done(&letter);

    event.workload_changed.workload = (struct id){ 99, 99 };
    letter_write(lab.state, &event, &letter);
    CHECK("what has left memory has its id",
          strstr(letter.json.data, "\"workload\":\"wl_") != NULL &&
              strstr(letter.json.data, "\"project\"") == NULL);
    letter_done(&letter);
}

static void it_is_signed_over_time_and_body(void **state)
{
    (void)state;
    AUTO(buf) struct buf header = { 0 };
    AUTO(buf) struct buf other = { 0 };
    const struct letters letters = { .now = { INT64_C(1796110107) * NS_PER_S } };
    letters_sign(&letters, STR("0123456789abcdef"), STR("{\"a\":1}"), &header);
    /* printf '1796110107.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef */
    CHECK(
        "as anybody computes it",
        str_is(buf_str(&header),
               "Berth-Signature: "
               "t=1796110107,v1=6214b2b9c5c8e6f05cf56a052362b45ae886ff5a2d0ea7f74c60a4e404c7479f"));
    letters_sign(&letters, STR("0123456789abcdef"), STR("{\"a\":2}"), &other);
    CHECK("another body, another signature", !str_eq(buf_str(&header), buf_str(&other)));
}

static void mail_cannot_be_led_astray(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id id = running_work(&lab);
    AUTO(buf) struct buf mail = { 0 };
    struct letter letter;
    struct event event = change(id, WL_QUEUED, CAUSE_NODE_FAILURE);
    event.workload_changed.detail = STR("node x\r\n.\r\nRCPT TO:<y@z>\x07");
    letter_write(lab.state, &event, &letter);
    const struct letters letters = {
        .items = &letter, .count = 1, .hook = { 7, 8 }, .now = { INT64_C(1796110107) * NS_PER_S }
    };
    letters_mail(&letters, "berth@example.org", "team@example.org", &mail);
    CHECK("from and to", strstr(mail.data, "From: Berth <berth@example.org>\r\n") == mail.data &&
                             strstr(mail.data, "\r\nTo: <team@example.org>\r\n") != NULL);
    CHECK("a date", strstr(mail.data, "\r\nDate: Tue, 01 Dec 2026 ") != NULL);
    CHECK("the same number when it is sent again",
          strstr(mail.data, "Message-ID: <12.hok_") != NULL);
    CHECK("no line begins with what others wrote",
          strstr(mail.data, "\n.\r\n") == NULL && strstr(mail.data, "\nRCPT") == NULL);
    CHECK("no byte that a terminal obeys", strchr(mail.data, '\x07') == NULL);
    letter_done(&letter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_told_of_what),
        cmocka_unit_test(it_says_what_happened),
        cmocka_unit_test(it_is_signed_over_time_and_body),
        cmocka_unit_test(mail_cannot_be_led_astray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
