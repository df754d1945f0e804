/* Names of MIG devices. */
#include "migname.h"

#include <stdio.h>

void migname_for(const struct profile *profile, unsigned int slices, char name[MIG_NAME_LENGTH])
{
    if (slices == profile->compute)
        snprintf(name, MIG_NAME_LENGTH, "%s", profile->name);
    else
        snprintf(name, MIG_NAME_LENGTH, "%uc.%s", slices, profile->name);
}

void migname_of(const struct target *target, char name[MIG_NAME_LENGTH])
{
    migname_for(instance_profile(target->card, target->gpu_instance), target->compute_instance->slices, name);
}
