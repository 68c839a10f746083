/* random.h - entropy from the kernel. It cannot fail once the machine has booted. */
#ifndef OS_RANDOM_H
#define OS_RANDOM_H

#include "base/id.h"

void random_bytes(void *out, size_t size);
uint64_t random_u64(void);

/* Uniform in 0..bound-1, without the bias of a remainder. `bound` is not 0. */
uint64_t random_below(uint64_t bound);

/* Never the none id. */
struct id random_id(void);

#endif
