/* What GPU instances a card offers, and whether one more has a place. */
#ifndef GPUSIM_GPUPROFILE_H
#define GPUSIM_GPUPROFILE_H

#include "call.h"

/* The profile with this id among those that the card and its driver offer, as a place among the model's; -1: none. */
int gpuprofile_by_id(const struct machine *machine, const struct card *card, unsigned int id);

/* Whether an instance of the profile fits at `start` beside those that are there. */
bool gpuprofile_fits(const struct card *card, unsigned int profile, unsigned int start);

/* How many instances of it there are. */
unsigned int gpuprofile_present(const struct card *card, unsigned int profile);

#endif
