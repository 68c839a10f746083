/* sample.h - a grant in which every field has a value of its own. */
#ifndef TESTS_UNIT_AGENT_SAMPLE_H
#define TESTS_UNIT_AGENT_SAMPLE_H

#include <string.h>

#include "wire/grant.h"

static inline struct grant sample_grant(uint64_t number)
{
    struct grant grant = {
        .allocation = { 1, number },
        .workload = { 2, number },
        .tenant = { 3, 3 },
        .attempt = 2,
        .member_rank = 1,
        .member_count = 4,
        .uid_base = 1000000,
        .uid_count = 65536,
        .cpu_milli = 1500,
        .memory_mib = 256,
        .pids_max = 100,
        .shm_mib = 32,
        .time_limit_s = 3600,
        .grace_s = 30,
        .on_contact_loss = GRANT_FENCE,
        .fence_after_s = 60,
        .device_count = 2,
        .volume_count = 1,
        .devices = { { 0, 1000, 0, 80000, 0 }, { 3, 500, 3, 40000, 0 } },
        .volumes = { { { 7, 8 }, true, { { 9 } } } },
    };
    memset(grant.image.bytes, 0x11, sizeof(grant.image.bytes));
    memset(grant.payload.bytes, 0x22, sizeof(grant.payload.bytes));
    memset(grant.upload.bytes, 0x33, sizeof(grant.upload.bytes));
    return grant;
}

#endif
