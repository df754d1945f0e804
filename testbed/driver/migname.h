/* What a MIG device is called: `1g.5gb`, and `1c.3g.20gb` where it has only some of its GPU instance's slices. */
#ifndef GPUSIM_MIGNAME_H
#define GPUSIM_MIGNAME_H

#include "handle.h"

enum { MIG_NAME_LENGTH = 48 };

void migname_of(const struct target *target, char name[MIG_NAME_LENGTH]);
void migname_for(const struct profile *profile, unsigned int slices, char name[MIG_NAME_LENGTH]);

#endif
