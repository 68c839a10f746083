/* json.c - what the cursor takes, jansson takes, and the other way round; but for ranges
 * and NULs. */
#include <stdlib.h>
#include <string.h>

#include "wire/json_cursor.h"
#include "wire/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct json_cursor c = json_cursor_of(text);
    struct str value;
    json_error_t why = { 0 };
    if (size == 0 || memchr(data, '\0', size) != NULL)
        return 0;

    bool ours = json_cursor_skip(&c, &value) && json_cursor_end(&c);
    json_t *json = json_loadb(text.data, size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);
    bool theirs = json != NULL;
    bool is_about_range = !theirs && json_error_code(&why) == json_error_numeric_overflow;
    bool is_about_depth =
        ours != theirs && strstr(c.problem != NULL ? c.problem : "", "deep") != NULL;

    json_decref(json);
    if (ours != theirs && !is_about_range && !is_about_depth)
        abort();
    return 0;
}
