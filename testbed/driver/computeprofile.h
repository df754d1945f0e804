/* What compute instances a GPU instance offers, and where in it. */
#ifndef GPUSIM_COMPUTEPROFILE_H
#define GPUSIM_COMPUTEPROFILE_H

#include "call.h"

/* The compute slices of a profile by NVML's number, which is its id too; 0: there is none in this GPU instance. */
unsigned int computeprofile_slices(const struct profile *in, unsigned int id);
unsigned int computeprofile_id(unsigned int slices);

/* How many of it the GPU instance holds, and the slice that each may start at. */
unsigned int computeprofile_count(const struct profile *in, unsigned int slices);
unsigned int computeprofile_start(unsigned int slices, unsigned int number);
bool computeprofile_fits(const struct gpu_instance *in, unsigned int slices, unsigned int start);

void computeprofile_info(const struct profile *in, unsigned int slices, nvmlComputeInstanceProfileInfo_t *info);

#endif
