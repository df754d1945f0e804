/* The description of a machine: what a person writes, and the machine that follows from it.
 *
 * {"gpus": [{"model": "A100-SXM4-80GB"}]} is enough. Machine: name (of the node; UUIDs hang on it), driver, cuda,
 * addressing (none, hmm, ats), fabric ({cluster, clique}), cpus, gpus. A GPU: model, count, uuid, serial, minor, pci,
 * numa, cpus (`0-15,32`), links (for each the index of the GPU at its other end, or "switch"), passthrough,
 * memory_clocks and graphics_clocks (highest, lowest, step; MHz). GPUs stand in the order of their PCI addresses. */
#ifndef GPUSIM_DESCRIPTION_H
#define GPUSIM_DESCRIPTION_H

#include "machine.h"

/* Makes the state and the tree below `root` from the file `path`, if there is none. Gives 0; EINVAL where the file is
 * no description, or the state there was made from another; or another errno. `why` then says it to a person. */
int description_load(const char *root, const char *path, char *why, size_t length);

/* The machine of a text, or false with the place and the reason in `why`. */
bool description_read(const char *text, struct machine *machine, char *why, size_t length);

#endif
