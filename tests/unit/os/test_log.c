#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "unit/test.h"

/* Lines go to a memory file, which is read back whole. */
struct capture {
    int fd;
    struct buf text;
};

static struct capture capture_start(enum log_format format, unsigned burst)
{
    struct capture capture = { .fd = memfd_create("log", MFD_CLOEXEC) };
    CHECK("memory file", capture.fd > 0);
    log_init(&(struct log_options){ .program = "test",
                                    .format = format,
                                    .level = LOG_LEVEL_INFO,
                                    .burst = burst,
                                    .fd = capture.fd });
    return capture;
}

static const char *capture_text(struct capture *capture)
{
    char path[64];
    struct error e = { 0 };
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", capture->fd);
    buf_clear(&capture->text);
    CHECK_OK("read back", file_read(path, 1 << 20, &capture->text, &e), &e);
    buf_add(&capture->text, "", 0);
    return capture->text.data;
}

static void capture_done(struct capture *capture)
{
    fd_close(capture->fd);
    buf_done(&capture->text);
}
DEFINE_CLEANUP_AT(capture, struct capture, capture_done)

static size_t lines_of(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

/* What stands after the time, which differs from run to run. */
static const char *after_time(const char *text)
{
    const char *at = strstr(text, "Z");
    CHECK(text, at != NULL);
    return at + 1;
}

static void test_json(void **state)
{
    (void)state;
    AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_JSON, 0);
    struct error e = { .text = "open \"x\": no" };
    log_warning("node lost", LOG_STR("node", "n1"), LOG_INT("wait_ms", -5),
                LOG_SLICE("part", ((struct str){ "abcdef", 3 })), LOG_ERR(&e));
    log_error("alone");
    const char *text = capture_text(&capture);
    CHECK("starts with the time", strncmp(text, "{\"time\":\"20", 11) == 0);
    CHECK(text,
          strstr(text, "Z\",\"level\":\"warning\",\"program\":\"test\",\"message\":\"node lost\","
                       "\"node\":\"n1\",\"wait_ms\":-5,\"part\":\"abc\","
                       "\"error\":\"open \\\"x\\\": no\"}\n") != NULL);
    CHECK("fields may be absent", strstr(text, "\"level\":\"error\",\"program\":\"test\","
                                               "\"message\":\"alone\"}\n") != NULL);
}

static void test_text(void **state)
{
    (void)state;
    AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_TEXT, 0);
    log_info("started", LOG_STR("id", "wl_1"), LOG_STR("name", "two words"), LOG_STR("none", NULL),
             LOG_STR("trick", "a=b"));
    assert_string_equal(after_time(capture_text(&capture)),
                        " INFO  started id=wl_1 name=\"two words\" none=\"\" trick=\"a=b\"\n");
}

static void test_journald(void **state)
{
    (void)state;
    AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_JOURNALD, 0);
    log_info("one", LOG_INT("n", 1));
    log_warning("two");
    log_error("three");
    assert_string_equal(capture_text(&capture), "<6>one n=1\n<4>two\n<3>three\n");
}

static void test_journald_is_recognized(void **state)
{
    (void)state;
    AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_AUTO, 0);
    struct stat found;
    char stream[64];
    log_info("a file");
    CHECK("a file gets JSON", capture_text(&capture)[0] == '{');

    CHECK("stat", fstat(capture.fd, &found) == 0);
    (void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)found.st_dev,
                   (unsigned long long)found.st_ino);
    (void)setenv("JOURNAL_STREAM", stream, 1);
    log_init(&(struct log_options){ .program = "test", .fd = capture.fd, .level = LOG_LEVEL_INFO });
    log_info("a stream");
    CHECK("its stream gets <N>", strstr(capture_text(&capture), "\n<6>a stream\n") != NULL);

    (void)setenv("JOURNAL_STREAM", "1:1", 1);
    log_init(&(struct log_options){ .program = "test", .fd = capture.fd, .level = LOG_LEVEL_INFO });
    log_info("another's");
    CHECK("another's does not", strstr(capture_text(&capture), "<6>another's") == NULL);
    (void)unsetenv("JOURNAL_STREAM");
}

static void test_levels(void **state)
{
    (void)state;
    AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_JSON, 0);
    log_debug("quiet");
    assert_string_equal(capture_text(&capture), "");
    enum log_level level = LOG_LEVEL_ERROR;
    CHECK("known", log_level_parse(STR("debug"), &level) && level == LOG_LEVEL_DEBUG);
    CHECK("known", log_level_parse(STR("error"), &level) && level == LOG_LEVEL_ERROR);
    CHECK("unknown", !log_level_parse(STR("loud"), &level) && level == LOG_LEVEL_ERROR);
    CHECK("case matters", !log_level_parse(STR("INFO"), &level));
    CHECK("empty", !log_level_parse(STR(""), &level));
}

