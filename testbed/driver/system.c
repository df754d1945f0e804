/* The machine as a whole: versions, the number of cards, and handles of cards by what a caller knows them by. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "call.h"

static const struct {
    nvmlReturn_t code;
    const char *text;
} texts[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
    {NVML_ERROR_OPERATING_SYSTEM, "The operating system has blocked the request"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
    {NVML_ERROR_IN_USE, "In use by another client"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_NO_DATA, "No data"},
    {NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "vGPU operation is not available with ECC enabled"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
    {NVML_ERROR_FREQ_NOT_SUPPORTED, "Frequency not supported"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    {NVML_ERROR_DEPRECATED, "Deprecated"},
    {NVML_ERROR_NOT_READY, "Not ready"},
    {NVML_ERROR_GPU_NOT_FOUND, "No GPUs were found"},
    {NVML_ERROR_INVALID_STATE, "Invalid state"},
    {NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, "Reset type not supported"},
};

EXPORT const char *nvmlErrorString(nvmlReturn_t result);

/* Needs no initialisation, and cannot fail. */
const char *nvmlErrorString(nvmlReturn_t result)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].code == result)
            return texts[i].text;
    return "Unknown Error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    CALL(READ, NULL, NOTHING, version != NULL);
    return call_end(&call, call_text(version, length, call.machine->driver));
}

/* NVML's own version: the CUDA major and the driver's. */
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    CALL(READ, NULL, NOTHING, version != NULL);
    char text[48];
    snprintf(text, sizeof text, "%u.%s", call.machine->cuda / 1000, call.machine->driver);
    return call_end(&call, call_text(version, length, text));
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    CALL(READ, NULL, NOTHING, version != NULL);
    *version = (int)call.machine->cuda;
    return call_end(&call, NVML_SUCCESS);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) ALIAS(nvmlSystemGetCudaDriverVersion_v2);

/* The name of a process of this host; the simulated driver knows none beyond the real ones. */
EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    CALL(READ, NULL, NOTHING, name != NULL && length > 0);
    char path[64], text[PATH_LENGTH] = {0};
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    const size_t read = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    if (read == 0)
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    snprintf(name, length, "%s", text);
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    CALL(READ, NULL, NOTHING, count != NULL);
    *count = call_count(call.machine);
    return call_end(&call, NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) ALIAS(nvmlDeviceGetCount_v2);

/* Excluded devices: none. */
EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
    CALL(READ, NULL, NOTHING, count != NULL);
    *count = 0;
    return call_end(&call, NVML_SUCCESS);
}

/* The handle of a card that answers; a broken one answers here as everywhere. */
static nvmlReturn_t give_card(struct call *call, struct card *card, unsigned int slot, nvmlDevice_t *device)
{
    if (card == NULL || card->fault == FAULT_ABSENT)
        return NVML_ERROR_NOT_FOUND;
    struct target target = {.kind = CARD, .slot = slot};
    const nvmlReturn_t result = call_other(call, handle_make(CARD, &target), &target);
    if (result == NVML_SUCCESS)
        *device = handle_make(CARD, &target);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    CALL(READ, NULL, NOTHING, device != NULL);
    unsigned int slot;
    struct card *card = call_card(call.machine, index, &slot);
    return call_end(&call, card == NULL ? NVML_ERROR_INVALID_ARGUMENT : give_card(&call, card, slot, device));
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) ALIAS(nvmlDeviceGetHandleByIndex_v2);

/* As `domain:bus:device.function`, the domain of four or eight digits, or left out. */
static bool read_address(const char *text, unsigned int *domain, unsigned int *bus, unsigned int *device)
{
    int end = 0;
    if (sscanf(text, "%8x:%2x:%2x.0%n", domain, bus, device, &end) == 3 && end > 0 && text[end] == '\0')
        return true;
    *domain = 0;
    end = 0;
    return sscanf(text, "%2x:%2x.0%n", bus, device, &end) == 2 && end > 0 && text[end] == '\0';
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    unsigned int domain, bus, place;
    CALL(READ, NULL, NOTHING, address != NULL && device != NULL && read_address(address, &domain, &bus, &place));
    for (unsigned int slot = 0; slot < call.machine->cards_count; slot++) {
        struct card *card = &call.machine->cards[slot];
        if (card->domain == domain && card->bus == bus && card->device == place)
            return call_end(&call, give_card(&call, card, slot, device));
    }
    return call_end(&call, NVML_ERROR_NOT_FOUND);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *address, nvmlDevice_t *device)
    ALIAS(nvmlDeviceGetHandleByPciBusId_v2);

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    CALL(READ, NULL, NOTHING, serial != NULL && device != NULL);
    for (unsigned int slot = 0; slot < call.machine->cards_count; slot++)
        if (strcmp(call.machine->cards[slot].serial_number, serial) == 0)
            return call_end(&call, give_card(&call, &call.machine->cards[slot], slot, device));
    return call_end(&call, NVML_ERROR_NOT_FOUND);
}
