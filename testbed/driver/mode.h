/* What state a card is in as a whole, for those who change it by other ways than NVML: control.c. */
#ifndef GPUSIM_MODE_H
#define GPUSIM_MODE_H

#include "machine.h"

/* Makes a MIG mode the current one: what was cut is gone, and the compute mode is the default again. */
void mode_activate(struct machine *machine, struct card *card, uint32_t mig);

#endif
