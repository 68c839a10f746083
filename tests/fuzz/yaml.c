/* yaml.c - manifests. */
#include "wire/yaml.h"

#include "wire/spec_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(json) json_t *documents = NULL;

    if (yaml_read((struct str){ (const char *)data, size }, &documents, NULL) != ERR_OK)
        return 0;
    for (size_t i = 0; i < json_array_size(documents); i++) {
        struct workload_spec spec = { 0 };
        (void)!schema_decode(&workload_spec_schema, json_array_get(documents, i), UNKNOWN_REFUSED,
                             &arena, &spec, NULL);
    }
    return 0;
}
