/* The numbers of kept answers: the newest of a key counts, and what has expired goes. */
#include "engine/answers.h"
#include "unit/test.h"

enum { MANY = 5000 };

static struct store_answer make(uint64_t number, uint64_t key, int64_t expires_ns)
{
    struct store_answer answer = { .number = number, .expires = { expires_ns } };
    uint64_t random = key;
    for (size_t i = 0; i < sizeof(answer.key.bytes); i++)
        answer.key.bytes[i] = (uint8_t)test_random(&random);
    return answer;
}

static void put(struct answers *answers, uint64_t number, uint64_t key, int64_t expires_ns,
                int64_t now_ns)
{
    struct store_answer answer = make(number, key, expires_ns);
    answers_put(answers, &answer, (struct wall){ now_ns });
}

static uint64_t number(const struct answers *answers, uint64_t key)
{
    struct store_answer answer = make(0, key, 0);
    return answers_number(answers, &answer.key);
}

static void test_many(void **state)
{
    (void)state;
    struct answers *answers = answers_new();
    CHECK("empty", number(answers, 1) == 0 && answers_next_number(answers) == 1);
    for (uint64_t i = 1; i <= MANY; i++)
        put(answers, i, i, 1000, 0);
    for (uint64_t i = 1; i <= MANY; i++)
        CHECK("found", number(answers, i) == i);
    CHECK("unknown", number(answers, MANY + 1) == 0);
    CHECK("numbers go on", answers_next_number(answers) == MANY + 1);
    put(answers, MANY + 1, 7, 1000, 0);
    CHECK("the newest counts", number(answers, 7) == MANY + 1);
    answers_free(answers);
}

static void test_generations(void **state)
{
    (void)state;
    struct answers *answers = answers_new();
    put(answers, 1, 1, 100, 0);
    put(answers, 2, 2, 200, 50);
    CHECK("both", number(answers, 1) == 1 && number(answers, 2) == 2);
    put(answers, 3, 2, 250, 150); /* the same key in both generations */
    CHECK("young before old", number(answers, 2) == 3);
    /* Each is kept at least until it expires, whatever comes. */
    for (uint64_t i = 4; i < MANY; i++) {
        int64_t now_ns = (int64_t)i * 10;
        put(answers, i, i, now_ns + 100, now_ns);
        for (uint64_t back = 0; back < 10 && i - back >= 4; back++)
            CHECK("not expired", number(answers, i - back) == i - back);
    }
    CHECK("the old ones are gone", number(answers, 1) == 0 && number(answers, 2) == 0);
    CHECK("numbers are not used again", answers_next_number(answers) == MANY);
    answers_free(answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_generations),
    };
    return cmocka_run_group_tests_name("engine answers", tests, NULL, NULL);
}
