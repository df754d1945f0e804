/* What the driver shows outside NVML: /proc/driver, /dev and /sys below the root, as far as others read them. */
#ifndef GPUSIM_TREE_H
#define GPUSIM_TREE_H

#include "machine.h"

/* Brings the tree to what the machine is, whatever it was before, and notes that it did. Under the lock only. */
int tree_write(const char *root, const struct machine *machine);

#endif
