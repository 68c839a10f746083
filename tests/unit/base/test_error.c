#include <string.h>

#include "base/error.h"
#include "unit/test.h"

static void test_set(void **state)
{
    (void)state;
    struct error e = { .cause = 7, .field = "old" };
    CHECK("returns the code", err_set(&e, ERR_LIMIT, "%d is too many", 9) == ERR_LIMIT);
    CHECK("keeps the code", e.code == ERR_LIMIT);
    CHECK("clears cause and field", e.cause == 0 && e.field[0] == '\0');
    assert_string_equal(e.text, "9 is too many");
}

static void test_field_and_cause(void **state)
{
    (void)state;
    struct error e = { 0 };
    CHECK("a field is invalid", err_field(&e, "spec.gpus", "0 is too few") == ERR_INVALID);
    assert_string_equal(e.field, "spec.gpus");
    assert_string_equal(e.text, "0 is too few");
    CHECK("a cause keeps its code", err_cause(&e, ERR_CONFLICT, 12, "held") == ERR_CONFLICT);
    CHECK("a cause clears the field", e.cause == 12 && e.field[0] == '\0');
}

static void test_wrap(void **state)
{
    (void)state;
    struct error e = { 0 };
    enum err rc = err_wrap(&e, err_field(&e, "name", "is empty"), "project %s", "amber");
    CHECK("keeps the code", rc == ERR_INVALID && e.code == ERR_INVALID);
    assert_string_equal(e.field, "name");
    assert_string_equal(e.text, "project amber: is empty");
    (void)err_wrap(&e, err_cause(&e, ERR_CONFLICT, 3, "busy"), "try");
    CHECK("keeps the cause", e.cause == 3);
}

static void test_null_is_fine(void **state)
{
    (void)state;
    CHECK("set", err_set(NULL, ERR_DENIED, "no") == ERR_DENIED);
    CHECK("field", err_field(NULL, "a", "no") == ERR_INVALID);
    CHECK("cause", err_cause(NULL, ERR_LIMIT, 1, "no") == ERR_LIMIT);
    CHECK("wrap", err_wrap(NULL, ERR_IO, "no") == ERR_IO);
    errno = ENOENT;
    CHECK("errno", err_errno(NULL, "no") == ERR_IO);
}

static void test_errno(void **state)
{
    (void)state;
    struct error e = { 0 };
    errno = ENOENT;
    CHECK("is an I/O error", err_errno(&e, "open %s", "x") == ERR_IO);
    assert_string_equal(e.text, "open x: No such file or directory");
    errno = 123456;
    (void)err_errno(&e, "open");
    assert_string_equal(e.text, "open: unknown error");
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    struct error e = { 0 };
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)err_set(&e, ERR_INVALID, "%s", text);
    CHECK("text", strlen(e.text) == sizeof(e.text) - 1);
    (void)err_wrap(&e, ERR_INVALID, "%s", text);
    CHECK("wrapped text", strlen(e.text) == sizeof(e.text) - 1);
    (void)err_wrap(&e, ERR_INVALID, "short");
    CHECK("a short prefix survives", strncmp(e.text, "short: xxx", 10) == 0);
    (void)err_field(&e, text, "no");
    CHECK("field", strlen(e.field) == sizeof(e.field) - 1);
}

static void test_every_code_has_a_name(void **state)
{
    (void)state;
    for (enum err code = ERR_OK; code < ERR_COUNT; code++) {
        CHECK("named", err_name(code) != NULL && strcmp(err_name(code), "unknown") != 0);
        for (enum err other = ERR_OK; other < code; other++)
            CHECK("unique", strcmp(err_name(code), err_name(other)) != 0);
    }
    assert_string_equal(err_name(ERR_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_field_and_cause),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_null_is_fine),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_every_code_has_a_name),
    };
    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
