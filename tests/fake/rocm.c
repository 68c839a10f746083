/*
 * A librocm_smi64.so without hardware, for tests. What it tells stands in the file $FAKE_ROCM, see
 * script.h:
 *
 *   * count N         devices (2)              N lost 1       the device refuses everything
 *   * init CODE       what rsmi_init answers   N ecc COUNT    uncorrected errors
 *   N name TEXT       (AMD Instinct MI300X)    N pid PID      a process on it, N pid_mib MIB its memory
 *   N memory MIB      (196592)                 N bus HEX      bus number (0x10 + N)
 *   N used MIB        in use                   N id NUMBER    unique id (0x1000 + N); 0 none
 *   N util, N temp (C), N power (mW)           * code CODE    what listing processes answers
 *
 * and what no library should do:
 *
 *   N unended 1       the name fills its buffer, without a NUL; * unended 1: the version as well
 *   * listed N        says that it listed so many processes
 *
 * -DFAKE_ROCM_OLD leaves out what the driver can do without, -DFAKE_ROCM_BROKEN what it cannot.
 * Declared from AMD's public documentation on its own, not from the agent's file: a mistake
 * would have to be made twice.
 */
#include <assert.h>
#include <stdint.h>

#include "fake/script.h"

typedef int status;
enum { SUCCESS = 0, INVALID_ARGS = 1, NOT_SUPPORTED = 2, OUT_OF_BOUNDS = 7, NO_DATA = 14 };
enum { MEMORY_VRAM = 0, BLOCK_MEMORY = 1, BLOCK_LAST = 1 << 13, DEVICES = 256 };

typedef struct {
    uint64_t correctable_err;
    uint64_t uncorrectable_err;
} error_count;

typedef struct {
    uint32_t process_id;
    uint32_t pasid;
    uint64_t vram_usage;
    uint64_t sdma_usage;
    uint32_t cu_occupancy;
} process_info;
static_assert(sizeof(error_count) == 16, "rsmi_error_count_t");
static_assert(sizeof(process_info) == 32, "rsmi_process_info_t");

/* Exported names are declared nowhere else. */
#define EXPORT(name, ...)                                                                          \
    status name(__VA_ARGS__);                                                                      \
    status name(__VA_ARGS__)

static long long number_of(uint32_t device, const char *key, long long usual)
{
    return script_number("FAKE_ROCM", (int)device, key, usual);
}

static long long number_of_all(const char *key, long long usual)
{
    return script_number("FAKE_ROCM", -1, key, usual);
}

static status check(uint32_t device)
{
    if ((long long)device >= number_of_all("count", 2))
        return INVALID_ARGS;
    return number_of(device, "lost", 0) != 0 ? NO_DATA : SUCCESS;
}

static void put_text(char *out, size_t size, const char *text, long long is_unended)
{
    if (is_unended != 0)
        memset(out, 'x', size);
    else
        (void)snprintf(out, size, "%s", text);
}

EXPORT(rsmi_init, uint64_t flags)
{
    return flags != 0 ? INVALID_ARGS : (status)number_of_all("init", SUCCESS);
}

EXPORT(rsmi_shut_down, void)
{
    return SUCCESS;
}

EXPORT(rsmi_num_monitor_devices, uint32_t *count)
{
    *count = (uint32_t)number_of_all("count", 2);
    return SUCCESS;
}

EXPORT(rsmi_dev_name_get, uint32_t device, char *name, size_t size)
{
    status code = check(device);
    if (code != SUCCESS)
        return code;
    struct script_wanted wanted = script_text("FAKE_ROCM", (int)device, "name");
    put_text(name, size, wanted.value[0] != '\0' ? wanted.value : "AMD Instinct MI300X",
             number_of(device, "unended", 0));
    return SUCCESS;
}

