/* Profiles of compute instances (MIG user guide: 1c, 2c, 3c, 4c and 7c of 7g; 1c, 2c, 4c of 4g; and so on). */
#include "computeprofile.h"

#include <stdio.h>
#include <string.h>

#include "migname.h"

static const unsigned int slices_of[NVML_COMPUTE_INSTANCE_PROFILE_COUNT] = {1, 2, 3, 4, 7, 8, 6, 0, 0};

unsigned int computeprofile_id(unsigned int slices)
{
    unsigned int id = 0;
    while (slices_of[id] != slices)
        id++;
    return id;
}

unsigned int computeprofile_start(unsigned int slices, unsigned int number)
{
    return number * (slices == 3 ? 4 : slices); /* three slices take the place of four */
}

unsigned int computeprofile_count(const struct profile *in, unsigned int slices)
{
    unsigned int count = 0;
    while (computeprofile_start(slices, count) + slices <= in->compute)
        count++;
    return count;
}

unsigned int computeprofile_slices(const struct profile *in, unsigned int id)
{
    const unsigned int slices = id < NVML_COMPUTE_INSTANCE_PROFILE_COUNT ? slices_of[id] : 0;
    const bool known = slices != 0 && slices <= in->compute && !(in->compute == 4 && slices == 3);
    return known && (slices <= 4 || slices == in->compute) ? slices : 0;
}

bool computeprofile_fits(const struct gpu_instance *in, unsigned int slices, unsigned int start)
{
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++) {
        const struct compute_instance *other = &in->computes[i];
        if (other->serial != 0 && start < other->start + other->slices && other->start < start + slices)
            return false;
    }
    return true;
}

void computeprofile_info(const struct profile *in, unsigned int slices, nvmlComputeInstanceProfileInfo_t *info)
{
    *info = (nvmlComputeInstanceProfileInfo_t){
        .id = computeprofile_id(slices),
        .sliceCount = slices,
        .instanceCount = computeprofile_count(in, slices),
        .multiprocessorCount = in->engines.multiprocessors * slices / in->compute,
        .sharedCopyEngineCount = in->engines.copy,
        .sharedDecoderCount = in->engines.decoders,
        .sharedEncoderCount = in->engines.encoders,
        .sharedJpegCount = in->engines.jpegs,
        .sharedOfaCount = in->engines.ofas,
    };
}

/* The only engine profile is `shared`, 0. */
EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned int kind,
                                                                 unsigned int engines,
                                                                 nvmlComputeInstanceProfileInfo_t *info)
{
    CALL(READ, instance, GPU_INSTANCE, info != NULL && kind < NVML_COMPUTE_INSTANCE_PROFILE_COUNT && engines == 0);
    const struct profile *in = instance_profile(call.card, call.on.gpu_instance);
    const unsigned int slices = computeprofile_slices(in, kind);
    if (slices != 0)
        computeprofile_info(in, slices, info);
    return call_end(&call, slices == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance, unsigned int kind,
                                                                  unsigned int engines,
                                                                  nvmlComputeInstanceProfileInfo_v2_t *info)
{
    CALL(READ, instance, GPU_INSTANCE, info != NULL && kind < NVML_COMPUTE_INSTANCE_PROFILE_COUNT && engines == 0);
    const bool is_third = info->version == NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v3_t, 3);
    if (!is_third && info->version != NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2))
        return call_end(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    const struct profile *in = instance_profile(call.card, call.on.gpu_instance);
    const unsigned int slices = computeprofile_slices(in, kind);
    if (slices == 0)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    char name[MIG_NAME_LENGTH];
    migname_for(in, slices, name);
    computeprofile_info(in, slices, &info->info);
    snprintf(info->name, sizeof info->name, "MIG %s", name);
    if (is_third)
        ((nvmlComputeInstanceProfileInfo_v3_t *)info)->capabilities = 0;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t instance, unsigned int id,
                                                                        nvmlComputeInstancePlacement_t *placements,
                                                                        unsigned int *count)
{
    CALL(PRIVILEGED, instance, GPU_INSTANCE, count != NULL);
    const struct profile *in = instance_profile(call.card, call.on.gpu_instance);
    const unsigned int slices = computeprofile_slices(in, id);
    if (slices == 0)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    *count = computeprofile_count(in, slices);
    for (unsigned int i = 0; placements != NULL && i < *count; i++)
        placements[i] = (nvmlComputeInstancePlacement_t){.start = computeprofile_start(slices, i), .size = slices};
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance, unsigned int id,
                                                                       unsigned int *count)
{
    CALL(PRIVILEGED, instance, GPU_INSTANCE, count != NULL);
    const struct profile *in = instance_profile(call.card, call.on.gpu_instance);
    const unsigned int slices = computeprofile_slices(in, id);
    if (slices == 0)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    *count = 0;
    for (unsigned int i = 0; i < computeprofile_count(in, slices); i++)
        *count += computeprofile_fits(call.on.gpu_instance, slices, computeprofile_start(slices, i));
    return call_end(&call, NVML_SUCCESS);
}
