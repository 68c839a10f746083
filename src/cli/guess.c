#include "cli/guess.h"

#include <stdio.h>
#include <string.h>

#include "cli/safe.h"

enum { WORD_MAX = 64 };

/* Letters missing, added, wrong, or swapped with their neighbour. Words of at most
 * WORD_MAX letters. */
static size_t distance_of(struct str a, struct str b)
{
    size_t rows[3][WORD_MAX + 1];
    for (size_t k = 0; k <= b.size; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a.size; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i - 1) % 3];
        now[0] = i;
        for (size_t k = 1; k <= b.size; k++) {
            bool is_same = a.data[i - 1] == b.data[k - 1];
            size_t least = MIN_OF(before[k], now[k - 1]) + 1;
            least = MIN_OF(least, before[k - 1] + !is_same);
            if (i > 1 && k > 1 && a.data[i - 1] == b.data[k - 2] && a.data[i - 2] == b.data[k - 1])
                least = MIN_OF(least, rows[(i - 2) % 3][k - 2] + 1);
            now[k] = least;
        }
    }
    return rows[a.size % 3][b.size];
}

void guess_try(struct guess *guess, const char *candidate)
{
    struct str word = str_of(guess->word);
    struct str other = str_of(candidate);
    if (word.size == 0 || other.size == 0 || word.size > WORD_MAX || other.size > WORD_MAX)
        return;
    size_t most = (MAX_OF(word.size, other.size) + 1) / 3; /* of five letters two */
    size_t distance = distance_of(word, other);
    /* The beginning of a word, or more than the word, is a slip as well. */
    if (word.size >= 3 && (str_starts(other, word) || str_starts(word, other)))
        distance = MIN_OF(distance, most);
    if (distance == 0 || distance > most || (guess->best != NULL && distance >= guess->distance))
        return;
    guess->best = candidate;
    guess->distance = distance;
}

const char *guess_hint(struct cli *cli, const struct guess *guess)
{
    return guess->best == NULL ? "" : arena_format(&cli->arena, "; did you mean %s?", guess->best);
}

/* ---- names that the controller knows --------------------------------------------------------- */

static const struct {
    const char *kind; /* as refusals call it */
    const char *list;
    const char *field;
} known[] = {
    { "class", "/v1/classes?limit=1000", "name" },
    { "image", "/v1/images?limit=1000", "name" },
    { "node", "/v1/nodes?limit=1000", "name" },
    { "pool", "/v1/pools?limit=1000", "name" },
    { "profile", "/v1/profiles?limit=1000", "name" },
    { "project", "/v1/projects?limit=1000", "path" },
    { "reservation", "/v1/reservations?limit=1000", "name" },
    { "tenant", "/v1/tenants?limit=1000", "path" },
    { "volume", "/v1/volumes?limit=1000", "name" },
    { "workload", "/v1/workloads?limit=1000", "name" },
};

/* Of `there is no KIND "WORD"`. False: it is no such text. */
static bool refused_name(const char *text, struct str *kind, struct str *word)
{
    static const char head[] = "there is no ";
    const char *at = strstr(text, head);
    const char *quote = at != NULL ? strstr(at, " \"") : NULL;
    const char *end = quote != NULL ? strchr(quote + 2, '"') : NULL;
    if (end == NULL)
        return false;
    at += strlen(head);
    *kind = (struct str){ at, (size_t)(quote - at) };
    *word = (struct str){ quote + 2, (size_t)(end - quote) - 2 };
    return true;
}

static void guess_among(struct cli *cli, size_t row, struct guess *guess)
{
    AUTO(json) json_t *list = NULL;
    if (cli_list(cli, known[row].list, &list, NULL) != ERR_OK)
        return; /* not this person's to see */
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        guess_try(guess, json_string_value(json_object_get(item, known[row].field)));
    }
    guess->best = guess->best != NULL ? str_c(&cli->arena, str_of(guess->best)) : NULL;
}

enum cli_exit cli_refused(struct cli *cli, const struct error *e)
{
    struct str kind = { 0 };
    struct str word = { 0 };
    enum cli_exit status = cli_fail(e);
    if (cli->is_quiet || !refused_name(e->text, &kind, &word))
        return status;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        struct guess guess = { .word = str_c(&cli->arena, word) };
        AUTO(buf) struct buf safe = { 0 };
        if (!str_is(kind, known[i].kind))
            continue;
        guess_among(cli, i, &guess);
        safe_line(str_of(guess.best), &safe);
        if (guess.best != NULL)
            (void)fprintf(stderr, "berth: did you mean %.*s?\n", STR_ARG(buf_str(&safe)));
    }
    return status;
}