EXPORT(rsmi_dev_pci_id_get, uint32_t device, uint64_t *bdfid)
{
    *bdfid = (uint64_t)number_of(device, "bus", 0x10 + (long long)device) << 8;
    return check(device);
}

EXPORT(rsmi_dev_memory_total_get, uint32_t device, int type, uint64_t *total)
{
    *total = (uint64_t)number_of(device, "memory", 196592) << 20;
    return type != MEMORY_VRAM ? INVALID_ARGS : check(device);
}

#ifndef FAKE_ROCM_BROKEN
EXPORT(rsmi_dev_memory_usage_get, uint32_t device, int type, uint64_t *used)
{
    *used = (uint64_t)number_of(device, "used", 0) << 20;
    return type != MEMORY_VRAM ? INVALID_ARGS : check(device);
}
#endif

#ifndef FAKE_ROCM_OLD
EXPORT(rsmi_dev_unique_id_get, uint32_t device, uint64_t *id)
{
    *id = (uint64_t)number_of(device, "id", 0x1000 + (long long)device);
    return check(device);
}

EXPORT(rsmi_version_str_get, int component, char *version, uint32_t size)
{
    put_text(version, size, "6.10.5", number_of_all("unended", 0));
    return component != 0 ? INVALID_ARGS : SUCCESS;
}

EXPORT(rsmi_dev_busy_percent_get, uint32_t device, uint32_t *percent)
{
    *percent = (uint32_t)number_of(device, "util", 0);
    return check(device);
}

EXPORT(rsmi_dev_temp_metric_get, uint32_t device, uint32_t sensor, int metric,
       int64_t *millidegrees)
{
    *millidegrees = (int64_t)number_of(device, "temp", 35) * 1000;
    return sensor != 0 || metric != 0 ? NOT_SUPPORTED : check(device);
}

EXPORT(rsmi_dev_power_ave_get, uint32_t device, uint32_t sensor, uint64_t *microwatts)
{
    *microwatts = (uint64_t)number_of(device, "power", 90000) * 1000;
    return sensor != 0 ? NOT_SUPPORTED : check(device);
}

/* Half of the errors are of the memory and half of the last block; the others count none. */
EXPORT(rsmi_dev_ecc_count_get, uint32_t device, uint64_t block, error_count *out)
{
    uint64_t all = (uint64_t)number_of(device, "ecc", 0);
    if (block != BLOCK_MEMORY && block != BLOCK_LAST)
        return NOT_SUPPORTED;
    *out = (error_count){ .correctable_err = 7,
                          .uncorrectable_err = block == BLOCK_LAST ? all / 2 : all - all / 2 };
    return check(device);
}

EXPORT(rsmi_compute_process_info_get, process_info *processes, uint32_t *count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < DEVICES && found < *count; i++) {
        long long pid = number_of(i, "pid", 0);
        if (pid != 0)
            processes[found++] =
                (process_info){ .process_id = (uint32_t)pid,
                                .vram_usage = (uint64_t)number_of(i, "pid_mib", 0) << 20 };
    }
    *count = (uint32_t)number_of_all("listed", found);
    return (status)number_of_all("code", SUCCESS);
}

EXPORT(rsmi_compute_process_gpus_get, uint32_t pid, uint32_t *devices, uint32_t *count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < DEVICES && found < *count; i++) {
        if ((uint32_t)number_of(i, "pid", 0) == pid && pid != 0)
            devices[found++] = i;
    }
    *count = found > 0 ? (uint32_t)number_of_all("listed", found) : 0;
    return found > 0 ? SUCCESS : NO_DATA;
}

EXPORT(rsmi_compute_process_info_by_device_get, uint32_t pid, uint32_t device, process_info *out)
{
    if ((uint32_t)number_of(device, "pid", 0) != pid)
        return NO_DATA;
    *out = (process_info){ .process_id = pid,
                           .vram_usage = (uint64_t)number_of(device, "pid_mib", 0) << 20 };
    return SUCCESS;
}
#endif
