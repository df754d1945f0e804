/* GPU instances: created at a place of their profile, listed, destroyed. */
#include <stdlib.h>

#include "call.h"
#include "gpuprofile.h"

/* The id an instance gets from its place: the halves of halves of a card, counted from the whole. */
static uint32_t id_of(const struct model *model, const struct profile *profile, unsigned int start)
{
    return model->slices / profile->size - 1 + start / profile->size;
}

static nvmlReturn_t create(struct call *call, unsigned int number, unsigned int start, nvmlGpuInstance_t *created)
{
    struct card *card = call->card;
    for (unsigned int slot = 0; slot < MAX_GPU_INSTANCES; slot++) {
        struct gpu_instance *instance = &card->instances[slot];
        if (instance->serial != 0)
            continue;
        *instance = (struct gpu_instance){
            .serial = call->machine->serials++,
            .id = id_of(card_model(card), &card_model(card)->profiles[number], start),
            .profile = number,
            .start = start,
        };
        call->machine->layout++;
        call->on.gpu_instance = instance;
        *created = handle_make(GPU_INSTANCE, &call->on);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

/* At the lowest start that is free. */
EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *created)
{
    CALL(CHANGE, device, CARD, created != NULL);
    if (!call.card->mig)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    const int number = gpuprofile_by_id(call.machine, call.card, id);
    if (number < 0)
        return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    const struct profile *profile = &card_model(call.card)->profiles[number];
    for (unsigned int i = 0; i < profile->starts_count; i++)
        if (gpuprofile_fits(call.card, (unsigned int)number, profile->starts[i]))
            return call_end(&call, create(&call, (unsigned int)number, profile->starts[i], created));
    return call_end(&call, NVML_ERROR_INSUFFICIENT_RESOURCES);
}

EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                             const nvmlGpuInstancePlacement_t *placement,
                                                             nvmlGpuInstance_t *created)
{
    CALL(CHANGE, device, CARD, placement != NULL && created != NULL);
    if (!call.card->mig)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    const int number = gpuprofile_by_id(call.machine, call.card, id);
    if (number < 0)
        return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    const struct profile *profile = &card_model(call.card)->profiles[number];
    for (unsigned int i = 0; i < profile->starts_count; i++) {
        if (profile->starts[i] != placement->start || profile->size != placement->size)
            continue;
        if (!gpuprofile_fits(call.card, (unsigned int)number, placement->start))
            return call_end(&call, NVML_ERROR_INSUFFICIENT_RESOURCES);
        return call_end(&call, create(&call, (unsigned int)number, placement->start, created));
    }
    return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
}

/* Not while a compute instance is in it, nor while the card is held by a client that nobody sees. */
EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    CALL(CHANGE, instance, GPU_INSTANCE, true);
    struct gpu_instance *gone = call.on.gpu_instance;
    bool used = call.card->fault == FAULT_IN_USE || card_runs(call.card, gone->id, NVML_NO_INSTANCE);
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++)
        used |= gone->computes[i].serial != 0;
    if (used)
        return call_end(&call, NVML_ERROR_IN_USE);
    *gone = (struct gpu_instance){0};
    call.machine->layout++;
    return call_end(&call, NVML_SUCCESS);
}

/* The instances of a profile; the caller's buffer holds as many as the profile allows. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances,
                                              unsigned int *count)
{
    CALL(PRIVILEGED, device, CARD, instances != NULL && count != NULL);
    const int number = gpuprofile_by_id(call.machine, call.card, id);
    if (!call.card->mig || number < 0)
        return call_end(&call, number < 0 && call.card->mig ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED);
    *count = 0;
    for (uint32_t gi = 0; gi < GPU_INSTANCE_IDS; gi++) {
        call.on.gpu_instance = card_instance(call.card, gi);
        if (call.on.gpu_instance != NULL && call.on.gpu_instance->profile == (uint32_t)number)
            instances[(*count)++] = handle_make(GPU_INSTANCE, &call.on);
    }
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance)
{
    CALL(PRIVILEGED, device, CARD, instance != NULL);
    if (!call.card->mig)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    call.on.gpu_instance = card_instance(call.card, id);
    if (call.on.gpu_instance == NULL)
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    *instance = handle_make(GPU_INSTANCE, &call.on);
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    CALL(READ, instance, GPU_INSTANCE, info != NULL);
    const struct profile *profile = instance_profile(call.card, call.on.gpu_instance);
    *info = (nvmlGpuInstanceInfo_t){
        .device = handle_make(CARD, &call.on),
        .id = call.on.gpu_instance->id,
        .profileId = profile->id,
        .placement = {.start = call.on.gpu_instance->start, .size = profile->size},
    };
    return call_end(&call, NVML_SUCCESS);
}