/* clang-format off */
static const struct { const char *name; struct str value; const char *json, *text; } forged[] = {
    { "a new line",      STR_INIT("a\nb"),         "\"a\\nb\"",       "\"a\\nb\"" },
    { "a quote",         STR_INIT("a\"b"),         "\"a\\\"b\"",      "\"a\\\"b\"" },
    { "a backslash",     STR_INIT("a\\b"),         "\"a\\\\b\"",      "\"a\\\\b\"" },
    { "an escape",       STR_INIT("\x1b[2J"),      "\"\\u001b[2J\"",  "\"\\u001b[2J\"" },
    { "a return",        STR_INIT("a\rb"),         "\"a\\u000db\"",   "\"a\\u000db\"" },
    { "a NUL",           STR_INIT("a\0b"),         "\"a\\u0000b\"",   "\"a\\u0000b\"" },
    { "delete",          STR_INIT("\x7f"),         "\"\\u007f\"",     "\"\\u007f\"" },
    { "UTF-8",           STR_INIT("\xc3\xa9"),     "\"\xc3\xa9\"",    "\"\xc3\xa9\"" },
    { "not UTF-8",       STR_INIT("a\xff" "b"),    "\"a?b\"",         "\"a?b\"" },
    { "a C1 control",    STR_INIT("\xc2\x9b" "2J"), "\"\\u009b2J\"",  "\"\\u009b2J\"" },
};
/* clang-format on */

static void test_nothing_can_be_forged(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, forged) {
        char wanted[64];
        AUTO(capture) struct capture json = capture_start(LOG_FORMAT_JSON, 0);
        log_info("m", LOG_SLICE("value", c->value));
        (void)snprintf(wanted, sizeof(wanted), "\"value\":%s}\n", c->json);
        CHECK(c->name, strstr(capture_text(&json), wanted) != NULL);
        CHECK(c->name, lines_of(json.text.data) == 1);
        AUTO(capture) struct capture text = capture_start(LOG_FORMAT_TEXT, 0);
        log_info("m", LOG_SLICE("value", c->value));
        (void)snprintf(wanted, sizeof(wanted), " value=%s\n", c->text);
        CHECK(c->name, strstr(capture_text(&text), wanted) != NULL);
    }
}

static void test_secrets_are_not_written(void **state)
{
    (void)state;
    static const char *const names[] = { "token",  "password",      "secret",
                                         "cookie", "authorization", "private_key" };
    FOR_EACH_CASE (name, names) {
        AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_JSON, 0);
        log_info("m", LOG_STR(*name, "hunter2"), LOG_INT(*name, 4711));
        CHECK(*name, strstr(capture_text(&capture), "hunter2") == NULL);
        CHECK(*name, strstr(capture.text.data, "4711") == NULL);
        CHECK(*name, strstr(capture.text.data, "[not logged]") != NULL);
    }
}

static void test_long_lines_are_cut_and_stay_valid(void **state)
{
    (void)state;
    static char value[20000];
    for (size_t i = 0; i + 3 < sizeof(value); i += 3)
        memcpy(value + i, "\xe2\x82\xac", 3); /* NOLINT(bugprone-not-null-terminated-result) */
    for (size_t shift = 0; shift < 4; shift++) {
        AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_JSON, 0);
        char pad[5] = "xxxx";
        pad[shift] = '\0';
        log_info("m", LOG_STR("pad", pad), LOG_STR("long", value), LOG_STR("after", "y"));
        const char *text = capture_text(&capture);
        size_t size = strlen(text);
        CHECK("bounded", size > 8000 && size <= 8192);
        CHECK("closed", strcmp(text + size - 3, "\"}\n") == 0);
        CHECK("no half character", str_is_utf8(str_of(text)));
    }
}

static void test_repeats_are_counted(void **state)
{
    (void)state;
    AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_JSON, 3);
    for (int i = 0; i < 10; i++)
        log_info("the disk is full", LOG_INT("attempt", i));
    CHECK("three of ten", lines_of(capture_text(&capture)) == 3);
    log_info("another message");
    CHECK("others are not held up", lines_of(capture_text(&capture)) == 4);
    log_flush();
    const char *text = capture_text(&capture);
    CHECK("one more", lines_of(text) == 5);
    CHECK("says how many",
          strstr(text, "\"message\":\"message repeated\",\"repeated\":\"the disk is "
                       "full\",\"not_written\":7}\n") != NULL);
    log_flush();
    CHECK("only once", lines_of(capture_text(&capture)) == 5);
    log_info("the disk is full");
    CHECK("starts anew", lines_of(capture_text(&capture)) == 6);
}

static void *log_many(void *name)
{
    for (int i = 0; i < 200; i++)
        log_info("from a thread", LOG_STR("name", name), LOG_INT("i", i));
    return NULL;
}

static void test_threads_do_not_mix_lines(void **state)
{
    (void)state;
    AUTO(capture) struct capture capture = capture_start(LOG_FORMAT_JOURNALD, 100000);
    pthread_t threads[4];
    static char names[4][2] = { "a", "b", "c", "d" };
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK("starts", pthread_create(&threads[i], NULL, log_many, names[i]) == 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        (void)pthread_join(threads[i], NULL);
    CHECK("all there", lines_of(capture_text(&capture)) == 800);
    struct str rest = buf_str(&capture.text);
    while (rest.size > 0)
        CHECK("whole", str_starts(str_cut(&rest, '\n'), STR("<6>from a thread name=")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_journald),
        cmocka_unit_test(test_journald_is_recognized),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_nothing_can_be_forged),
        cmocka_unit_test(test_secrets_are_not_written),
        cmocka_unit_test(test_long_lines_are_cut_and_stay_valid),
        cmocka_unit_test(test_repeats_are_counted),
        cmocka_unit_test(test_threads_do_not_mix_lines),
    };
    return cmocka_run_group_tests_name("os/log", tests, NULL, NULL);
}
