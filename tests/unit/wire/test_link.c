/* Messages of agents: versions, tables, binary envelopes, frames. */
#include <string.h>

#include "unit/test.h"
#include "unit/wire/generate.h"
#include "wire/link.h"

static const struct choice {
    const char *name;
    struct protocol_range own, peer;
    enum err rc;
    int64_t chosen;
} choices[] = {
    { "the same version", { 1, 1 }, { 1, 1 }, ERR_OK, 1 },
    { "the highest of both", { 1, 3 }, { 2, 3 }, ERR_OK, 3 },
    { "N and N-1", { 4, 5 }, { 3, 4 }, ERR_OK, 4 },
    { "N and N+1", { 4, 5 }, { 5, 6 }, ERR_OK, 5 },
    { "the other is too new", { 4, 5 }, { 6, 7 }, ERR_CONFLICT, 0 },
    { "the other is too old", { 4, 5 }, { 2, 3 }, ERR_CONFLICT, 0 },
    { "no range", { 1, 1 }, { 3, 2 }, ERR_INVALID, 0 },
    { "version nought", { 1, 1 }, { 0, 1 }, ERR_INVALID, 0 },
};

static void test_versions(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, choices) {
        int64_t chosen = 0;
        struct error e = { 0 };
        CHECK(c->name, protocol_choose(c->own, c->peer, &chosen, &e) == c->rc);
        CHECK(c->name, chosen == c->chosen);
        CHECK(c->name, c->rc == ERR_OK || e.text[0] != '\0');
    }
}

/* Large enough for the struct of every message. */
union any_message {
    struct hello_message hello;
    struct inventory_message inventory;
    struct node_observed observed;
    struct image_source_message image_source;
    struct join_message join;
    struct joined_message joined;
    char bytes[1024];
};

static void check_message(uint64_t *seed, enum message_type type)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf first = { 0 };
    AUTO(buf) struct buf second = { 0 };
    union any_message message = { 0 };
    union any_message copy = { 0 };
    struct error e = { 0 };

    CHECK("fits", message_schema(type)->size <= sizeof(message));
    generate(seed, message_schema(type), &arena, &message);
    message_encode(type, &message, &first);
    CHECK_OK(message_name(type), message_decode(type, buf_str(&first), &arena, &copy, &e), &e);
    message_encode(type, &copy, &second);
    CHECK(message_name(type), str_eq(buf_str(&first), buf_str(&second)));
}

static void test_messages(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    size_t known = 0;

    for (unsigned type = 0; type < 200; type++) {
        CHECK("a table has a name", message_schema(type) == NULL || message_name(type) != NULL);
        known += message_name(type) != NULL;
        for (int round = 0; round < 100 && message_schema(type) != NULL; round++)
            check_message(&seed, type);
    }
    CHECK("all are known", known == 19);
}

static void test_unknown_messages(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    union any_message message = { 0 };
    struct error e = { 0 };

    CHECK("unknown", message_decode(77, STR("{}"), &arena, &message, &e) == ERR_INVALID);
    CHECK("binary",
          message_decode(MESSAGE_DESIRED, STR("{}"), &arena, &message, &e) == ERR_INVALID);
    CHECK("cut short",
          message_decode(MESSAGE_HELLO, STR("{\"node\":"), &arena, &message, &e) == ERR_INVALID);
    CHECK_OK("fields of a newer side are passed over",
             message_decode(MESSAGE_HEARTBEAT, STR("{\"number\":7,\"mood\":{\"x\":[1]}}"), &arena,
                            &message, &e),
             &e);
}

static void test_bounds(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct node_observed observed = { 0 };
    struct error e = { 0 };

    buf_add_text(&text, "{\"observed\":[");
    for (int i = 0; i < 5000; i++)
        buf_format(&text,
                   "%s{\"allocation\":\"alc_00000000000000000000000001\",\"state\":\"running\"}",
                   i > 0 ? "," : "");
    buf_add_text(&text, "]}");
    CHECK("more than a node can hold",
          message_decode(MESSAGE_OBSERVED, buf_str(&text), &arena, &observed, &e) == ERR_INVALID);
    CHECK("says where", strcmp(e.field, "observed") == 0);
}

