/* The state file: read, locked, replaced. Knows nothing of what it holds beyond its size. */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "tree.h"

static int join(char *path, const char *root, const char *name)
{
    const int length = snprintf(path, PATH_LENGTH, "%s/%s", root, name);
    return length < 0 || length >= PATH_LENGTH ? ENAMETOOLONG : 0;
}

/* Maps the state file to be read; the mapping stays what it was when another takes its name. */
static int map(const char *root, struct machine **machine, size_t *size)
{
    char path[PATH_LENGTH];
    int failed = join(path, root, "gpusim.state");
    if (failed != 0)
        return failed;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    struct stat found;
    void *mapped = MAP_FAILED;
    if (fstat(file, &found) == 0 && (size_t)found.st_size >= offsetof(struct machine, cards))
        mapped = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return EPROTO;
    *machine = mapped;
    *size = (size_t)found.st_size;
    if ((*machine)->magic == machine_magic() && (*machine)->cards_count <= MAX_CARDS &&
        (*machine)->size == sizeof(struct machine) && machine_size(*machine) == *size)
        return 0;
    munmap(mapped, *size);
    return EPROTO;
}

int store_read(const char *root, struct store *store)
{
    store->lock = -1;
    return map(root, &store->machine, &store->size);
}

static int take_lock(const char *root, int *lock)
{
    char path[PATH_LENGTH];
    const int failed = join(path, root, "gpusim.lock");
    if (failed != 0)
        return failed;
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*lock < 0)
        return errno;
    while (flock(*lock, LOCK_EX) != 0)
        if (errno != EINTR) {
            const int error = errno;
            close(*lock);
            return error;
        }
    return 0;
}

int store_lock(const char *root, struct store *store)
{
    store->machine = NULL;
    int failed = take_lock(root, &store->lock);
    if (failed != 0)
        return failed;
    struct machine *mapped;
    failed = map(root, &mapped, &store->size);
    if (failed == 0) {
        store->machine = calloc(1, sizeof *store->machine);
        if (store->machine != NULL)
            memcpy(store->machine, mapped, store->size);
        else
            failed = ENOMEM;
        munmap(mapped, store->size);
    }
    /* Whoever was killed between a change and its tree left the tree to us. */
    if (failed == 0 && store_tree(root) != store->machine->layout)
        failed = tree_write(root, store->machine);
    if (failed != 0) {
        close(store->lock);
        free(store->machine);
    }
    return failed;
}

/* Whether we may take the lock, by the rights we act with. */
bool store_may_change(const char *root)
{
    char path[PATH_LENGTH];
    return join(path, root, "gpusim.lock") == 0 && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static int write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(file, bytes, size);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        }
    }
    return 0;
}

/* Puts bytes under a name in one step, so that who reads sees all or nothing of them. */
static int replace(const char *root, const char *name, const void *bytes, size_t size, bool is_change)
{
    char path[PATH_LENGTH], fresh[PATH_LENGTH];
    char beside[64];
    snprintf(beside, sizeof beside, "%s.new", name);
    int failed = join(path, root, name);
    if (failed == 0)
        failed = join(fresh, root, beside);
    if (failed != 0)
        return failed;
    const int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        return errno;
    failed = write_all(file, bytes, size / 2);
    if (is_change)
        fault_point(POINT_HALF_WRITTEN);
    if (failed == 0)
        failed = write_all(file, (const char *)bytes + size / 2, size - size / 2);
    close(file);
    if (failed == 0 && rename(fresh, path) != 0)
        failed = errno;
    return failed;
}

int store_commit(const char *root, struct store *store)
{
    store->machine->changes++;
    fault_count_change();
    fault_point(POINT_BEFORE_CHANGE);
    int failed = replace(root, "gpusim.state", store->machine, store->size, true);
    if (failed != 0)
        return failed;
    fault_point(POINT_AFTER_CHANGE);
    if (store_tree(root) != store->machine->layout)
        failed = tree_write(root, store->machine);
    return failed;
}

void store_close(struct store *store)
{
    if (store->machine == NULL)
        return;
    if (store->lock < 0) {
        munmap(store->machine, store->size);
    } else {
        free(store->machine);
        close(store->lock);
    }
    store->machine = NULL;
}

int store_create(const char *root, const struct machine *machine)
{
    int lock;
    int failed = take_lock(root, &lock);
    if (failed != 0)
        return failed;
    struct machine *there;
    size_t size;
    failed = map(root, &there, &size);
    if (failed == 0) {
        munmap(there, size);
        failed = EEXIST;
    } else if (failed == ENOENT) {
        failed = replace(root, "gpusim.state", machine, machine_size(machine), false);
        if (failed == 0)
            failed = tree_write(root, machine);
    }
    close(lock);
    return failed;
}

uint64_t store_tree(const char *root)
{
    char path[PATH_LENGTH], text[32] = {0};
    if (join(path, root, "gpusim.tree") != 0)
        return 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? strtoull(text, NULL, 10) : 0;
}

int store_set_tree(const char *root, uint64_t layout)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)layout);
    return replace(root, "gpusim.tree", text, (size_t)length, false);
}
