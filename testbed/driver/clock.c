/* Clocks that applications may be set to: those of the description, and none where it has none. */
#include "call.h"

static bool has_clocks(const struct card *card)
{
    return card->memory_clocks_count > 0 && card->graphics_clocks[0] > 0;
}

static bool has_memory_clock(const struct card *card, unsigned int clock)
{
    for (unsigned int i = 0; i < card->memory_clocks_count; i++)
        if (card->memory_clocks[i] == clock)
            return true;
    return false;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *clocks)
{
    CALL(READ, device, CARD, count != NULL);
    if (!has_clocks(call.card))
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    const unsigned int room = *count;
    *count = call.card->memory_clocks_count;
    if (room < *count || clocks == NULL)
        return call_end(&call, NVML_ERROR_INSUFFICIENT_SIZE);
    for (unsigned int i = 0; i < *count; i++)
        clocks[i] = call.card->memory_clocks[i];
    return call_end(&call, NVML_SUCCESS);
}

/* From the highest down. */
EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory, unsigned int *count,
                                                         unsigned int *clocks)
{
    CALL(READ, device, CARD, count != NULL);
    if (!has_clocks(call.card))
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    if (!has_memory_clock(call.card, memory))
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    const uint32_t *range = call.card->graphics_clocks;
    const unsigned int room = *count;
    *count = (range[0] - range[1]) / range[2] + 1;
    if (room < *count || clocks == NULL)
        return call_end(&call, NVML_ERROR_INSUFFICIENT_SIZE);
    for (unsigned int i = 0; i < *count; i++)
        clocks[i] = range[0] - i * range[2];
    return call_end(&call, NVML_SUCCESS);
}

static unsigned int current(const struct card *card, nvmlClockType_t type, bool is_default)
{
    if (type == NVML_CLOCK_MEM)
        return is_default || card->memory_clock == 0 ? card->memory_clocks[0] : card->memory_clock;
    return is_default || card->graphics_clock == 0 ? card->graphics_clocks[0] : card->graphics_clock;
}

static nvmlReturn_t get(struct call *call, nvmlClockType_t type, unsigned int *clock, bool is_default)
{
    if (!has_clocks(call->card) || type == NVML_CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    *clock = current(call->card, type, is_default);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
    CALL(READ, device, CARD, clock != NULL && type <= NVML_CLOCK_VIDEO);
    return call_end(&call, get(&call, type, clock, false));
}

EXPORT nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                          unsigned int *clock)
{
    CALL(READ, device, CARD, clock != NULL && type <= NVML_CLOCK_VIDEO);
    return call_end(&call, get(&call, type, clock, true));
}

EXPORT nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int memory, unsigned int graphics)
{
    CALL(CHANGE, device, CARD, true);
    if (!has_clocks(call.card))
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    const uint32_t *range = call.card->graphics_clocks;
    if (!has_memory_clock(call.card, memory) || graphics > range[0] || graphics < range[1] ||
        (range[0] - graphics) % range[2] != 0)
        return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    call.card->memory_clock = memory;
    call.card->graphics_clock = graphics;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device)
{
    CALL(CHANGE, device, CARD, true);
    if (!has_clocks(call.card))
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    call.card->memory_clock = call.card->graphics_clock = 0;
    return call_end(&call, NVML_SUCCESS);
}
