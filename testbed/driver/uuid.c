/* UUIDs, and the handles found by them. */
#include "uuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

/* Drivers from 470.42.01 on give each MIG device a UUID of its own. */
static bool has_own_uuids(const struct machine *machine)
{
    char *end;
    const unsigned long branch = strtoul(machine->driver, &end, 10);
    return branch > 470 || (branch == 470 && strtoul(end + (*end == '.'), NULL, 10) >= 42);
}

void uuid_of(const struct machine *machine, const struct target *target, char text[UUID_LENGTH])
{
    char digits[37];
    if (target->kind == CARD) {
        snprintf(text, UUID_LENGTH, "%s", target->card->uuid);
    } else if (has_own_uuids(machine)) {
        uuid_text(target->compute_instance->uuid, digits);
        snprintf(text, UUID_LENGTH, "MIG-%s", digits);
    } else {
        snprintf(text, UUID_LENGTH, "MIG-%s/%u/%u", target->card->uuid, target->gpu_instance->id,
                 target->compute_instance->id);
    }
}

bool uuid_each_device(struct machine *machine, unsigned int slot, bool (*each)(struct target *, void *), void *context)
{
    struct target target = {.kind = MIG, .slot = slot, .card = &machine->cards[slot]};
    for (uint32_t gi = 0; gi < GPU_INSTANCE_IDS; gi++) {
        target.gpu_instance = card_instance(target.card, gi);
        for (uint32_t ci = 0; target.gpu_instance != NULL && ci < MAX_COMPUTE_INSTANCES; ci++) {
            target.compute_instance = instance_compute(target.gpu_instance, ci);
            if (target.compute_instance != NULL && each(&target, context))
                return true;
        }
    }
    return false;
}

struct search {
    const struct machine *machine;
    const char *text;
    void *found;
};

static bool matches(struct target *target, void *context)
{
    struct search *search = context;
    char text[UUID_LENGTH];
    uuid_of(search->machine, target, text);
    if (strcmp(text, search->text) != 0)
        return false;
    search->found = handle_make(MIG, target);
    return true;
}

static nvmlReturn_t find(struct call *call, const char *uuid, nvmlDevice_t *device)
{
    struct search search = {.machine = call->machine, .text = uuid};
    for (unsigned int slot = 0; slot < call->machine->cards_count; slot++) {
        struct target target = {.kind = CARD, .slot = slot, .card = &call->machine->cards[slot]};
        const bool is_card = strcmp(target.card->uuid, uuid) == 0;
        if (target.card->fault == FAULT_ABSENT)
            continue;
        if (!is_card && !uuid_each_device(call->machine, slot, matches, &search))
            continue;
        const nvmlReturn_t result = call_other(call, handle_make(CARD, &target), &target);
        if (result == NVML_SUCCESS)
            *device = is_card ? handle_make(CARD, &target) : search.found;
        return result;
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    CALL(READ, NULL, NOTHING, uuid != NULL && device != NULL);
    return call_end(&call, find(&call, uuid, device));
}

/* By text or by bytes; bytes mean a card or a MIG device alike. */
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    CALL(READ, NULL, NOTHING, uuid != NULL && device != NULL);
    if (uuid->version != NVML_STRUCT_VERSION(nvmlUUID_t, 1))
        return call_end(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    char text[UUID_LENGTH], digits[37];
    if (uuid->type == NVML_UUID_TYPE_ASCII) {
        snprintf(text, sizeof text, "%.40s", uuid->value.str);
        return call_end(&call, find(&call, text, device));
    }
    if (uuid->type != NVML_UUID_TYPE_BINARY)
        return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
    uuid_text(uuid->value.bytes, digits);
    snprintf(text, sizeof text, "GPU-%s", digits);
    nvmlReturn_t result = find(&call, text, device);
    if (result == NVML_ERROR_NOT_FOUND) {
        snprintf(text, sizeof text, "MIG-%s", digits);
        result = find(&call, text, device);
    }
    return call_end(&call, result);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    CALL(READ, device, CARD | MIG, uuid != NULL);
    char text[UUID_LENGTH];
    uuid_of(call.machine, &call.on, text);
    return call_end(&call, call_text(uuid, length, text));
}
