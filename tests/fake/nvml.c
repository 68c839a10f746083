/*
 * A libnvidia-ml.so.1 without hardware, for tests. What it tells stands in the file $FAKE_NVML, see
 * script.h:
 *
 *   * count N         devices (2)             N lost 1        every call answers "GPU is lost"
 *   * init CODE       what nvmlInit answers   N ecc COUNT     uncorrected errors
 *   N name TEXT       (NVIDIA H100 80GB HBM3) N mig COUNT     in MIG mode, with so many instances
 *   N memory MIB      (81559)                 N pid PID       a process, N pid_mib MIB its memory
 *   N used MIB        in use                  N bus HEX       bus number (0x10 + N)
 *   N util, N temp, N power                   N xid NUMBER    each such line is one event
 *   N hang FIFO       to ask for its memory takes until somebody has closed the other end of that
 *
 * Declared from NVIDIA's public documentation on its own, not from the agent's header: a mistake
 * would have to be made twice.
 */
#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "fake/script.h"

typedef int result;
typedef struct device *device_t;
typedef struct set *set_t;

enum {
    OK = 0,
    INVALID = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    TIMEOUT = 10,
    LOST = 15
};
enum { DEVICES = 16, INSTANCES = 7 };

struct device {
    int index;    /* of the device on the bus */
    int instance; /* -1: all of it */
};
struct set {
    int events_seen;
};
struct memory {
    unsigned long long total, free, used;
};
struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};
struct utilisation {
    unsigned gpu, memory;
};
struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
struct event {
    device_t device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(struct memory) == 24, "nvmlMemory_t");
static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");
static_assert(sizeof(struct process) == 24, "nvmlProcessInfo_t");
static_assert(sizeof(struct event) == 32, "nvmlEventData_t");

static struct device devices[DEVICES];
static struct device instances[DEVICES][INSTANCES];

/* Exported names are declared nowhere else. */
#define EXPORT(name, ...)                                                                          \
    result name(__VA_ARGS__);                                                                      \
    result name(__VA_ARGS__)

static long long number_of(int device, const char *key, long long usual)
{
    return script_number("FAKE_NVML", device, key, usual);
}

static result check(const struct device *device)
{
    if (device == NULL || device->index >= number_of(-1, "count", 2))
        return INVALID;
    return number_of(device->index, "lost", 0) != 0 ? LOST : OK;
}

EXPORT(nvmlInit_v2, void)
{
    for (int i = 0; i < DEVICES; i++) {
        devices[i] = (struct device){ i, -1 };
        for (int k = 0; k < INSTANCES; k++)
            instances[i][k] = (struct device){ i, k };
    }
    return (result)number_of(-1, "init", OK);
}

EXPORT(nvmlShutdown, void)
{
    return OK;
}

/* NOLINTBEGIN(readability-identifier-naming): the vendor's name */
const char *nvmlErrorString(result code);
const char *nvmlErrorString(result code)
/* NOLINTEND(readability-identifier-naming) */
{
    return code == OK     ? "Success"
           : code == LOST ? "GPU is lost"
           : code == 9    ? "Driver Not Loaded"
                          : "Error";
}

EXPORT(nvmlSystemGetDriverVersion, char *out, unsigned size)
{
    (void)snprintf(out, size, "580.65.06");
    return OK;
}

EXPORT(nvmlDeviceGetCount_v2, unsigned *count)
{
    *count = (unsigned)number_of(-1, "count", 2);
    return OK;
}

EXPORT(nvmlDeviceGetHandleByIndex_v2, unsigned index, device_t *out)
{
    if (index >= DEVICES)
        return INVALID;
    *out = &devices[index];
    return check(*out);
}

EXPORT(nvmlDeviceGetName, device_t device, char *out, unsigned size)
{
    result code = check(device);
    if (code != OK)
        return code;
    struct script_wanted wanted = script_text("FAKE_NVML", device->index, "name");
    (void)snprintf(out, size, "%s%s",
                   wanted.value[0] != '\0' ? wanted.value : "NVIDIA H100 80GB HBM3",
                   device->instance >= 0 ? " MIG 1g.10gb" : "");
    return OK;
}

EXPORT(nvmlDeviceGetUUID, device_t device, char *out, unsigned size)
{
    result code = check(device);
    if (code != OK)
        return code;
    (void)snprintf(out, size, "%s-00000000-0000-0000-%04x-%012x",
                   device->instance >= 0 ? "MIG" : "GPU", (unsigned)(device->instance + 1),
                   (unsigned)device->index);
    return OK;
}

EXPORT(nvmlDeviceGetMinorNumber, device_t device, unsigned *minor)
{
    *minor = (unsigned)device->index;
    return check(device);
}

/* Until the other end was opened and closed. */
static void hang(int device)
{
    char byte;
    struct script_wanted wanted = script_text("FAKE_NVML", device, "hang");
    int fd = wanted.value[0] != '\0' ? open(wanted.value, O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && read(fd, &byte, 1) > 0)
        ;
    if (fd >= 0)
        (void)close(fd);
}

