#include <string.h>

#include "identity/token.h"
#include "unit/test.h"

struct fixture {
    struct state *state;
    struct id token;
    char text[TOKEN_TEXT_MAX];
};

static void fixture_init(struct fixture *f, const struct token_record *record)
{
    struct event event = { .type = EV_TOKEN_SET, .version = 1, .sequence = 1 };
    f->state = state_new();
    f->token = (struct id){ 1, 2 };
    event.token_set = *record;
    event.token_set.id = f->token;
    token_make(f->token, f->text, &event.token_set.secret);
    evolve(f->state, &event);
}

static enum err authenticate(const struct fixture *f, const char *text, int64_t now_s,
                             struct actor *actor)
{
    struct error e = { 0 };
    enum err rc =
        token_authenticate(f->state, str_of(text), (struct wall){ now_s * NS_PER_S }, actor, &e);
    CHECK("one text for every refusal", rc == ERR_OK || strstr(e.text, "not valid") != NULL);
    return rc;
}

static void test_who(void **state)
{
    (void)state;
    struct fixture f;
    struct actor actor = { 0 };
    fixture_init(&f, &(struct token_record){ .role = ROLE_ADMIN, .user = STR("ada") });
    CHECK("known", authenticate(&f, f.text, 1, &actor) == ERR_OK);
    CHECK("who",
          actor.role == ROLE_ADMIN && str_is(actor.name, "ada") && id_eq(actor.token, f.token));
    state_free(f.state);
}

static void test_every_changed_character_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct actor actor = { 0 };
    fixture_init(&f, &(struct token_record){ .role = ROLE_ADMIN });
    for (size_t i = 0; f.text[i] != '\0'; i++) {
        char before = f.text[i];
        f.text[i] = before == '0' ? '1' : '0';
        CHECK("changed", authenticate(&f, f.text, 1, &actor) == ERR_UNAUTHENTICATED);
        f.text[i] = before;
    }
    for (size_t size = 0; f.text[size] != '\0'; size++) {
        char cut[TOKEN_TEXT_MAX];
        (void)snprintf(cut, sizeof(cut), "%.*s", (int)size, f.text);
        CHECK("cut", authenticate(&f, cut, 1, &actor) == ERR_UNAUTHENTICATED);
    }
    CHECK("whole", authenticate(&f, f.text, 1, &actor) == ERR_OK);
    state_free(f.state);
}

static const struct {
    const char *name;
    struct token_record record;
    int64_t now_s;
    enum err rc;
} lives[] = {
    { "before it expires", { .role = ROLE_MEMBER, .expires = { 100 * NS_PER_S } }, 99, ERR_OK },
    { "when it expires",
      { .role = ROLE_MEMBER, .expires = { 100 * NS_PER_S } },
      100,
      ERR_UNAUTHENTICATED },
    { "revoked", { .role = ROLE_ADMIN, .is_revoked = true }, 1, ERR_UNAUTHENTICATED },
    { "a join token makes no requests", { .role = ROLE_NODE_JOIN }, 1, ERR_UNAUTHENTICATED },
    { "a token of no role", { .role = ROLE_NONE }, 1, ERR_UNAUTHENTICATED },
};

static void test_lives(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, lives) {
        struct fixture f;
        struct actor actor = { 0 };
        fixture_init(&f, &c->record);
        CHECK(c->name, authenticate(&f, f.text, c->now_s, &actor) == c->rc);
        state_free(f.state);
    }
}

static void test_two_are_never_alike(void **state)
{
    (void)state;
    char one[TOKEN_TEXT_MAX];
    char two[TOKEN_TEXT_MAX];
    struct digest first;
    struct digest second;
    token_make((struct id){ 1, 2 }, one, &first);
    token_make((struct id){ 1, 2 }, two, &second);
    CHECK("texts", strcmp(one, two) != 0);
    CHECK("digests", memcmp(&first, &second, sizeof(first)) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who),
        cmocka_unit_test(test_every_changed_character_is_refused),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_two_are_never_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
