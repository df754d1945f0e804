/* Questions about a machine, and the changes that several calls share. Touches no file and no caller's memory. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"

enum { MINORS_PER_GPU = 135, MINORS_PER_GPU_INSTANCE = 9, FIRST_INSTANCE_MINOR = 3, HOPPER = 9 };

uint64_t machine_magic(void)
{
    return STATE_MAGIC ^ models_hash;
}

size_t machine_size(const struct machine *machine)
{
    return offsetof(struct machine, cards) + machine->cards_count * sizeof(struct card);
}

const struct model *card_model(const struct card *card)
{
    return &models[card->model];
}

const struct profile *instance_profile(const struct card *card, const struct gpu_instance *instance)
{
    return &card_model(card)->profiles[instance->profile];
}

struct gpu_instance *card_instance(struct card *card, uint32_t id)
{
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++)
        if (card->instances[i].serial != 0 && card->instances[i].id == id)
            return &card->instances[i];
    return NULL;
}

struct compute_instance *instance_compute(struct gpu_instance *instance, uint32_t id)
{
    return id < MAX_COMPUTE_INSTANCES && instance->computes[id].serial != 0 ? &instance->computes[id] : NULL;
}

bool card_has_instances(const struct card *card)
{
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++)
        if (card->instances[i].serial != 0)
            return true;
    return false;
}

/* Whether nothing holds the card: no process, and no client that only its fault stands for. */
bool card_is_idle(const struct card *card)
{
    return card->fault != FAULT_IN_USE && !card_runs(card, NVML_NO_INSTANCE, NVML_NO_INSTANCE);
}

/* Whether a process runs on the card, on this GPU instance of it, or on this compute instance. */
bool card_runs(const struct card *card, uint32_t gpu_instance, uint32_t compute_instance)
{
    for (unsigned int i = 0; i < MAX_PROCESSES; i++) {
        const struct process *process = &card->processes[i];
        if (process->pid != 0 && (gpu_instance == NVML_NO_INSTANCE || gpu_instance == process->gpu_instance) &&
            (compute_instance == NVML_NO_INSTANCE || compute_instance == process->compute_instance))
            return true;
    }
    return false;
}

/* Whether a new MIG mode needs a reset, and lasts over a reboot: up to Hopper both (MIG user guide). */
bool card_needs_reset(const struct card *card)
{
    return card_model(card)->major < HOPPER;
}

void card_clear_instances(struct card *card)
{
    memset(card->instances, 0, sizeof card->instances);
}

void card_clear_processes(struct card *card)
{
    memset(card->processes, 0, sizeof card->processes);
}

/* The driver's branch: 550 of 550.54.15. */
unsigned int machine_branch(const struct machine *machine)
{
    return (unsigned int)strtoul(machine->driver, NULL, 10);
}

/* The capability file of a GPU instance; those of its compute instances follow it. */
unsigned int capability_minor(uint32_t card_minor, uint32_t gpu_instance)
{
    return FIRST_INSTANCE_MINOR + MINORS_PER_GPU * card_minor + MINORS_PER_GPU_INSTANCE * gpu_instance;
}

void machine_add_event(struct machine *machine, uint32_t card, uint32_t xid)
{
    struct event *event = &machine->events[machine->events_count % MAX_EVENTS];
    event->number = ++machine->events_count;
    event->card = card;
    event->xid = xid;
}

void uuid_text(const unsigned char uuid[16], char text[37])
{
    char *end = text;
    for (unsigned int i = 0; i < 16; i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        end += snprintf(end, 4, dash ? "-%02x" : "%02x", uuid[i]);
    }
}
