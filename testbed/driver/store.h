/* Where the machine is kept: one file below GPUSIM_ROOT, replaced as a whole, and one lock for those who change it.
 *
 * A reader maps whatever file has the name and needs no lock: files are never written to once they have it. A writer
 * changes a copy under the lock, and renames. Killed at any point it leaves the old state or the new one; the tree of
 * /proc, /dev and /sys is brought behind it by the next who takes the lock. */
#ifndef GPUSIM_STORE_H
#define GPUSIM_STORE_H

#include "machine.h"

enum { PATH_LENGTH = 4096 };

/* An opened state: mapped and not to be written to, or a copy under the lock. */
struct store {
    struct machine *machine;
    size_t size;
    int lock; /* -1: only read */
};

/* These give 0, or an errno: ENOENT where there is no state, EPROTO where it is another release's. */
int store_read(const char *root, struct store *store);
int store_lock(const char *root, struct store *store);
int store_commit(const char *root, struct store *store);
bool store_may_change(const char *root);
void store_close(struct store *store);

/* Writes the first state, unless there is one: EEXIST. */
int store_create(const char *root, const struct machine *machine);

/* What of the tree was brought up to date last: a machine's layout, 0 if nothing. */
uint64_t store_tree(const char *root);
int store_set_tree(const char *root, uint64_t layout);

#endif
