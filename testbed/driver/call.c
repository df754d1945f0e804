/* The frame of every call. What it holds beyond the state is only how often the library is initialised. */
#include "call.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "description.h"
#include "fault.h"

enum { HANG_LOOK_MICROSECONDS = 20000 };

/* The machine of a process without GPUSIM_ROOT: Slurm's prolog has an empty environment. */
static const char *const DEFAULT_ROOT = "/var/lib/gpusim";

static struct {
    pthread_mutex_t mutex;
    unsigned int initialised;
    char root[PATH_LENGTH];
} library = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static nvmlReturn_t result_of(int error)
{
    switch (error) {
    case 0:
        return NVML_SUCCESS;
    case EACCES:
    case EPERM:
    case EROFS:
        return NVML_ERROR_NO_PERMISSION;
    case ENOENT:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    case EPROTO:
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    case ENOMEM:
        return NVML_ERROR_MEMORY;
    default:
        return NVML_ERROR_OPERATING_SYSTEM;
    }
}

/* Makes the machine of GPUSIM_MACHINE where there is none yet; a state that was made from another is refused. */
static nvmlReturn_t load(const char *root)
{
    const char *description = getenv("GPUSIM_MACHINE");
    if (description != NULL && description[0] != '\0') {
        char why[512];
        const int failed = description_load(root, description, why, sizeof why);
        if (failed != 0)
            fprintf(stderr, "gpusim: %s\n", why);
        if (failed != 0)
            return failed == EINVAL ? NVML_ERROR_DRIVER_NOT_LOADED : result_of(failed);
    }
    struct store store;
    const int failed = store_read(root, &store);
    if (failed == 0)
        store_close(&store);
    return result_of(failed);
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    const nvmlReturn_t planned = fault_call("nvmlInit");
    if (planned != NVML_SUCCESS)
        return planned;
    if ((flags & ~(unsigned int)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH)) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    const char *root = getenv("GPUSIM_ROOT");
    if (root == NULL || root[0] == '\0')
        root = DEFAULT_ROOT;
    if (strlen(root) >= PATH_LENGTH)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    pthread_mutex_lock(&library.mutex);
    nvmlReturn_t result = NVML_SUCCESS;
    if (library.initialised > 0 && strcmp(library.root, root) != 0) {
        result = NVML_ERROR_ALREADY_INITIALIZED; /* over another machine: a slip of a test */
    } else if (library.initialised == 0) {
        snprintf(library.root, sizeof library.root, "%s", root);
        result = load(library.root);
    }
    if (result == NVML_SUCCESS)
        library.initialised++;
    pthread_mutex_unlock(&library.mutex);
    return result;
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void) ALIAS(nvmlInit_v2);

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    const nvmlReturn_t result = call_check(__func__);
    if (result != NVML_SUCCESS)
        return result;
    pthread_mutex_lock(&library.mutex);
    library.initialised--;
    pthread_mutex_unlock(&library.mutex);
    return NVML_SUCCESS;
}

nvmlReturn_t call_check(const char *function)
{
    pthread_mutex_lock(&library.mutex);
    const bool initialised = library.initialised > 0;
    pthread_mutex_unlock(&library.mutex);
    if (!initialised)
        return NVML_ERROR_UNINITIALIZED;
    return function == NULL ? NVML_SUCCESS : fault_call(function);
}

nvmlReturn_t call_unserved(const char *function)
{
    const nvmlReturn_t result = call_check(function);
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

const char *call_root(void)
{
    return library.root;
}

/* What a broken card answers; a hanging one is waited for by the caller. */
static nvmlReturn_t answer_of(const struct card *card)
{
    switch ((enum fault)card->fault) {
    case FAULT_LOST:
    case FAULT_ABSENT:
        return NVML_ERROR_GPU_IS_LOST;
    case FAULT_UNKNOWN:
        return NVML_ERROR_UNKNOWN;
    case FAULT_RESET_REQUIRED:
        return NVML_ERROR_RESET_REQUIRED;
    default:
        return NVML_SUCCESS;
    }
}

static nvmlReturn_t aim(struct call *call, const void *handle, unsigned int kinds)
{
    if (kinds == NOTHING)
        return NVML_SUCCESS;
    const bool known = handle_read(handle, call->machine, &call->on);
    if (call->on.card != NULL) {
        const nvmlReturn_t result = answer_of(call->on.card);
        if (result != NVML_SUCCESS)
            return result;
    }
    if (!known)
        return NVML_ERROR_INVALID_ARGUMENT;
    call->card = call->on.card;
    if ((call->on.kind & kinds) != 0)
        return NVML_SUCCESS;
    const unsigned int devices = CARD | MIG;
    return (call->on.kind & devices) != 0 && (kinds & devices) != 0 ? NVML_ERROR_NOT_SUPPORTED
                                                                    : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t call_begin(struct call *call, const char *function, enum access access, const void *handle,
                        unsigned int kinds, bool valid)
{
    nvmlReturn_t result = call_check(function);
    if (result != NVML_SUCCESS)
        return result;
    if (access == PRIVILEGED && !store_may_change(library.root))
        return NVML_ERROR_NO_PERMISSION;
    for (;;) {
        memset(call, 0, sizeof *call);
        result = result_of((access == CHANGE ? store_lock : store_read)(library.root, &call->store));
        if (result != NVML_SUCCESS)
            return result;
        call->machine = call->store.machine;
        result = aim(call, handle, kinds);
        if (call->on.card == NULL || call->on.card->fault != FAULT_HANG)
            break;
        store_close(&call->store);
        usleep(HANG_LOOK_MICROSECONDS);
    }
    if (result == NVML_SUCCESS && !valid)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        store_close(&call->store);
    return result;
}

nvmlReturn_t call_end(struct call *call, nvmlReturn_t result)
{
    if (result == NVML_SUCCESS && call->store.lock >= 0)
        result = result_of(store_commit(library.root, &call->store));
    store_close(&call->store);
    return result;
}

nvmlReturn_t call_other(struct call *call, const void *handle, struct target *other)
{
    if (!handle_read(handle, call->machine, other) || other->kind != CARD)
        return NVML_ERROR_INVALID_ARGUMENT;
    return answer_of(other->card);
}

unsigned int call_count(const struct machine *machine)
{
    unsigned int count = 0;
    for (unsigned int slot = 0; slot < machine->cards_count; slot++)
        count += machine->cards[slot].fault != FAULT_ABSENT;
    return count;
}

struct card *call_card(struct machine *machine, unsigned int index, unsigned int *slot)
{
    for (*slot = 0; *slot < machine->cards_count; ++*slot)
        if (machine->cards[*slot].fault != FAULT_ABSENT && index-- == 0)
            return &machine->cards[*slot];
    return NULL;
}

unsigned int call_index(const struct machine *machine, unsigned int slot)
{
    unsigned int index = 0;
    for (unsigned int before = 0; before < slot; before++)
        index += machine->cards[before].fault != FAULT_ABSENT;
    return index;
}

nvmlReturn_t call_text(char *buffer, unsigned int length, const char *text)
{
    const size_t needed = strlen(text) + 1;
    if (needed > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, needed);
    return NVML_SUCCESS;
}
