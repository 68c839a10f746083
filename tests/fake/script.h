/*
 * script.h - what a fake library of a vendor tells: a file that an environment variable names, read
 * again at each call, so that a test can break a device while the agent looks on. Lines are "DEVICE
 * KEY VALUE", DEVICE being a number or "*"; the last line that fits counts.
 */
#ifndef TESTS_FAKE_SCRIPT_H
#define TESTS_FAKE_SCRIPT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPT_LINE = 256 };

/* Calls `each` for every line; `device` is -1 for "*". */
typedef void script_fn(void *context, int device, const char *key, const char *value);

static inline void script_read(const char *variable, script_fn *each, void *context)
{
    const char *path = getenv(variable); /* NOLINT(concurrency-mt-unsafe): one thread */
    FILE *script = path != NULL ? fopen(path, "re") : NULL;
    char line[SCRIPT_LINE];
    while (script != NULL && fgets(line, sizeof(line), script) != NULL) {
        char number[16];
        char key[32];
        int used = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%15s %31s %n", number, key, &used) != 2 || used == 0)
            continue;
        each(context, number[0] == '*' ? -1 : (int)strtol(number, NULL, 10), key, line + used);
    }
    if (script != NULL)
        (void)fclose(script);
}

struct script_wanted {
    int device;
    const char *key;
    char value[SCRIPT_LINE];
};

static inline void script_match(void *context, int device, const char *key, const char *value)
{
    struct script_wanted *wanted = context;
    if ((device == -1 || device == wanted->device) && strcmp(key, wanted->key) == 0)
        (void)snprintf(wanted->value, sizeof(wanted->value), "%s", value);
}

/* "" when no line fits. */
static inline struct script_wanted script_text(const char *variable, int device, const char *key)
{
    struct script_wanted wanted = { .device = device, .key = key };
    script_read(variable, script_match, &wanted);
    return wanted;
}

static inline long long script_number(const char *variable, int device, const char *key,
                                      long long usual)
{
    struct script_wanted wanted = script_text(variable, device, key);
    return wanted.value[0] != '\0' ? strtoll(wanted.value, NULL, 0) : usual;
}

#endif
