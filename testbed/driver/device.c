/* What a card or MIG device is: names, numbers, memory. Nothing here changes anything. */
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "migname.h"

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    CALL(READ, device, CARD | MIG, name != NULL);
    const char *card = card_model(call.card)->driver_name;
    if (call.on.kind == CARD)
        return call_end(&call, call_text(name, length, card));
    char text[128], kind[MIG_NAME_LENGTH];
    migname_of(&call.on, kind);
    snprintf(text, sizeof text, "%s MIG %s", card, kind);
    return call_end(&call, call_text(name, length, text));
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor_number)
{
    CALL(READ, device, CARD, minor_number != NULL);
    *minor_number = call.card->minor;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    CALL(READ, device, CARD, serial != NULL);
    return call_end(&call, call_text(serial, length, call.card->serial_number));
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    CALL(READ, device, CARD | MIG, major != NULL && minor != NULL);
    *major = (int)card_model(call.card)->major;
    *minor = (int)card_model(call.card)->minor;
    return call_end(&call, NVML_SUCCESS);
}

/* NVML's architectures, by compute capability. */
static unsigned int architecture_of(const struct model *model)
{
    static const struct {
        unsigned int major, minor, architecture;
    } table[] = {{12, 0, 10}, {10, 0, 10}, {9, 0, 9}, {8, 9, 8}, {8, 0, 7},
                 {7, 5, 6},   {7, 0, 5},   {6, 0, 4}, {5, 0, 3}, {3, 0, 2}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (model->major == table[i].major && model->minor >= table[i].minor)
            return table[i].architecture;
    return 0xFFFFFFFF;
}

EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture)
{
    CALL(READ, device, CARD | MIG, architecture != NULL);
    *architecture = architecture_of(card_model(call.card));
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand)
{
    CALL(READ, device, CARD | MIG, brand != NULL);
    *brand = card_model(call.card)->brand;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t *mode)
{
    CALL(READ, device, CARD, mode != NULL);
    *mode = call.card->passthrough ? NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH : NVML_GPU_VIRTUALIZATION_MODE_NONE;
    return call_end(&call, NVML_SUCCESS);
}

struct memory {
    unsigned long long total, used;
};

/* Of a card all of it, and what its processes hold; of a MIG device its GPU instance's, shared by those in it. */
static struct memory memory_of(const struct target *target)
{
    const unsigned long long mib = 1024 * 1024;
    struct memory memory = {.total = card_model(target->card)->memory_mib * mib};
    if (target->kind == MIG)
        memory.total = instance_profile(target->card, target->gpu_instance)->memory_mib * mib;
    for (unsigned int i = 0; i < MAX_PROCESSES; i++) {
        const struct process *process = &target->card->processes[i];
        if (process->pid != 0 && (target->kind == CARD || process->gpu_instance == target->gpu_instance->id))
            memory.used += process->memory;
    }
    if (memory.used > memory.total)
        memory.used = memory.total;
    return memory;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *info)
{
    CALL(READ, device, CARD | MIG, info != NULL);
    const struct memory memory = memory_of(&call.on);
    *info = (nvmlMemory_t){.total = memory.total, .free = memory.total - memory.used, .used = memory.used};
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *info)
{
    CALL(READ, device, CARD | MIG, info != NULL);
    if (info->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return call_end(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    const struct memory memory = memory_of(&call.on);
    info->total = memory.total;
    info->reserved = 0;
    info->free = memory.total - memory.used;
    info->used = memory.used;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
    CALL(READ, device, CARD, mode != NULL);
    if (mode->version != NVML_STRUCT_VERSION(nvmlDeviceAddressingMode_t, 1))
        return call_end(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (call.machine->addressing == ADDRESSING_UNSERVED)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    mode->value = call.machine->addressing - ADDRESSING_NONE;
    return call_end(&call, NVML_SUCCESS);
}
