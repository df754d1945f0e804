/* The UUIDs of cards and MIG devices, as the driver of each age writes them. */
#ifndef GPUSIM_UUID_H
#define GPUSIM_UUID_H

#include "handle.h"

enum { UUID_LENGTH = 96 };

/* Of a card or MIG device: `GPU-...`; `MIG-...`, or before 470.42 `MIG-GPU-.../GI/CI` (MIG user guide). */
void uuid_of(const struct machine *machine, const struct target *target, char text[UUID_LENGTH]);

/* Calls `each` with every MIG device of a card, by GPU instance and compute instance id, until it gives true. */
bool uuid_each_device(struct machine *machine, unsigned int slot, bool (*each)(struct target *, void *), void *context);

#endif
