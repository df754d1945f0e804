/* Lists of CPUs as people and /sys write them: `0-15,32-47`. */
#ifndef GPUSIM_CPULIST_H
#define GPUSIM_CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool cpulist_read(const char *text, uint64_t *bits, unsigned int limit);
void cpulist_write(const uint64_t *bits, unsigned int limit, char *text, size_t length);
unsigned int cpulist_online(void);

#endif
