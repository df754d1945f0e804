/* How a call of the API begins and ends: initialised, not to fail by plan, over one state, on a card that answers. */
#ifndef GPUSIM_CALL_H
#define GPUSIM_CALL_H

#include "handle.h"
#include "nvml.h"
#include "store.h"

/* PRIVILEGED only reads, but is root's by the reference: here his who may change the state. */
enum access { READ, PRIVILEGED, CHANGE };

struct call {
    struct store store;
    struct machine *machine;
    struct target on; /* what the handle means; nothing for calls without one */
    struct card *card;
};

/* Begins a call on a handle of one of `kinds`, or returns from the caller with the error; `valid` says whether its
 * other arguments can be taken at all. A wrong kind of device is NOT_SUPPORTED: some queries know no MIG device. */
#define CALL(access, handle, kinds, valid)                                                                            \
    struct call call;                                                                                                 \
    const nvmlReturn_t begun = call_begin(&call, __func__, access, handle, kinds, valid);                             \
    if (begun != NVML_SUCCESS)                                                                                        \
    return begun

nvmlReturn_t call_begin(struct call *call, const char *function, enum access access, const void *handle,
                        unsigned int kinds, bool valid);

/* Ends it: on success a changed state takes effect, else it is forgotten. Gives what the call is to return. */
nvmlReturn_t call_end(struct call *call, nvmlReturn_t result);

/* What a name of the API answers that this library does not serve. */
nvmlReturn_t call_unserved(const char *function);

/* Whether the library is initialised, and no plan says otherwise of this call; `function` is NULL where a call that was
 * counted goes on. And the root it is over. */
nvmlReturn_t call_check(const char *function);
const char *call_root(void);

/* Another card by its handle, for calls that take two. */
nvmlReturn_t call_other(struct call *call, const void *handle, struct target *other);

/* The cards that are there, counted in the order of their PCI addresses; NULL beyond the last. */
unsigned int call_count(const struct machine *machine);
struct card *call_card(struct machine *machine, unsigned int index, unsigned int *slot);
unsigned int call_index(const struct machine *machine, unsigned int slot);

/* Copies text into a caller's buffer: INSUFFICIENT_SIZE where it does not fit with its end. */
nvmlReturn_t call_text(char *buffer, unsigned int length, const char *text);

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlShutdown(void);

#endif
