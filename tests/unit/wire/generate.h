/* generate.h - random structs out of the same tables that encode and decode them. */
#ifndef TESTS_UNIT_WIRE_GENERATE_H
#define TESTS_UNIT_WIRE_GENERATE_H

#include "wire/schema.h"

/* Fills a zeroed struct within the bounds of its table; memory comes from the arena. */
void generate(uint64_t *seed, const struct schema *schema, struct arena *arena, void *object);

#endif
