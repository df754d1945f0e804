/* Faults by plan, for the process they are set in: the Nth call of a function fails, the Nth change ends in SIGKILL.
 *
 * A plan is read from GPUSIM_FAULT, or set by gpusim_faults(): entries separated by commas,
 *   FUNCTION@N=ERROR    the Nth call of this function (`*`: of any) answers ERROR, a name or a number; N `*`: each
 *   FUNCTION@N=HANG     it does not come back
 *   change@N=POINT      the process is killed at the Nth change of the state: before, half or after
 * How a single card is broken is part of the state, and seen by everybody: machine.h. */
#ifndef GPUSIM_FAULT_H
#define GPUSIM_FAULT_H

#include <stddef.h>

#include "nvml.h"

enum point { POINT_NONE, POINT_BEFORE_CHANGE, POINT_HALF_WRITTEN, POINT_AFTER_CHANGE };

/* Counts a call, and gives what it is to answer by the plan: NVML_SUCCESS where that is nothing. */
nvmlReturn_t fault_call(const char *function);
void fault_count_change(void);
void fault_point(enum point point);

/* Replaces the plan and starts counting anew: 0, or -1 where it cannot be read, and then none is in force. */
EXPORT int gpusim_faults(const char *plan);

/* An error by its name without NVML_ERROR_, or HANG; -1 where there is none. */
int fault_error(const char *name, size_t length);

#endif