/* ---- binary -------------------------------------------------------------------------------- */

static void test_desired(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct str payloads[] = { STR("one"), STR(""), { "\0\1\2", 3 } };
    struct desired_message message = { .set = STR("signed"), .payloads = { payloads, 3 } };
    struct desired_message out = { 0 };
    struct error e = { 0 };

    desired_encode(&message, &text);
    CHECK_OK("reads", desired_decode(buf_str(&text), &arena, &out, &e), &e);
    CHECK("set", str_is(out.set, "signed") && out.payloads.count == 3);
    for (size_t i = 0; i < 3; i++)
        CHECK("payload", str_eq(out.payloads.items[i], payloads[i]));

    size_t whole = 0;
    for (size_t size = 0; size < text.size; size++) {
        struct desired_message cut = { 0 };
        whole += desired_decode((struct str){ text.data, size }, &arena, &cut, &e) == ERR_OK;
    }
    CHECK("only cuts between payloads are whole", whole == 3);
}

static void test_headers(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct str argv[] = { STR("sh"), STR("-c"), STR("echo \"hi\"") };
    struct stream_header header = { .kind = STREAM_EXEC,
                                    .workload = { 0, 7 },
                                    .argv = { argv, 3 },
                                    .is_tty = true,
                                    .rows = 24,
                                    .columns = 80 };
    struct stream_header out = { 0 };
    struct error e = { 0 };

    CHECK_OK("writes", stream_header_encode(&header, &text, &e), &e);
    CHECK_OK("reads", stream_header_decode(buf_str(&text), &arena, &out, &e), &e);
    CHECK("the same", out.kind == STREAM_EXEC && out.argv.count == 3 && out.is_tty &&
                          str_eq(out.argv.items[2], argv[2]));

    char *long_path = arena_new(&arena, 1, 4096);
    memset(long_path, 'p', 4095);
    header.path = (struct str){ long_path, 4095 };
    size_t before = text.size;
    CHECK("too large", stream_header_encode(&header, &text, &e) == ERR_LIMIT);
    CHECK("nothing was added", text.size == before);
}

static void test_frames(void **state)
{
    (void)state;
    AUTO(buf) struct buf text = { 0 };
    struct channel_frame frame;
    struct error e = { 0 };
    bool is_complete = false;

    channel_encode(CHANNEL_STDOUT, STR("hello"), &text);
    channel_encode(CHANNEL_EXIT, (struct str){ "\0\7", 2 }, &text);
    for (size_t size = 0; size < 13; size++) {
        struct str part = { text.data, size };
        CHECK_OK("an unfinished frame waits", channel_decode(&part, &frame, &is_complete, &e), &e);
        CHECK("and takes nothing", !is_complete && part.size == size);
    }
    struct str rest = buf_str(&text);
    CHECK_OK("reads", channel_decode(&rest, &frame, &is_complete, &e), &e);
    CHECK("first", is_complete && frame.channel == CHANNEL_STDOUT && str_is(frame.bytes, "hello"));
    CHECK_OK("reads", channel_decode(&rest, &frame, &is_complete, &e), &e);
    CHECK("second", is_complete && frame.channel == CHANNEL_EXIT && rest.size == 0);

    static const struct str bad[] = { { "\x63\0\0\0\0\0\0\1x", 9 },
                                      { "\1\1\0\0\0\0\0\1x", 9 },
                                      { "\1\0\0\0\xff\xff\xff\xffx", 9 } };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        rest = bad[i];
        CHECK("a bad frame", channel_decode(&rest, &frame, &is_complete, &e) != ERR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),         cmocka_unit_test(test_messages),
        cmocka_unit_test(test_unknown_messages), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_desired),          cmocka_unit_test(test_headers),
        cmocka_unit_test(test_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
