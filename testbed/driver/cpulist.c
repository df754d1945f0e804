/* Lists of CPUs, read and written. */
#include "cpulist.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cpulist_read(const char *text, uint64_t *bits, unsigned int limit)
{
    memset(bits, 0, limit / 8);
    for (;;) {
        if (!isdigit((unsigned char)*text))
            return false;
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1]))
                return false;
            last = strtoul(end + 1, &end, 10);
        }
        if (last < first || last >= limit)
            return false;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
        if (*end == '\0')
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
}

static bool has(const uint64_t *bits, unsigned int limit, unsigned int cpu)
{
    return cpu < limit && (bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

void cpulist_write(const uint64_t *bits, unsigned int limit, char *text, size_t length)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned int cpu = 0; cpu < limit; cpu++) {
        if (!has(bits, limit, cpu))
            continue;
        const unsigned int first = cpu;
        while (has(bits, limit, cpu + 1))
            cpu++;
        const char *comma = used == 0 ? "" : ",";
        const int more = first == cpu ? snprintf(text + used, length - used, "%s%u", comma, first)
                                      : snprintf(text + used, length - used, "%s%u-%u", comma, first, cpu);
        if (more < 0 || (size_t)more >= length - used)
            return;
        used += (size_t)more;
    }
}

unsigned int cpulist_online(void)
{
    const long count = sysconf(_SC_NPROCESSORS_CONF);
    return count > 0 ? (unsigned int)count : 1;
}
