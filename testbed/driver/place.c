/* Where a card is in the machine: CPUs and memory near it, other cards, links, the fabric. */
#include <string.h>

#include "call.h"

enum { WORD = 8 * sizeof(unsigned long) };

static nvmlReturn_t write_cpus(const struct card *card, unsigned int words, unsigned long *set)
{
    memset(set, 0, words * sizeof *set);
    for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++) {
        if ((card->cpus[cpu / 64] >> cpu % 64 & 1) == 0)
            continue;
        if (cpu / WORD >= words)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        set[cpu / WORD] |= 1ul << cpu % WORD;
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set)
{
    CALL(READ, device, CARD | MIG, set != NULL && words > 0);
    return call_end(&call, write_cpus(call.card, words, set));
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words, unsigned long *set,
                                                        nvmlAffinityScope_t scope)
{
    CALL(READ, device, CARD | MIG, set != NULL && words > 0 && scope <= 1);
    return call_end(&call, write_cpus(call.card, words, set));
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set,
                                                nvmlAffinityScope_t scope)
{
    CALL(READ, device, CARD | MIG, set != NULL && words > 0 && scope <= 1);
    if (call.card->numa < 0)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    memset(set, 0, words * sizeof *set);
    set[0] = 1ul << call.card->numa;
    return call_end(&call, NVML_SUCCESS);
}

/* Known are the NUMA nodes: what lies between two cards on one node was not described, nor anything of one on none. */
static nvmlReturn_t level_of(const struct target *one, const struct target *other, nvmlGpuTopologyLevel_t *level)
{
    if (one->slot == other->slot)
        *level = NVML_TOPOLOGY_INTERNAL;
    else if (one->card->numa < 0 || other->card->numa < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    else
        *level = one->card->numa == other->card->numa ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                        nvmlGpuTopologyLevel_t *level)
{
    CALL(READ, one, CARD, level != NULL);
    struct target target;
    nvmlReturn_t result = call_other(&call, other, &target);
    if (result == NVML_SUCCESS)
        result = level_of(&call.on, &target, level);
    return call_end(&call, result);
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                                     unsigned int *count, nvmlDevice_t *devices)
{
    CALL(READ, device, CARD, count != NULL && (devices != NULL || *count == 0));
    unsigned int found = 0;
    for (unsigned int slot = 0; slot < call.machine->cards_count; slot++) {
        struct target target = {.kind = CARD, .slot = slot, .card = &call.machine->cards[slot]};
        nvmlGpuTopologyLevel_t between;
        if (slot == call.on.slot || target.card->fault == FAULT_ABSENT ||
            level_of(&call.on, &target, &between) != NVML_SUCCESS || between != level)
            continue;
        if (devices != NULL && found < *count)
            devices[found] = handle_make(CARD, &target);
        found++;
    }
    if (devices == NULL || found < *count)
        *count = found;
    return call_end(&call, NVML_SUCCESS);
}

static nvmlReturn_t link_of(const struct card *card, unsigned int link)
{
    if (card->links_count == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return link < card->links_count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active)
{
    CALL(READ, device, CARD, active != NULL);
    const nvmlReturn_t result = link_of(call.card, link);
    if (result == NVML_SUCCESS) {
        const int32_t peer = call.card->links[link];
        const bool answers = peer == SWITCH || (call.machine->cards[peer].fault != FAULT_LOST &&
                                                call.machine->cards[peer].fault != FAULT_ABSENT);
        *active = answers ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    }
    return call_end(&call, result);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                        nvmlIntNvLinkDeviceType_t *type)
{
    CALL(READ, device, CARD, type != NULL);
    const nvmlReturn_t result = link_of(call.card, link);
    if (result == NVML_SUCCESS)
        *type = call.card->links[link] == SWITCH ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return call_end(&call, result);
}

/* A card of before Hopper cannot be part of a fabric; a later one says whether it is. */
static bool has_fabric(const struct card *card)
{
    return card_model(card)->major >= 9;
}

static void write_fabric(const struct machine *machine, nvmlGpuFabricInfo_v2_t *info)
{
    memcpy(info->clusterUuid, machine->cluster, sizeof info->clusterUuid);
    info->status = NVML_SUCCESS;
    info->cliqueId = machine->clique;
    info->state = machine->fabric ? NVML_GPU_FABRIC_STATE_COMPLETED : NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    info->healthMask = 0; /* every part of it: not supported */
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    if (!has_fabric(call.card))
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    nvmlGpuFabricInfo_v2_t whole;
    write_fabric(call.machine, &whole);
    memcpy(info->clusterUuid, whole.clusterUuid, sizeof info->clusterUuid);
    info->status = whole.status;
    info->cliqueId = whole.cliqueId;
    info->state = whole.state;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    const bool is_third = info->version == NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v3_t, 3);
    if (!is_third && info->version != NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v2_t, 2))
        return call_end(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (!has_fabric(call.card))
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    write_fabric(call.machine, info);
    if (is_third)
        ((nvmlGpuFabricInfo_v3_t *)info)->healthSummary = 0; /* not supported */
    return call_end(&call, NVML_SUCCESS);
}
