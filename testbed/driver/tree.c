/* The tree: every file of it follows from the machine. Those of instances come and go; the rest is written anew. */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cpulist.h"
#include "nvml.h"
#include "store.h"

enum { NVIDIA_MAJOR = 195, CONTROL_MINOR = 255, CAPS_MAJOR = 236, CONFIG_MINOR = 1, MONITOR_MINOR = 2 };

/* Where to write, and the first error: what follows it is left out. */
struct tree {
    const char *root;
    const struct machine *machine;
    int failed;
};

__attribute__((format(printf, 3, 0))) static bool place(struct tree *tree, char *path, const char *format,
                                                        va_list arguments)
{
    const int root = snprintf(path, PATH_LENGTH, "%s/", tree->root);
    int more = PATH_LENGTH;
    if (root > 0 && root < PATH_LENGTH)
        more = vsnprintf(path + root, (size_t)(PATH_LENGTH - root), format, arguments);
    if (more < 0 || root + more >= PATH_LENGTH)
        tree->failed = ENAMETOOLONG;
    return tree->failed == 0;
}

/* Makes the folders that lead to a path. */
static void make_way(struct tree *tree, char *path)
{
    for (char *slash = strchr(path + strlen(tree->root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            tree->failed = errno;
        *slash = '/';
    }
}

/* Opens a file for a text that is written to it next; NULL once something failed. */
__attribute__((format(printf, 2, 3))) static FILE *open_file(struct tree *tree, const char *format, ...)
{
    char path[PATH_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    const bool placed = place(tree, path, format, arguments);
    va_end(arguments);
    if (!placed)
        return NULL;
    make_way(tree, path);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        tree->failed = errno;
    return file;
}

static void close_file(struct tree *tree, FILE *file)
{
    if (file != NULL && fclose(file) != 0)
        tree->failed = errno;
}

/* A device node; a plain file where we may not make one, since what reads the tree mostly asks whether it is there. */
__attribute__((format(printf, 4, 5))) static void make_node(struct tree *tree, unsigned int major_number,
                                                            unsigned int minor_number, const char *format, ...)
{
    char path[PATH_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    const bool placed = place(tree, path, format, arguments);
    va_end(arguments);
    if (!placed)
        return;
    make_way(tree, path);
    if (mknod(path, S_IFCHR | 0666, makedev(major_number, minor_number)) == 0) {
        chmod(path, 0666);
        return;
    }
    if (errno == EEXIST)
        return;
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        tree->failed = errno;
    else
        close(file);
}

/* Removes a file, or an empty folder, that may not be there. */
__attribute__((format(printf, 2, 3))) static void remove_entry(struct tree *tree, const char *format, ...)
{
    char path[PATH_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    const bool placed = place(tree, path, format, arguments);
    va_end(arguments);
    if (placed && remove(path) != 0 && errno != ENOENT)
        tree->failed = errno;
}

__attribute__((format(printf, 2, 3))) static bool is_there(struct tree *tree, const char *format, ...)
{
    char path[PATH_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    const bool placed = place(tree, path, format, arguments);
    va_end(arguments);
    return placed && access(path, F_OK) == 0;
}

/* A new id with each boot, the same for whoever asks in between. */
static void write_boot(struct tree *tree)
{
    const uint64_t *text = &tree->machine->description;
    FILE *file = open_file(tree, "proc/sys/kernel/random/boot_id");
    if (file != NULL)
        fprintf(file, "%08x-%04x-4000-8000-%012llx\n", (unsigned int)*text, (unsigned int)(*text >> 32 & 0xffff),
                (unsigned long long)tree->machine->boots);
    close_file(tree, file);
}

static void write_access(struct tree *tree, FILE *file, unsigned int minor_number, unsigned int mode)
{
    if (file != NULL)
        fprintf(file, "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n", minor_number, mode);
    close_file(tree, file);
}

/* Every capability there can be, as the driver lists them whether they are or not. */
static void write_minors(struct tree *tree)
{
    FILE *file = open_file(tree, "proc/driver/nvidia-caps/mig-minors");
    if (file == NULL)
        return;
    fprintf(file, "config %d\nmonitor %d\n", CONFIG_MINOR, MONITOR_MINOR);
    for (unsigned int card = 0; card < MAX_CARDS; card++)
        for (unsigned int gi = 0; gi < GPU_INSTANCE_IDS; gi++) {
            const unsigned int first = capability_minor(card, gi);
            fprintf(file, "gpu%u/gi%u/access %u\n", card, gi, first);
            for (unsigned int ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++)
                fprintf(file, "gpu%u/gi%u/ci%u/access %u\n", card, gi, ci, first + 1 + ci);
        }
    close_file(tree, file);
}

static void write_driver(struct tree *tree)
{
    FILE *file = open_file(tree, "proc/driver/nvidia/version");
    if (file != NULL)
        fprintf(file, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  simulated\n", tree->machine->driver);
    close_file(tree, file);
    file = open_file(tree, "proc/driver/nvidia/params");
    if (file != NULL)
        fputs("ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n", file);
    close_file(tree, file);
    file = open_file(tree, "proc/modules");
    if (file != NULL)
        fputs("nvidia 1 0 - Live 0x0000000000000000 (POE)\n", file);
    close_file(tree, file);
    write_access(tree, open_file(tree, "proc/driver/nvidia/capabilities/mig/config"), CONFIG_MINOR, 0400);
    write_access(tree, open_file(tree, "proc/driver/nvidia/capabilities/mig/monitor"), MONITOR_MINOR, 0444);
    make_node(tree, NVIDIA_MAJOR, CONTROL_MINOR, "dev/nvidiactl");
    make_node(tree, CAPS_MAJOR, CONFIG_MINOR, "dev/nvidia-caps/nvidia-cap%d", CONFIG_MINOR);
    make_node(tree, CAPS_MAJOR, MONITOR_MINOR, "dev/nvidia-caps/nvidia-cap%d", MONITOR_MINOR);
}

static void write_sys(struct tree *tree, const struct card *card, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void write_sys(struct tree *tree, const struct card *card, const char *name, const char *format, ...)
{
    FILE *file =
        open_file(tree, "sys/bus/pci/devices/%04x:%02x:%02x.0/%s", card->domain, card->bus, card->device, name);
    if (file != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vfprintf(file, format, arguments);
        va_end(arguments);
    }
    close_file(tree, file);
}

static void write_pci(struct tree *tree, const struct card *card)
{
    const unsigned int device = card_model(card)->pci_device;
    char cpus[4 * MAX_CPUS];
    cpulist_write(card->cpus, MAX_CPUS, cpus, sizeof cpus);
    write_sys(tree, card, "vendor", "0x10de\n");
    write_sys(tree, card, "device", "0x%04x\n", device);
    write_sys(tree, card, "subsystem_vendor", "0x0000\n"); /* as NVML: not known */
    write_sys(tree, card, "subsystem_device", "0x0000\n");
    write_sys(tree, card, "class", "0x030200\n");
    write_sys(tree, card, "numa_node", "%d\n", card->numa);
    write_sys(tree, card, "local_cpulist", "%s\n", cpus);
    write_sys(tree, card, "resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
    char header[256] = {(char)0xde, 0x10, (char)(device & 0xff), (char)(device >> 8)};
    header[10] = 0x02; /* 3D controller */
    header[11] = 0x03;
    FILE *file = open_file(tree, "sys/bus/pci/devices/%04x:%02x:%02x.0/config", card->domain, card->bus, card->device);
    if (file != NULL)
        fwrite(header, 1, sizeof header, file);
    close_file(tree, file);
}

static void write_card(struct tree *tree, const struct card *card)
{
    FILE *file =
        open_file(tree, "proc/driver/nvidia/gpus/%04x:%02x:%02x.0/information", card->domain, card->bus, card->device);
    if (file != NULL)
        fprintf(file,
                "Model: \t\t %s\nIRQ:   \t\t 16\nGPU UUID: \t %s\nBus Type: \t PCIe\n"
                "Bus Location: \t %04x:%02x:%02x.0\nDevice Minor: \t %u\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
                card_model(card)->driver_name, card->uuid, card->domain, card->bus, card->device, card->minor,
                tree->machine->driver);
    close_file(tree, file);
    write_pci(tree, card);
    make_node(tree, NVIDIA_MAJOR, card->minor, "dev/nvidia%u", card->minor);
}

static void remove_card(struct tree *tree, const struct card *card)
{
    static const char *const entries[] = {"vendor",    "device",        "subsystem_vendor", "subsystem_device", "class",
                                          "numa_node", "local_cpulist", "resource",         "config",           ""};
    for (unsigned int i = 0; i < sizeof entries / sizeof entries[0]; i++)
        remove_entry(tree, "sys/bus/pci/devices/%04x:%02x:%02x.0/%s", card->domain, card->bus, card->device,
                     entries[i]);
    remove_entry(tree, "proc/driver/nvidia/gpus/%04x:%02x:%02x.0/information", card->domain, card->bus, card->device);
    remove_entry(tree, "proc/driver/nvidia/gpus/%04x:%02x:%02x.0", card->domain, card->bus, card->device);
    remove_entry(tree, "dev/nvidia%u", card->minor);
}

static void write_instance(struct tree *tree, const struct card *card, struct gpu_instance *gi)
{
    static const char access[] = "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/access";
    const unsigned int first = capability_minor(card->minor, gi->id);
    write_access(tree, open_file(tree, access, card->minor, gi->id), first, 0444);
    make_node(tree, CAPS_MAJOR, first, "dev/nvidia-caps/nvidia-cap%u", first);
    for (uint32_t ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
        if (instance_compute(gi, ci) == NULL)
            continue;
        FILE *file =
            open_file(tree, "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u/access", card->minor, gi->id, ci);
        write_access(tree, file, first + 1 + ci, 0444);
        make_node(tree, CAPS_MAJOR, first + 1 + ci, "dev/nvidia-caps/nvidia-cap%u", first + 1 + ci);
    }
}

/* Takes away what is there of a GPU instance, or of those of its compute instances that are not. */
static void remove_instance(struct tree *tree, const struct card *card, uint32_t id, struct gpu_instance *gi)
{
    static const char folder[] = "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u";
    const unsigned int first = capability_minor(card->minor, id);
    for (uint32_t ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
        if (gi != NULL && instance_compute(gi, ci) != NULL)
            continue;
        remove_entry(tree, "dev/nvidia-caps/nvidia-cap%u", first + 1 + ci);
        remove_entry(tree, "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u/access", card->minor, id, ci);
        remove_entry(tree, "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u", card->minor, id, ci);
    }
    if (gi != NULL)
        return;
    remove_entry(tree, "dev/nvidia-caps/nvidia-cap%u", first);
    remove_entry(tree, "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/access", card->minor, id);
    remove_entry(tree, folder, card->minor, id);
}

int tree_write(const char *root, const struct machine *machine)
{
    struct tree tree = {.root = root, .machine = machine};
    const uint64_t before = store_tree(root);
    if (before == 0) {
        write_minors(&tree);
        write_driver(&tree);
    }
    write_boot(&tree);
    for (unsigned int slot = 0; slot < machine->cards_count; slot++) {
        struct card card = machine->cards[slot];
        /* A device file is the last of a card that is made, and the last that goes. */
        const bool shown = is_there(&tree, "dev/nvidia%u", card.minor);
        if (card.fault == FAULT_ABSENT && shown)
            remove_card(&tree, &card);
        else if (card.fault != FAULT_ABSENT && !shown)
            write_card(&tree, &card);
        for (uint32_t id = 0; id < GPU_INSTANCE_IDS; id++) {
            struct gpu_instance *gi = card.fault == FAULT_ABSENT ? NULL : card_instance(&card, id);
            if (is_there(&tree, "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u", card.minor, id))
                remove_instance(&tree, &card, id, gi);
            if (gi != NULL)
                write_instance(&tree, &card, gi);
        }
    }
    return tree.failed == 0 ? store_set_tree(root, machine->layout) : tree.failed;
}
