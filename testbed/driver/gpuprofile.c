/* Profiles of GPU instances: what the API tells of them, and where they can be. */
#include "gpuprofile.h"

#include <stdio.h>
#include <string.h>

static bool offers(const struct machine *machine, const struct profile *profile)
{
    return machine_branch(machine) >= profile->min_branch;
}

int gpuprofile_by_id(const struct machine *machine, const struct card *card, unsigned int id)
{
    const struct model *model = card_model(card);
    for (unsigned int i = 0; i < model->profiles_count; i++)
        if (model->profiles[i].id == id && offers(machine, &model->profiles[i]))
            return (int)i;
    return -1;
}

unsigned int gpuprofile_present(const struct card *card, unsigned int profile)
{
    unsigned int present = 0;
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++)
        present += card->instances[i].serial != 0 && card->instances[i].profile == profile;
    return present;
}

/* A card has as many media engines as the profile that takes all of it. */
static bool has_engines(const struct card *card, const struct profile *more)
{
    const struct model *model = card_model(card);
    unsigned int decoders = more->scarce.decoders, ofas = more->scarce.ofas;
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
        if (card->instances[i].serial == 0)
            continue;
        decoders += instance_profile(card, &card->instances[i])->scarce.decoders;
        ofas += instance_profile(card, &card->instances[i])->scarce.ofas;
    }
    for (unsigned int i = 0; i < model->profiles_count; i++)
        if (model->profiles[i].size == model->slices)
            return decoders <= model->profiles[i].scarce.decoders && ofas <= model->profiles[i].scarce.ofas;
    return false;
}

bool gpuprofile_fits(const struct card *card, unsigned int number, unsigned int start)
{
    const struct profile *profile = &card_model(card)->profiles[number];
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const struct gpu_instance *other = &card->instances[i];
        if (other->serial != 0 && start < other->start + instance_profile(card, other)->size &&
            other->start < start + profile->size)
            return false;
    }
    return gpuprofile_present(card, number) < profile->count && has_engines(card, profile);
}

static void write_info(const struct profile *profile, nvmlGpuInstanceProfileInfo_t *info)
{
    *info = (nvmlGpuInstanceProfileInfo_t){
        .id = profile->id,
        .isP2pSupported = 0,
        .sliceCount = profile->compute,
        .instanceCount = profile->count,
        .multiprocessorCount = profile->engines.multiprocessors,
        .copyEngineCount = profile->engines.copy,
        .decoderCount = profile->engines.decoders,
        .encoderCount = profile->engines.encoders,
        .jpegCount = profile->engines.jpegs,
        .ofaCount = profile->engines.ofas,
        .memorySizeMB = profile->memory_mib,
    };
}

static const struct profile *by_kind(const struct call *call, unsigned int kind)
{
    const struct model *model = card_model(call->card);
    for (unsigned int i = 0; i < model->profiles_count; i++)
        if (model->profiles[i].enumerated == kind && offers(call->machine, &model->profiles[i]))
            return &model->profiles[i];
    return NULL;
}

/* Told of a card whether it is in MIG mode or not. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int kind,
                                                        nvmlGpuInstanceProfileInfo_t *info)
{
    CALL(READ, device, CARD, info != NULL && kind < NVML_GPU_INSTANCE_PROFILE_COUNT);
    const struct profile *profile = by_kind(&call, kind);
    if (profile != NULL)
        write_info(profile, info);
    return call_end(&call, profile == NULL ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS);
}

static nvmlReturn_t write_versioned(const struct profile *profile, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    nvmlGpuInstanceProfileInfo_v3_t *third = (nvmlGpuInstanceProfileInfo_v3_t *)info;
    nvmlGpuInstanceProfileInfo_t plain;
    const bool is_third = info->version == NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v3_t, 3);
    if (!is_third && info->version != NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (profile == NULL)
        return NVML_ERROR_NOT_SUPPORTED;
    write_info(profile, &plain);
    if (!is_third) {
        memcpy(&info->id, &plain, offsetof(nvmlGpuInstanceProfileInfo_t, memorySizeMB));
        info->memorySizeMB = plain.memorySizeMB;
        snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
        return NVML_SUCCESS;
    }
    third->id = plain.id;
    memcpy(&third->sliceCount, &plain.sliceCount,
           offsetof(nvmlGpuInstanceProfileInfo_t, memorySizeMB) - offsetof(nvmlGpuInstanceProfileInfo_t, sliceCount));
    third->memorySizeMB = plain.memorySizeMB;
    snprintf(third->name, sizeof third->name, "MIG %s", profile->name);
    third->capabilities = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int kind,
                                                         nvmlGpuInstanceProfileInfo_v2_t *info)
{
    CALL(READ, device, CARD, info != NULL && kind < NVML_GPU_INSTANCE_PROFILE_COUNT);
    return call_end(&call, write_versioned(by_kind(&call, kind), info));
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                             nvmlGpuInstanceProfileInfo_v2_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    const int profile = gpuprofile_by_id(call.machine, call.card, id);
    return call_end(&call, write_versioned(profile < 0 ? NULL : &card_model(call.card)->profiles[profile], info));
}

/* Every place the profile may have, whatever is there now; told whether the card is in MIG mode or not. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                                  nvmlGpuInstancePlacement_t *placements,
                                                                  unsigned int *count)
{
    CALL(PRIVILEGED, device, CARD, count != NULL);
    const int number = gpuprofile_by_id(call.machine, call.card, id);
    if (number < 0)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    const struct profile *profile = &card_model(call.card)->profiles[number];
    for (unsigned int i = 0; placements != NULL && i < profile->starts_count; i++)
        placements[i] = (nvmlGpuInstancePlacement_t){.start = profile->starts[i], .size = profile->size};
    *count = profile->starts_count;
    return call_end(&call, NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id,
                                                        nvmlGpuInstancePlacement_t *placements, unsigned int *count)
    ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements_v2);

/* How many more would fit: places of one profile do not overlap each other. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count)
{
    CALL(PRIVILEGED, device, CARD, count != NULL);
    const int number = gpuprofile_by_id(call.machine, call.card, id);
    if (number < 0 || !call.card->mig)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    struct card trial = *call.card;
    const struct profile *profile = &card_model(&trial)->profiles[number];
    *count = 0;
    for (unsigned int i = 0; i < profile->starts_count; i++) {
        if (!gpuprofile_fits(&trial, (unsigned int)number, profile->starts[i]))
            continue;
        for (unsigned int slot = 0; slot < MAX_GPU_INSTANCES; slot++)
            if (trial.instances[slot].serial == 0) {
                trial.instances[slot] = (struct gpu_instance){
                    .serial = 1, .profile = (uint32_t)number, .start = profile->starts[i]};
                break;
            }
        ++*count;
    }
    return call_end(&call, NVML_SUCCESS);
}
