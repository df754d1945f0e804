/* The other side of the machine: processes, breakage, resets, reboots. */
#include "control.h"

#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "mode.h"

enum { XID_OFF_THE_BUS = 79 };

const char *const fault_names[] = {"none", "lost", "hang", "in-use", "unknown", "reset-required", "absent"};

static struct card *card_at(struct call *call, unsigned int card)
{
    return card < call->machine->cards_count ? &call->machine->cards[card] : NULL;
}

/* Whether compute mode lets one more process on the card; graphics does not count. */
static bool admits(const struct card *card, unsigned int kind)
{
    if (kind == PROCESS_GRAPHICS || card->compute_mode == NVML_COMPUTEMODE_DEFAULT)
        return true;
    if (card->compute_mode == NVML_COMPUTEMODE_PROHIBITED)
        return false;
    for (unsigned int i = 0; i < MAX_PROCESSES; i++)
        if (card->processes[i].pid != 0 && card->processes[i].kind == PROCESS_COMPUTE)
            return false;
    return true;
}

static nvmlReturn_t run(struct card *card, const struct process *process)
{
    struct gpu_instance *gi = card_instance(card, process->gpu_instance);
    const bool is_placed = gi != NULL && instance_compute(gi, process->compute_instance) != NULL;
    const bool is_whole = process->gpu_instance == NVML_NO_INSTANCE && process->compute_instance == NVML_NO_INSTANCE;
    if (card->mig ? !is_placed : !is_whole)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!admits(card, process->kind))
        return NVML_ERROR_IN_USE;
    for (unsigned int i = 0; i < MAX_PROCESSES; i++)
        if (card->processes[i].pid == 0) {
            card->processes[i] = *process;
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

nvmlReturn_t gpusim_run(unsigned int number, unsigned int pid, unsigned int kind, int gpu_instance,
                        int compute_instance, uint64_t memory, unsigned int utilization)
{
    CALL(CHANGE, NULL, NOTHING, pid != 0 && kind < PROCESS_KINDS && utilization <= 100);
    struct card *card = card_at(&call, number);
    const struct process process = {.pid = pid,
                                    .kind = kind,
                                    .gpu_instance = (uint32_t)gpu_instance,
                                    .compute_instance = (uint32_t)compute_instance,
                                    .memory = memory,
                                    .utilization = utilization};
    return call_end(&call, card == NULL ? NVML_ERROR_NOT_FOUND : run(card, &process));
}

nvmlReturn_t gpusim_end(unsigned int pid)
{
    CALL(CHANGE, NULL, NOTHING, pid != 0);
    bool found = false;
    for (unsigned int slot = 0; slot < call.machine->cards_count; slot++)
        for (unsigned int i = 0; i < MAX_PROCESSES; i++) {
            struct process *process = &call.machine->cards[slot].processes[i];
            if (process->pid != pid)
                continue;
            *process = (struct process){0};
            found = true;
        }
    return call_end(&call, found ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND);
}

nvmlReturn_t gpusim_break(unsigned int number, const char *kind)
{
    CALL(CHANGE, NULL, NOTHING, kind != NULL);
    struct card *card = card_at(&call, number);
    if (card == NULL)
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    for (uint32_t fault = 0; fault < FAULT_COUNT; fault++) {
        if (strcmp(fault_names[fault], kind) != 0)
            continue;
        if (fault == FAULT_LOST && card->fault != FAULT_LOST)
            machine_add_event(call.machine, number, XID_OFF_THE_BUS);
        card->fault = fault;
        call.machine->layout++; /* an absent card has no files */
        return call_end(&call, NVML_SUCCESS);
    }
    return call_end(&call, NVML_ERROR_INVALID_ARGUMENT);
}

static nvmlReturn_t reset(struct machine *machine, struct card *card)
{
    if (card->fault == FAULT_LOST || card->fault == FAULT_ABSENT)
        return NVML_ERROR_GPU_IS_LOST;
    if (card->fault == FAULT_HANG)
        return NVML_ERROR_TIMEOUT;
    if (card->passthrough)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!card_is_idle(card))
        return NVML_ERROR_IN_USE;
    card->fault = FAULT_NONE;
    card->memory_clock = card->graphics_clock = 0;
    mode_activate(machine, card, card->mig_pending);
    return NVML_SUCCESS;
}

nvmlReturn_t gpusim_reset(unsigned int number)
{
    CALL(CHANGE, NULL, NOTHING, true);
    struct card *card = card_at(&call, number);
    return call_end(&call, card == NULL ? NVML_ERROR_NOT_FOUND : reset(call.machine, card));
}

/* MIG mode lasts where it lies in the card, up to Hopper; instances never do. A card that is absent stays so. */
nvmlReturn_t gpusim_reboot(void)
{
    CALL(CHANGE, NULL, NOTHING, true);
    for (unsigned int slot = 0; slot < call.machine->cards_count; slot++) {
        struct card *card = &call.machine->cards[slot];
        card_clear_processes(card);
        card->fault = card->fault == FAULT_ABSENT ? FAULT_ABSENT : FAULT_NONE;
        card->persistence = card->memory_clock = card->graphics_clock = 0;
        mode_activate(call.machine, card, card_needs_reset(card) ? card->mig_pending : NVML_DEVICE_MIG_DISABLE);
    }
    call.machine->boots++;
    return call_end(&call, NVML_SUCCESS);
}

nvmlReturn_t gpusim_event(unsigned int number, unsigned int xid)
{
    CALL(CHANGE, NULL, NOTHING, true);
    if (card_at(&call, number) == NULL)
        return call_end(&call, NVML_ERROR_NOT_FOUND);
    machine_add_event(call.machine, number, xid);
    return call_end(&call, NVML_SUCCESS);
}
