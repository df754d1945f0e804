/* Events: sets that wait for what gpusim lets happen on the cards registered with them. A set is the process's own. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

enum { LOOK_MICROSECONDS = 5000 };

struct nvmlEventSet_st {
    struct nvmlEventSet_st *next;
    uint64_t seen;
    uint32_t cards; /* a bit a slot */
};

/* The sets there are, so that a handle can be judged without being followed. */
static struct {
    pthread_mutex_t mutex;
    struct nvmlEventSet_st *first;
} sets = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Where a set hangs; NULL where there is none of that handle. The caller holds the mutex. */
static struct nvmlEventSet_st **find(nvmlEventSet_t set)
{
    for (struct nvmlEventSet_st **at = &sets.first; *at != NULL; at = &(*at)->next)
        if (*at == set)
            return at;
    return NULL;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    CALL(READ, NULL, NOTHING, set != NULL);
    struct nvmlEventSet_st *made = calloc(1, sizeof *made);
    if (made == NULL)
        return call_end(&call, NVML_ERROR_MEMORY);
    made->seen = call.machine->events_count;
    pthread_mutex_lock(&sets.mutex);
    made->next = sets.first;
    sets.first = made;
    pthread_mutex_unlock(&sets.mutex);
    *set = made;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    CALL(READ, NULL, NOTHING, true);
    pthread_mutex_lock(&sets.mutex);
    struct nvmlEventSet_st **at = find(set);
    if (at != NULL) {
        *at = set->next;
        free(set);
    }
    pthread_mutex_unlock(&sets.mutex);
    return call_end(&call, at == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    CALL(READ, device, CARD, types != NULL);
    *types = NVML_EVENT_TYPE_XID_CRITICAL_ERROR;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    CALL(READ, device, CARD, true);
    nvmlReturn_t result = NVML_SUCCESS;
    pthread_mutex_lock(&sets.mutex);
    if (find(set) == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    else if ((types & ~(unsigned long long)NVML_EVENT_TYPE_XID_CRITICAL_ERROR) != 0)
        result = NVML_ERROR_NOT_SUPPORTED;
    else if (types != 0)
        set->cards |= 1u << call.on.slot;
    pthread_mutex_unlock(&sets.mutex);
    return call_end(&call, result);
}

/* The next event of a registered card; TIMEOUT while there is none, GPU_IS_LOST where there can be none any more. */
static nvmlReturn_t look(struct machine *machine, nvmlEventSet_t set, nvmlEventData_t *data)
{
    const uint64_t oldest = machine->events_count > MAX_EVENTS ? machine->events_count - MAX_EVENTS : 0;
    set->seen = set->seen < oldest ? oldest : set->seen;
    while (set->seen < machine->events_count) {
        const struct event *event = &machine->events[set->seen++ % MAX_EVENTS];
        struct target target = {.kind = CARD, .slot = event->card};
        if ((set->cards >> event->card & 1) == 0)
            continue;
        *data = (nvmlEventData_t){
            .device = handle_make(CARD, &target),
            .eventType = NVML_EVENT_TYPE_XID_CRITICAL_ERROR,
            .eventData = event->xid,
            .gpuInstanceId = NVML_NO_INSTANCE,
            .computeInstanceId = NVML_NO_INSTANCE,
        };
        return NVML_SUCCESS;
    }
    for (unsigned int slot = 0; slot < machine->cards_count; slot++)
        if ((set->cards >> slot & 1) != 0 &&
            (machine->cards[slot].fault == FAULT_LOST || machine->cards[slot].fault == FAULT_ABSENT))
            return NVML_ERROR_GPU_IS_LOST;
    return NVML_ERROR_TIMEOUT;
}

static nvmlReturn_t look_once(const char *function, nvmlEventSet_t set, nvmlEventData_t *data)
{
    struct call call;
    nvmlReturn_t result = call_begin(&call, function, READ, NULL, NOTHING, data != NULL);
    if (result != NVML_SUCCESS)
        return result;
    pthread_mutex_lock(&sets.mutex);
    result = find(set) == NULL ? NVML_ERROR_INVALID_ARGUMENT : look(call.machine, set, data);
    pthread_mutex_unlock(&sets.mutex);
    return call_end(&call, result);
}

static unsigned long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    const unsigned long long end = now_ms() + timeout_ms;
    nvmlReturn_t result = look_once(__func__, set, data);
    while (result == NVML_ERROR_TIMEOUT && now_ms() < end) {
        usleep(LOOK_MICROSECONDS);
        result = look_once(NULL, set, data); /* the same call, not another one to count */
    }
    return result;
}

EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *data, unsigned int timeout_ms)
{
    nvmlEventData_t whole;
    const nvmlReturn_t result = nvmlEventSetWait_v2(set, data == NULL ? NULL : &whole, timeout_ms);
    if (result == NVML_SUCCESS)
        *data = (nvmlEventData_v1_t){
            .device = whole.device, .eventType = whole.eventType, .eventData = whole.eventData};
    return result;
}
