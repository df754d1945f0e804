/* Modes: MIG, compute, persistence.
 *
 * MIG mode by the MIG user guide and the API reference: before Hopper it needs a reset, which NVML tries itself. Where
 * the card is not idle, or is passed through to a machine that cannot reset it, the mode stays pending: the call
 * succeeds, and the activation status says why. From Hopper on nothing is ever pending: a card in use refuses. While
 * there are GPU instances MIG cannot be disabled (`In use by another client`): assumed of both, by what nvidia-smi is
 * reported to say. */
#include "mode.h"

#include "call.h"

void mode_activate(struct machine *machine, struct card *card, uint32_t mig)
{
    card->mig = card->mig_pending = mig;
    card->compute_mode = NVML_COMPUTEMODE_DEFAULT;
    card_clear_instances(card);
    machine->layout++;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    CALL(READ, device, CARD, current != NULL && pending != NULL);
    if (card_model(call.card)->profiles_count == 0)
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    *current = call.card->mig;
    *pending = call.card->mig_pending;
    return call_end(&call, NVML_SUCCESS);
}

static nvmlReturn_t set_mig(struct machine *machine, struct card *card, unsigned int mode, nvmlReturn_t *activation)
{
    *activation = NVML_SUCCESS;
    if (card_model(card)->profiles_count == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (card->mig == mode) {
        card->mig_pending = mode;
        return NVML_SUCCESS;
    }
    if (card_has_instances(card))
        return NVML_ERROR_IN_USE;
    if (!card_needs_reset(card)) {
        if (!card_is_idle(card))
            return NVML_ERROR_IN_USE;
        mode_activate(machine, card, mode);
        return NVML_SUCCESS;
    }
    card->mig_pending = mode;
    if (card->passthrough)
        *activation = NVML_ERROR_RESET_REQUIRED;
    else if (!card_is_idle(card))
        *activation = NVML_ERROR_IN_USE;
    else
        mode_activate(machine, card, mode);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    CALL(CHANGE, device, CARD, activation != NULL && mode <= NVML_DEVICE_MIG_ENABLE);
    return call_end(&call, set_mig(call.machine, call.card, mode, activation));
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    CALL(READ, device, CARD, mode != NULL);
    *mode = (nvmlComputeMode_t)call.card->compute_mode;
    return call_end(&call, NVML_SUCCESS);
}

/* EXCLUSIVE_THREAD is no longer supported; a card in MIG mode keeps DEFAULT (API reference). */
EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    CALL(CHANGE, device, CARD, mode <= NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
    if (mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD || (call.card->mig && mode != NVML_COMPUTEMODE_DEFAULT))
        return call_end(&call, NVML_ERROR_NOT_SUPPORTED);
    call.card->compute_mode = mode;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    CALL(READ, device, CARD, mode != NULL);
    *mode = call.card->persistence ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return call_end(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    CALL(CHANGE, device, CARD, mode <= NVML_FEATURE_ENABLED);
    call.card->persistence = mode;
    return call_end(&call, NVML_SUCCESS);
}
