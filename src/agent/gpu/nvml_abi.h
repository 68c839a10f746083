/*
 * nvml_abi.h - the part of NVIDIA's management library that we call, declared by ourselves from its
 * public documentation: nothing of NVIDIA is needed to build. tests/gpu/run checks it on
 * real hardware.
 */
#ifndef AGENT_GPU_NVML_ABI_H
#define AGENT_GPU_NVML_ABI_H

enum nvml_code {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
};

enum {
    NVML_EVENT_DOUBLE_BIT_ECC = 0x2,
    NVML_EVENT_XID = 0x8,
    NVML_ECC_UNCORRECTED = 1,
    NVML_ECC_SINCE_BOOT = 0,
    NVML_SENSOR_GPU = 0,
    NVML_MIG_ENABLED = 1,
};

#define NVML_NO_INSTANCE  0xffffffffu
#define NVML_NOT_A_NUMBER 0xffffffffffffffffull

typedef void *nvml_device;
typedef void *nvml_event_set;

struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char bus_id[32];
};

struct nvml_utilisation {
    unsigned gpu;
    unsigned memory;
};

/* Of the calls whose name ends in _v2 and _v3. */
struct nvml_process {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance;
    unsigned compute_instance;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type;
    unsigned long long data;
    unsigned gpu_instance;
    unsigned compute_instance;
};

/* Members stand in the order of the table in nvml.c, which names the symbols. */
struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int code);
    int (*driver_version)(char *out, unsigned size);
    int (*device_count)(unsigned *count);
    int (*device_by_index)(unsigned index, nvml_device *device);
    int (*name)(nvml_device device, char *out, unsigned size);
    int (*uuid)(nvml_device device, char *out, unsigned size);
    int (*minor)(nvml_device device, unsigned *minor);
    int (*memory)(nvml_device device, struct nvml_memory *memory);
    int (*pci)(nvml_device device, struct nvml_pci *pci);
    /* What follows may be missing in an old library, or be refused by a device. */
    int (*utilisation)(nvml_device device, struct nvml_utilisation *utilisation);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*power)(nvml_device device, unsigned *milliwatts);
    int (*compute_processes)(nvml_device device, unsigned *count, struct nvml_process *processes);
    int (*graphics_processes)(nvml_device device, unsigned *count, struct nvml_process *processes);
    int (*ecc_errors)(nvml_device device, int type, int counter, unsigned long long *count);
    int (*mig_mode)(nvml_device device, unsigned *current, unsigned *pending);
    int (*mig_count)(nvml_device device, unsigned *count);
    int (*mig_by_index)(nvml_device device, unsigned index, nvml_device *instance);
    int (*gpu_instance)(nvml_device instance, unsigned *id);
    int (*compute_instance)(nvml_device instance, unsigned *id);
    int (*event_set_new)(nvml_event_set *set);
    int (*event_set_free)(nvml_event_set set);
    int (*event_types)(nvml_device device, unsigned long long *types);
    int (*event_register)(nvml_device device, unsigned long long types, nvml_event_set set);
    int (*event_wait)(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms);
};

#endif
