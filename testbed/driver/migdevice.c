/* MIG devices: each compute instance seen as a device, counted in the order of GPU and compute instance ids. */
#include "call.h"
#include "computeprofile.h"
#include "uuid.h"

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    CALL(READ, device, CARD | MIG, is_mig != NULL);
    *is_mig = call.on.kind == MIG;
    return call_end(&call, NVML_SUCCESS);
}

/* How many there can be; 0 where MIG is not supported, or not enabled. */
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    CALL(READ, device, CARD, count != NULL);
    *count = call.card->mig ? card_model(call.card)->compute_slices : 0;
    return call_end(&call, NVML_SUCCESS);
}

struct search {
    unsigned int index;
    struct target found;
};

static bool is_next(struct target *target, void *context)
{
    struct search *search = context;
    search->found = *target;
    return search->index-- == 0;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    CALL(READ, device, CARD, mig != NULL);
    if (card_model(call.card)->profiles_count == 0)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    struct search search = {.index = index};
    if (!uuid_each_device(call.machine, call.on.slot, is_next, &search))
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    *mig = handle_make(MIG, &search.found);
    return call_end(&call, NVML_SUCCESS);
}

struct place {
    const struct target *of;
    unsigned int index;
};

static bool is_it(struct target *target, void *context)
{
    struct place *place = context;
    if (target->compute_instance == place->of->compute_instance)
        return true;
    place->index++;
    return false;
}

/* Of a card its place among those that are there, of a MIG device its place on its card. */
EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    CALL(READ, device, CARD | MIG, index != NULL);
    struct place place = {.of = &call.on};
    if (call.on.kind == MIG)
        uuid_each_device(call.machine, call.on.slot, is_it, &place);
    *index = call.on.kind == MIG ? place.index : call_index(call.machine, call.on.slot);
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    CALL(READ, mig, MIG, device != NULL);
    *device = handle_make(CARD, &call.on);
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    CALL(READ, mig, MIG, id != NULL);
    *id = call.on.gpu_instance->id;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    CALL(READ, mig, MIG, id != NULL);
    *id = call.on.compute_instance->id;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
{
    CALL(READ, mig, MIG, attributes != NULL);
    const struct profile *in = instance_profile(call.card, call.on.gpu_instance);
    nvmlComputeInstanceProfileInfo_t info;
    computeprofile_info(in, call.on.compute_instance->slices, &info);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = info.multiprocessorCount,
        .sharedCopyEngineCount = info.sharedCopyEngineCount,
        .sharedDecoderCount = info.sharedDecoderCount,
        .sharedEncoderCount = info.sharedEncoderCount,
        .sharedJpegCount = info.sharedJpegCount,
        .sharedOfaCount = info.sharedOfaCount,
        .gpuInstanceSliceCount = in->compute,
        .computeInstanceSliceCount = info.sliceCount,
        .memorySizeMB = in->memory_mib,
    };
    return call_end(&call, NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
    ALIAS(nvmlDeviceGetAttributes_v2);
