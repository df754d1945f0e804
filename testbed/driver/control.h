/* What is no call of NVIDIA's: the other side of the simulated machine, for gpusim and for tests.
 *
 * Cards are named by their place in the description, which no fault shifts. The library must be initialised. Each gives
 * an nvmlReturn_t; nothing of this is subject to a card's faults, but for what a reset needs. */
#ifndef GPUSIM_CONTROL_H
#define GPUSIM_CONTROL_H

#include <stdint.h>

#include "nvml.h"

/* Lets a process appear on a card: kind 0 compute, 1 graphics, 2 MPS; with MIG in a GPU and compute instance,
 * else -1. Memory in bytes,
 * utilization in percent. */
EXPORT nvmlReturn_t gpusim_run(unsigned int card, unsigned int pid, unsigned int kind, int gpu_instance,
                               int compute_instance, uint64_t memory, unsigned int utilization);

/* Ends a process on every card it is on. */
EXPORT nvmlReturn_t gpusim_end(unsigned int pid);

/* Breaks a card: lost, hang, in-use, unknown, reset-required, absent; or `none`: mends it. */
EXPORT nvmlReturn_t gpusim_break(unsigned int card, const char *kind);

/* Resets a card as nvidia-smi --gpu-reset does: IN_USE unless it is idle. */
EXPORT nvmlReturn_t gpusim_reset(unsigned int card);
EXPORT nvmlReturn_t gpusim_reboot(void);

/* Lets a critical error (XID) happen on a card. */
EXPORT nvmlReturn_t gpusim_event(unsigned int card, unsigned int xid);

/* The machine as JSON; the caller gives it back to gpusim_free. NULL where there is none. */
EXPORT char *gpusim_show(void);
EXPORT void gpusim_free(char *text);

/* The names of the faults a card may have, in the order of their numbers. */
extern const char *const fault_names[];

#endif
