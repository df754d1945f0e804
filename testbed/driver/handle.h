/* Handles: numbers that look like addresses and say what they mean, so that none is ever freed or stale by accident.
 *
 * One holds the card's slot, an instance's ids and the low bits of its serial: a handle of an instance that is gone
 * does not fit the one that got its id. The numbers lie where no heap of C or Go does; nobody may follow them. */
#ifndef GPUSIM_HANDLE_H
#define GPUSIM_HANDLE_H

#include "machine.h"

enum kind { NOTHING = 0, CARD = 1, MIG = 2, GPU_INSTANCE = 4, COMPUTE_INSTANCE = 8 };

struct target {
    enum kind kind;
    unsigned int slot;
    struct card *card;
    struct gpu_instance *gpu_instance;
    struct compute_instance *compute_instance;
};

void *handle_make(enum kind kind, const struct target *target);

/* What a handle means in this machine; false where it means nothing, or no longer. */
bool handle_read(const void *handle, struct machine *machine, struct target *target);

#endif