EXPORT(nvmlDeviceGetMemoryInfo, device_t device, struct memory *out)
{
    result code = check(device);
    if (code != OK)
        return code;
    hang(device->index);
    unsigned long long mib = 1024 * 1024;
    out->total = (unsigned long long)number_of(device->index, "memory", 81559) * mib;
    if (device->instance >= 0)
        out->total /= INSTANCES;
    out->used = (unsigned long long)number_of(device->index, "used", 0) * mib;
    out->free = out->total - out->used;
    return OK;
}

EXPORT(nvmlDeviceGetPciInfo_v3, device_t device, struct pci *out)
{
    result code = check(device);
    if (code != OK)
        return code;
    memset(out, 0, sizeof(*out));
    out->bus = (unsigned)number_of(device->index, "bus", 0x10 + device->index) & 0xff;
    (void)snprintf(out->text, sizeof(out->text), "00000000:%02X:00.0", out->bus);
    return OK;
}

EXPORT(nvmlDeviceGetUtilizationRates, device_t device, struct utilisation *out)
{
    *out = (struct utilisation){ (unsigned)number_of(device->index, "util", 0), 0 };
    return device->instance >= 0 ? NOT_SUPPORTED : check(device);
}

EXPORT(nvmlDeviceGetTemperature, device_t device, int sensor, unsigned *out)
{
    *out = (unsigned)number_of(device->index, "temp", 35);
    return sensor != 0 ? INVALID : check(device);
}

EXPORT(nvmlDeviceGetPowerUsage, device_t device, unsigned *out)
{
    *out = (unsigned)number_of(device->index, "power", 70000);
    return check(device);
}

EXPORT(nvmlDeviceGetComputeRunningProcesses_v3, device_t device, unsigned *count,
       struct process *out)
{
    result code = check(device);
    if (code != OK)
        return code;
    unsigned room = *count;
    unsigned pid = (unsigned)number_of(device->index, "pid", 0);
    *count = pid != 0;
    if (pid == 0)
        return OK;
    if (room < 1)
        return TOO_SMALL;
    out[0] =
        (struct process){ pid, (unsigned long long)number_of(device->index, "pid_mib", 0) << 20,
                          ~0u, ~0u };
    return OK;
}

EXPORT(nvmlDeviceGetTotalEccErrors, device_t device, int type, int counter, unsigned long long *out)
{
    (void)counter;
    *out = type == 1 ? (unsigned long long)number_of(device->index, "ecc", 0) : 0;
    return check(device);
}

EXPORT(nvmlDeviceGetMigMode, device_t device, unsigned *current, unsigned *pending)
{
    *current = number_of(device->index, "mig", 0) != 0;
    *pending = *current;
    return check(device);
}

EXPORT(nvmlDeviceGetMaxMigDeviceCount, device_t device, unsigned *count)
{
    *count = INSTANCES;
    return check(device);
}

EXPORT(nvmlDeviceGetMigDeviceHandleByIndex, device_t device, unsigned index, device_t *out)
{
    if (index >= INSTANCES)
        return INVALID;
    if ((long long)index >= number_of(device->index, "mig", 0))
        return NOT_FOUND;
    *out = &instances[device->index][index];
    return check(device);
}

EXPORT(nvmlDeviceGetGpuInstanceId, device_t device, unsigned *out)
{
    *out = (unsigned)device->instance + 1;
    return device->instance < 0 ? NOT_FOUND : check(device);
}

EXPORT(nvmlDeviceGetComputeInstanceId, device_t device, unsigned *out)
{
    *out = 0;
    return device->instance < 0 ? NOT_FOUND : check(device);
}

EXPORT(nvmlEventSetCreate, set_t *out)
{
    *out = calloc(1, sizeof(**out));
    return *out != NULL ? OK : INVALID;
}

EXPORT(nvmlEventSetFree, set_t set)
{
    free(set);
    return OK;
}

EXPORT(nvmlDeviceGetSupportedEventTypes, device_t device, unsigned long long *out)
{
    *out = 0x8 | 0x2 | 0x1;
    return check(device);
}

EXPORT(nvmlDeviceRegisterEvents, device_t device, unsigned long long types, set_t set)
{
    (void)set;
    return types == 0 ? INVALID : check(device);
}

/* The xid lines, in order. */
struct xids {
    int skip;
    int device; /* of the first that is not skipped; -1 none */
    unsigned long long code;
};

static void find_xid(void *context, int device, const char *key, const char *value)
{
    struct xids *xids = context;
    if (strcmp(key, "xid") != 0 || device < 0 || device >= DEVICES || xids->device >= 0)
        return;
    if (xids->skip-- > 0)
        return;
    xids->device = device;
    xids->code = strtoull(value, NULL, 0);
}

EXPORT(nvmlEventSetWait_v2, set_t set, struct event *out, unsigned timeout_ms)
{
    (void)timeout_ms; /* nothing happens while one waits: the script is written by the caller */
    struct xids xids = { .skip = set->events_seen, .device = -1 };
    script_read("FAKE_NVML", find_xid, &xids);
    if (xids.device < 0)
        return TIMEOUT;
    set->events_seen++;
    *out = (struct event){ &devices[xids.device], 0x8, xids.code, ~0u, ~0u };
    return OK;
}
