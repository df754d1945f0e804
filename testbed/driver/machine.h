/* The machine: all that the simulated driver knows, as it lies in the state file.
 *
 * A flat structure of fixed numbers, so that a state is one block of bytes: written whole, mapped whole, never changed
 * where it lies. A free slot is all zero. Only the cards there are, are written. */
#ifndef GPUSIM_MACHINE_H
#define GPUSIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "geometry.h"

enum {
    MAX_CARDS = 32,
    MAX_GPU_INSTANCES = 8,
    MAX_COMPUTE_INSTANCES = 8,
    MAX_PROCESSES = 64,
    MAX_LINKS = 36,
    MAX_EVENTS = 64,
    MAX_CPUS = 1024,
    MAX_MEMORY_CLOCKS = 4,
    GPU_INSTANCE_IDS = 15, /* 0 to 14: halves of halves of a card */
    SWITCH = -1,           /* the peer of a link that ends in an NVSwitch */
};

#define STATE_MAGIC UINT64_C(0x314d495355504721)

/* How a card is broken: what every call that touches it comes to. */
enum fault {
    FAULT_NONE,
    FAULT_LOST,           /* it fell off the bus: GPU_IS_LOST */
    FAULT_HANG,           /* calls do not come back until it is mended */
    FAULT_IN_USE,         /* a client that no list shows holds it: what needs an idle card answers IN_USE */
    FAULT_UNKNOWN,        /* UNKNOWN */
    FAULT_RESET_REQUIRED, /* RESET_REQUIRED, until it is reset */
    FAULT_ABSENT,         /* not there at all: the indices of the cards behind it shift */
    FAULT_COUNT
};

enum process_kind { PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS, PROCESS_KINDS };

enum addressing { ADDRESSING_UNSERVED, ADDRESSING_NONE, ADDRESSING_HMM, ADDRESSING_ATS };

struct compute_instance {
    uint64_t serial; /* 0: a free slot */
    uint32_t id, slices, start, pad;
    unsigned char uuid[16];
};

struct gpu_instance {
    uint64_t serial; /* 0: a free slot */
    uint32_t id, profile, start, pad; /* profile: its place among the model's */
    struct compute_instance computes[MAX_COMPUTE_INSTANCES]; /* each in the slot of its id */
};

struct process {
    uint32_t pid, kind; /* pid 0: a free slot */
    uint32_t gpu_instance, compute_instance; /* NVML_NO_INSTANCE: on the whole card */
    uint64_t memory;
    uint32_t utilization, pad; /* of the multiprocessors, in percent */
};

struct card {
    uint32_t model, minor;
    uint32_t domain, bus, device;
    int32_t numa;
    char uuid[48], serial_number[32];
    uint64_t cpus[MAX_CPUS / 64];
    uint32_t links_count;
    int32_t links[MAX_LINKS]; /* the card at the other end, or SWITCH */
    uint32_t passthrough;
    uint32_t memory_clocks_count, memory_clocks[MAX_MEMORY_CLOCKS];
    uint32_t graphics_clocks[3]; /* highest, lowest, step; all 0: not served */
    uint32_t memory_clock, graphics_clock; /* what applications are set to; 0: the default */

    uint32_t fault, mig, mig_pending, compute_mode, persistence;
    uint32_t pad;
    struct gpu_instance instances[MAX_GPU_INSTANCES];
    struct process processes[MAX_PROCESSES];
};

struct event {
    uint64_t number; /* counts from 1 over the machine's life; 0: none yet */
    uint32_t card, xid;
};

struct machine {
    uint64_t magic, size, description; /* description: a hash of the text it was made from */
    uint64_t changes, layout;          /* how often it, and what its tree shows, was changed */
    uint64_t serials, boots, events_count;
    char driver[32];
    uint32_t cuda, addressing;
    uint32_t fabric, clique;
    unsigned char cluster[16];
    struct event events[MAX_EVENTS];
    uint32_t cards_count, pad;
    struct card cards[MAX_CARDS];
};

/* What a state begins with: it counts models and profiles as the catalogue has them, so another catalogue's is none. */
uint64_t machine_magic(void);
size_t machine_size(const struct machine *machine);
const struct model *card_model(const struct card *card);
const struct profile *instance_profile(const struct card *card, const struct gpu_instance *instance);
struct gpu_instance *card_instance(struct card *card, uint32_t id);
struct compute_instance *instance_compute(struct gpu_instance *instance, uint32_t id);
bool card_has_instances(const struct card *card);
bool card_is_idle(const struct card *card);
bool card_runs(const struct card *card, uint32_t gpu_instance, uint32_t compute_instance);
bool card_needs_reset(const struct card *card);
void card_clear_instances(struct card *card);
void card_clear_processes(struct card *card);
unsigned int machine_branch(const struct machine *machine);
unsigned int capability_minor(uint32_t card_minor, uint32_t gpu_instance);
void machine_add_event(struct machine *machine, uint32_t card, uint32_t xid);

/* Writes the 8-4-4-4-12 form of a UUID, 36 characters and a zero. */
void uuid_text(const unsigned char uuid[16], char text[37]);

#endif
