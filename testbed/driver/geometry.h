/* What a GPU model is and what MIG can cut from it, as build/geometry.c has it from hybridgpu's catalogue.
 *
 * Data only: generate.py writes it, so that the simulated card and hybridgpu cannot disagree by a slip of the pen. */
#ifndef GPUSIM_GEOMETRY_H
#define GPUSIM_GEOMETRY_H

enum { MAX_PROFILES = 16, MAX_STARTS = 8 };

struct engines {
    unsigned int multiprocessors, copy, decoders, encoders, jpegs, ofas;
};

/* `enumerated` is NVML's number of the kind, `id` the profile's id, as nvidia-smi shows it. `scarce` counts the media
 * engines that instances compete for, where a card has too few for every combination. */
struct profile {
    char name[24];
    unsigned int enumerated, id, compute, size, count, memory_mib, min_branch;
    struct {
        unsigned int decoders, ofas;
    } scarce;
    struct engines engines;
    unsigned int starts_count, starts[MAX_STARTS];
};

struct model {
    char name[64], driver_name[64];
    unsigned int pci_device, memory_mib, major, minor, brand, slices, compute_slices, multiprocessors;
    unsigned int profiles_count;
    struct profile profiles[MAX_PROFILES];
};

extern const struct model models[];
extern const unsigned int models_count;
extern const unsigned long long models_hash; /* of the whole table: a state is only of the one it was made with */

#endif
