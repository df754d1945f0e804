/* The processes on a card. They are pretended: gpusim starts and ends them, nothing of this host is asked. */
#include <time.h>

#include "call.h"

/* Of a card all, with the instance each is in; of a MIG device those in it. */
static bool is_on(const struct target *target, const struct process *process, uint32_t kind)
{
    return process->pid != 0 && process->kind == kind &&
           (target->kind == CARD || (process->gpu_instance == target->gpu_instance->id &&
                                     process->compute_instance == target->compute_instance->id));
}

static unsigned int count_of(const struct target *target, uint32_t kind)
{
    unsigned int count = 0;
    for (unsigned int i = 0; i < MAX_PROCESSES; i++)
        count += is_on(target, &target->card->processes[i], kind);
    return count;
}

static nvmlReturn_t list(const struct call *call, uint32_t kind, unsigned int *count, nvmlProcessInfo_t *infos)
{
    const unsigned int room = *count, needed = count_of(&call->on, kind);
    *count = needed;
    if (needed > room || (needed > 0 && infos == NULL))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < MAX_PROCESSES; i++) {
        const struct process *process = &call->card->processes[i];
        if (is_on(&call->on, process, kind))
            *infos++ = (nvmlProcessInfo_t){.pid = process->pid,
                                           .usedGpuMemory = process->memory,
                                           .gpuInstanceId = process->gpu_instance,
                                           .computeInstanceId = process->compute_instance};
    }
    return NVML_SUCCESS;
}

/* The first version of the structure has no instances. */
static nvmlReturn_t list_first(const struct call *call, uint32_t kind, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
    nvmlProcessInfo_t whole[MAX_PROCESSES];
    const nvmlReturn_t result = list(call, kind, count, infos == NULL ? NULL : whole);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){.pid = whole[i].pid, .usedGpuMemory = whole[i].usedGpuMemory};
    return result;
}

#define LISTS(name, kind)                                                                                             \
    EXPORT nvmlReturn_t name##_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)                 \
    {                                                                                                                 \
        CALL(READ, device, CARD | MIG, count != NULL);                                                                \
        return call_end(&call, list(&call, kind, count, infos));                                                      \
    }                                                                                                                 \
    nvmlReturn_t name##_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) ALIAS(name##_v3);      \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)                   \
    {                                                                                                                 \
        CALL(READ, device, CARD | MIG, count != NULL);                                                                \
        return call_end(&call, list_first(&call, kind, count, infos));                                                \
    }

LISTS(nvmlDeviceGetComputeRunningProcesses, PROCESS_COMPUTE)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, PROCESS_GRAPHICS)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, PROCESS_MPS)

/* A sample for each process that is not idle, as of now. Not served on a card in MIG mode (API reference). */
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                    unsigned int *count, unsigned long long last)
{
    CALL(READ, device, CARD, count != NULL);
    if (call.card->mig)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    const unsigned long long now = (unsigned long long)time.tv_sec * 1000000 + (unsigned long long)time.tv_nsec / 1000;
    const unsigned int room = samples == NULL ? 0 : *count;
    *count = 0;
    for (unsigned int i = 0; i < MAX_PROCESSES && last < now; i++) {
        const struct process *process = &call.card->processes[i];
        if (process->pid == 0 || process->utilization == 0)
            continue;
        if (*count < room)
            samples[*count] = (nvmlProcessUtilizationSample_t){
                .pid = process->pid, .timeStamp = now, .smUtil = process->utilization};
        ++*count;
    }
    if (*count == 0)
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    return call_end(&call, *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}
