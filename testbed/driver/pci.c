/* Where a card is on the PCI bus, in each version's structure. */
#include <stdio.h>
#include <string.h>

#include "call.h"

enum { VENDOR = 0x10de, DISPLAY_CONTROLLER = 3, CONTROLLER_3D = 2 };

static unsigned int device_id(const struct card *card)
{
    return card_model(card)->pci_device << 16 | VENDOR;
}

static void write_info(const struct card *card, nvmlPciInfo_t *info)
{
    memset(info, 0, sizeof *info);
    info->domain = card->domain;
    info->bus = card->bus;
    info->device = card->device;
    info->pciDeviceId = device_id(card);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", card->domain & 0xffff, card->bus & 0xff,
             card->device & 0x1f);
    snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.0", card->domain, card->bus, card->device);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    write_info(call.card, info);
    return call_end(&call, NVML_SUCCESS);
}

/* The fields up to the subsystem's id; the words behind it were never given a meaning. */
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    nvmlPciInfo_t whole;
    write_info(call.card, &whole);
    memcpy(info, &whole, offsetof(nvmlPciInfo_v2_t, reserved));
    return call_end(&call, NVML_SUCCESS);
}

/* The first version: callers of it may have room for no more than the device's id. */
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    nvmlPciInfo_t whole;
    write_info(call.card, &whole);
    memcpy(info, &whole, offsetof(nvmlPciInfo_v2_t, pciSubSystemId));
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    if (info->version != NVML_STRUCT_VERSION(nvmlPciInfoExt_v1_t, 1))
        return call_end(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlPciInfo_t whole;
    write_info(call.card, &whole);
    info->domain = whole.domain;
    info->bus = whole.bus;
    info->device = whole.device;
    info->pciDeviceId = whole.pciDeviceId;
    info->pciSubSystemId = whole.pciSubSystemId;
    info->baseClass = DISPLAY_CONTROLLER;
    info->subClass = CONTROLLER_3D;
    memcpy(info->busId, whole.busId, sizeof info->busId);
    return call_end(&call, NVML_SUCCESS);
}

/* The other end of an NVLink. A switch has an address that no card has. */
static nvmlReturn_t write_remote(struct call *call, unsigned int link, nvmlPciInfo_t *info)
{
    if (call->card->links_count == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (link >= call->card->links_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    const int32_t peer = call->card->links[link];
    if (peer != SWITCH) {
        write_info(&call->machine->cards[peer], info);
        return NVML_SUCCESS;
    }
    memset(info, 0, sizeof *info);
    info->bus = 0xfe;
    info->pciDeviceId = 0x1af1u << 16 | VENDOR;
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:FE:00.0");
    snprintf(info->busId, sizeof info->busId, "00000000:FE:00.0");
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    return call_end(&call, write_remote(&call, link, info));
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_v2_t *info)
{
    CALL(READ, device, CARD, info != NULL);
    nvmlPciInfo_t whole;
    const nvmlReturn_t result = write_remote(&call, link, &whole);
    if (result == NVML_SUCCESS)
        memcpy(info, &whole, offsetof(nvmlPciInfo_v2_t, pciSubSystemId));
    return call_end(&call, result);
}
