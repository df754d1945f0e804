/* The cards of a description. */
#ifndef GPUSIM_CARDS_H
#define GPUSIM_CARDS_H

#include "keys.h"

/* Adds every card of the list to the machine, which is known by then as to what they take from it. */
bool cards_read(struct context *context, const struct json *gpus);

#endif
