/* The machine as JSON, for people and tests: what is, not what was described. */
#include <stdio.h>
#include <stdlib.h>

#include "call.h"
#include "control.h"
#include "uuid.h"

struct writer {
    FILE *file;
    const struct machine *machine;
    bool first;
};

static bool write_device(struct target *target, void *context)
{
    struct writer *writer = context;
    char uuid[UUID_LENGTH];
    uuid_of(writer->machine, target, uuid);
    const struct gpu_instance *gi = target->gpu_instance;
    const struct profile *profile = instance_profile(target->card, gi);
    fprintf(writer->file,
            "%s{\"uuid\": \"%s\", \"profile\": \"%s\", \"gi\": %u, \"start\": %u, \"size\": %u, \"ci\": %u, "
            "\"ci_start\": %u, \"slices\": %u}",
            writer->first ? "" : ", ", uuid, profile->name, gi->id, gi->start, profile->size,
            target->compute_instance->id, target->compute_instance->start, target->compute_instance->slices);
    writer->first = false;
    return false;
}

static void write_instances(FILE *file, struct card *card)
{
    const char *comma = "";
    for (uint32_t id = 0; id < GPU_INSTANCE_IDS; id++) {
        const struct gpu_instance *gi = card_instance(card, id);
        if (gi == NULL)
            continue;
        const struct profile *profile = instance_profile(card, gi);
        fprintf(file, "%s{\"id\": %u, \"profile\": \"%s\", \"start\": %u, \"size\": %u}", comma, id, profile->name,
                gi->start, profile->size);
        comma = ", ";
    }
}

static void write_processes(FILE *file, const struct card *card)
{
    static const char *const kinds[] = {"compute", "graphics", "mps"};
    const char *comma = "";
    for (unsigned int i = 0; i < MAX_PROCESSES; i++) {
        const struct process *process = &card->processes[i];
        if (process->pid == 0)
            continue;
        fprintf(file, "%s{\"pid\": %u, \"kind\": \"%s\", \"gi\": %d, \"ci\": %d, \"memory\": %llu}", comma,
                process->pid, kinds[process->kind], (int)process->gpu_instance, (int)process->compute_instance,
                (unsigned long long)process->memory);
        comma = ", ";
    }
}

static void write_card(FILE *file, struct machine *machine, unsigned int slot)
{
    static const char *const modes[] = {"default", "exclusive_thread", "prohibited", "exclusive_process"};
    struct card *card = &machine->cards[slot];
    fprintf(file,
            "{\"model\": \"%s\", \"uuid\": \"%s\", \"pci\": \"%04x:%02x:%02x.0\", \"minor\": %u, \"fault\": \"%s\", "
            "\"mig\": %s, \"mig_pending\": %s, \"compute_mode\": \"%s\", \"persistence\": %s, \"instances\": [",
            card_model(card)->name, card->uuid, card->domain, card->bus, card->device, card->minor,
            fault_names[card->fault], card->mig ? "true" : "false", card->mig_pending ? "true" : "false",
            modes[card->compute_mode], card->persistence ? "true" : "false");
    write_instances(file, card);
    fputs("], \"devices\": [", file);
    struct writer writer = {.file = file, .machine = machine, .first = true};
    uuid_each_device(machine, slot, write_device, &writer);
    fputs("], \"processes\": [", file);
    write_processes(file, card);
    fputs("]}", file);
}

char *gpusim_show(void)
{
    struct call call;
    if (call_begin(&call, __func__, READ, NULL, NOTHING, true) != NVML_SUCCESS)
        return NULL;
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (file != NULL) {
        fprintf(file, "{\"driver\": \"%s\", \"boots\": %llu, \"changes\": %llu, \"gpus\": [", call.machine->driver,
                (unsigned long long)call.machine->boots, (unsigned long long)call.machine->changes);
        for (unsigned int slot = 0; slot < call.machine->cards_count; slot++) {
            fputs(slot == 0 ? "" : ", ", file);
            write_card(file, call.machine, slot);
        }
        fputs("]}\n", file);
        fclose(file);
    }
    call_end(&call, NVML_SUCCESS);
    return text;
}

void gpusim_free(char *text)
{
    free(text);
}
