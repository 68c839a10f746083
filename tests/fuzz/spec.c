/* spec.c - the JSON of a workload, as a stranger sends it. */
#include <stdlib.h>

#include "wire/spec_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena arena = { 0 };
    struct workload_spec spec = { 0 };
    struct workload_spec again = { 0 };
    struct str body = { (const char *)data, size };

    if (spec_decode(&workload_spec_schema, body, &arena, &spec, NULL) != ERR_OK)
        return 0;
    struct str first = workload_spec_canonical(&spec, &arena);
    if (workload_spec_parse(first, &arena, &again, NULL) != ERR_OK)
        abort();
    if (!str_eq(first, workload_spec_canonical(&again, &arena)))
        abort();
    return 0;
}
