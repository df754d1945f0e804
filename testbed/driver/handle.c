/* Handles, packed and unpacked. */
#include "handle.h"

/* From the top: a mark, 2 bits of kind, 5 of card, 4 of GPU instance, 3 of compute instance, 24 of serial. */
static const uint64_t MARK = UINT64_C(1) << 45;
enum { KIND_AT = 43, SLOT_AT = 38, GPU_INSTANCE_AT = 34, COMPUTE_INSTANCE_AT = 31, SERIAL_AT = 7 };
enum { SERIAL_MASK = 0xFFFFFF };

static const enum kind kinds[4] = {CARD, MIG, GPU_INSTANCE, COMPUTE_INSTANCE};

void *handle_make(enum kind kind, const struct target *target)
{
    uint64_t number = MARK | (uint64_t)target->slot << SLOT_AT;
    for (uint64_t i = 0; i < 4; i++)
        if (kinds[i] == kind)
            number |= i << KIND_AT;
    uint64_t serial = 0;
    if (kind != CARD) {
        number |= (uint64_t)target->gpu_instance->id << GPU_INSTANCE_AT;
        serial = target->gpu_instance->serial;
    }
    if (kind == MIG || kind == COMPUTE_INSTANCE) {
        number |= (uint64_t)target->compute_instance->id << COMPUTE_INSTANCE_AT;
        serial = target->compute_instance->serial;
    }
    return (void *)(uintptr_t)(number | (serial & SERIAL_MASK) << SERIAL_AT);
}

bool handle_read(const void *handle, struct machine *machine, struct target *target)
{
    const uint64_t number = (uint64_t)(uintptr_t)handle;
    *target = (struct target){.kind = kinds[number >> KIND_AT & 3], .slot = (unsigned int)(number >> SLOT_AT & 31)};
    const uint32_t serial = (uint32_t)(number >> SERIAL_AT) & SERIAL_MASK;
    if (number >> 45 != 1 || (number & 127) != 0 || target->slot >= machine->cards_count)
        return false;
    target->card = &machine->cards[target->slot];
    if (target->kind == CARD)
        return true;
    target->gpu_instance = card_instance(target->card, (uint32_t)(number >> GPU_INSTANCE_AT & 15));
    if (target->gpu_instance == NULL)
        return false;
    if (target->kind == GPU_INSTANCE)
        return (target->gpu_instance->serial & SERIAL_MASK) == serial;
    target->compute_instance = instance_compute(target->gpu_instance, (uint32_t)(number >> COMPUTE_INSTANCE_AT & 7));
    return target->compute_instance != NULL && (target->compute_instance->serial & SERIAL_MASK) == serial;
}
