/* Compute instances: created in a GPU instance, listed, destroyed. Each is a MIG device, with a UUID of its own. */
#include <stdlib.h>
#include <sys/random.h>

#include "call.h"
#include "computeprofile.h"

/* A UUID of version 4. New with each instance, so that nobody can take one that was there for one that is. */
static bool make_uuid(unsigned char uuid[16])
{
    if (getrandom(uuid, 16, 0) != 16)
        return false;
    uuid[6] = (unsigned char)(0x40 | (uuid[6] & 0x0f));
    uuid[8] = (unsigned char)(0x80 | (uuid[8] & 0x3f));
    return true;
}

/* In the slot of the lowest free id. */
static nvmlReturn_t create(struct call *call, unsigned int slices, unsigned int start, nvmlComputeInstance_t *created)
{
    for (uint32_t id = 0; id < MAX_COMPUTE_INSTANCES; id++) {
        struct compute_instance *instance = &call->on.gpu_instance->computes[id];
        if (instance->serial != 0)
            continue;
        *instance = (struct compute_instance){.id = id, .slices = slices, .start = start};
        if (!make_uuid(instance->uuid))
            return NVML_ERROR_UNKNOWN;
        instance->serial = call->machine->serials++;
        call->machine->layout++;
        call->on.compute_instance = instance;
        *created = handle_make(COMPUTE_INSTANCE, &call->on);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned int id,
                                                         nvmlComputeInstance_t *created)
{
    CALL(CHANGE, instance, GPU_INSTANCE, created != NULL);
    const struct profile *in = instance_profile(call.card, call.on.gpu_instance);
    const unsigned int slices = computeprofile_slices(in, id);
    if (slices == 0)
        return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned int i = 0; i < computeprofile_count(in, slices); i++)
        if (computeprofile_fits(call.on.gpu_instance, slices, computeprofile_start(slices, i)))
            return call_end(&call, create(&call, slices, computeprofile_start(slices, i), created));
    return call_end(&call, NVML_ERROR_INSUFFICIENT_RESOURCES);
}

EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t instance, unsigned int id,
                                                                      const nvmlComputeInstancePlacement_t *placement,
                                                                      nvmlComputeInstance_t *created)
{
    CALL(CHANGE, instance, GPU_INSTANCE, placement != NULL && created != NULL);
    const struct profile *in = instance_profile(call.card, call.on.gpu_instance);
    const unsigned int slices = computeprofile_slices(in, id);
    for (unsigned int i = 0; slices != 0 && i < computeprofile_count(in, slices); i++) {
        if (computeprofile_start(slices, i) != placement->start || slices != placement->size)
            continue;
        if (!computeprofile_fits(call.on.gpu_instance, slices, placement->start))
            return call_end(&call, NVML_ERROR_INSUFFICIENT_RESOURCES);
        return call_end(&call, create(&call, slices, placement->start, created));
    }
    return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
}

/* Not while a process runs in it, nor while the card is held by a client that nobody sees. */
EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance)
{
    CALL(CHANGE, instance, COMPUTE_INSTANCE, true);
    struct compute_instance *gone = call.on.compute_instance;
    if (call.card->fault == FAULT_IN_USE || card_runs(call.card, call.on.gpu_instance->id, gone->id))
        return call_end(&call, NVML_ERROR_IN_USE);
    *gone = (struct compute_instance){0};
    call.machine->layout++;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned int id,
                                                       nvmlComputeInstance_t *instances, unsigned int *count)
{
    CALL(PRIVILEGED, instance, GPU_INSTANCE, instances != NULL && count != NULL);
    const unsigned int slices = computeprofile_slices(instance_profile(call.card, call.on.gpu_instance), id);
    if (slices == 0)
        return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    *count = 0;
    for (uint32_t ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
        call.on.compute_instance = instance_compute(call.on.gpu_instance, ci);
        if (call.on.compute_instance != NULL && call.on.compute_instance->slices == slices)
            instances[(*count)++] = handle_make(COMPUTE_INSTANCE, &call.on);
    }
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id,
                                                          nvmlComputeInstance_t *compute)
{
    CALL(PRIVILEGED, instance, GPU_INSTANCE, compute != NULL);
    call.on.compute_instance = instance_compute(call.on.gpu_instance, id);
    if (call.on.compute_instance == NULL)
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    *compute = handle_make(COMPUTE_INSTANCE, &call.on);
    return call_end(&call, NVML_SUCCESS);
}

static nvmlComputeInstanceInfo_t info_of(const struct target *on)
{
    return (nvmlComputeInstanceInfo_t){
        .device = handle_make(CARD, on),
        .gpuInstance = handle_make(GPU_INSTANCE, on),
        .id = on->compute_instance->id,
        .profileId = computeprofile_id(on->compute_instance->slices),
        .placement = {.start = on->compute_instance->start, .size = on->compute_instance->slices},
    };
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *info)
{
    CALL(READ, instance, COMPUTE_INSTANCE, info != NULL);
    *info = info_of(&call.on);
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_v1_t *info)
{
    CALL(READ, instance, COMPUTE_INSTANCE, info != NULL);
    const nvmlComputeInstanceInfo_t whole = info_of(&call.on);
    info->device = whole.device;
    info->gpuInstance = whole.gpuInstance;
    info->id = whole.id;
    info->profileId = whole.profileId;
    return call_end(&call, NVML_SUCCESS);
}
