/* The C code's own tests, to be run under ASan and UBSan: what the Python tests cannot reach, or only by chance.
 *
 * Every name called with nothing, with rubbish and with handles of every kind; descriptions cut off and bent at every
 * byte; cards of every model cut in every way at random. A failure ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "control.h"
#include "cpulist.h"
#include "description.h"
#include "fault.h"
#include "gpuprofile.h"
#include "json.h"
#include "names.h"

#define CHECK(what)                                                                                                   \
    do {                                                                                                              \
        if (!(what)) {                                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

static char root[] = P_tmpdir "/gpusim-check-XXXXXX";

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation);
nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                      const nvmlGpuInstancePlacement_t *placement,
                                                      nvmlGpuInstance_t *created);
nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned int id,
                                                  nvmlComputeInstance_t *created);
nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance);
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set);

/* A small generator of its own, so that each run is the same. */
static uint32_t random_number(uint32_t below)
{
    static uint64_t state = 20240229;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static void check_cpulist(void)
{
    uint64_t bits[MAX_CPUS / 64];
    char text[4 * MAX_CPUS];
    static const char *const good[] = {"0", "0-1023", "0-3,8,62-65", "1023"};
    static const char *const bad[] = {"", "-1", "1-", "1,", ",1", "3-1", "1024", "0-1024", "a", "1 "};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK(cpulist_read(good[i], bits, MAX_CPUS));
        cpulist_write(bits, MAX_CPUS, text, sizeof text);
        CHECK(strcmp(text, good[i]) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!cpulist_read(bad[i], bits, MAX_CPUS));
    for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu += 2)
        bits[cpu / 64] = UINT64_C(0x5555555555555555);
    for (size_t length = 1; length < sizeof text; length += 97) {
        cpulist_write(bits, MAX_CPUS, text, length);
        CHECK(strlen(text) < length);
    }
}

static const char description[] =
    "{\"name\": \"check\", \"driver\": \"550.54.15\", \"cuda\": \"12.4\", \"addressing\": \"ats\", \"cpus\": \"0-3\",\n"
    " \"fabric\": {\"cluster\": \"00112233-4455-6677-8899-aabbccddeeff\", \"clique\": 1},\n"
    " \"gpus\": [{\"model\": \"A100-SXM4-80GB\", \"minor\": 3, \"pci\": \"0000:07:00.0\", \"numa\": 0,\n"
    "   \"links\": [1]},\n"
    "  {\"model\": \"H100-80GB-HBM3\", \"minor\": 0, \"pci\": \"0001:07:00.0\", \"memory_clocks\": [2619],\n"
    "   \"graphics_clocks\": [1980, 345, 15], \"passthrough\": false, \"links\": [\"switch\", 0]}]}\n";

/* Cut off anywhere it is refused; bent anywhere it is refused or read, and never read beyond. */
static void check_descriptions(void)
{
    static struct machine machine;
    char why[256], text[sizeof description];
    CHECK(description_read(description, &machine, why, sizeof why));
    CHECK(machine.cards_count == 2 && machine.cards[0].minor == 3 && machine.cards[1].links[0] == SWITCH);
    for (size_t length = 0; length < sizeof description - 2; length++) {
        snprintf(text, sizeof text, "%.*s", (int)length, description);
        CHECK(!description_read(text, &machine, why, sizeof why) && why[0] != '\0');
    }
    static const char bends[] = {'"', '\\', '{', '}', '[', ']', ',', ':', '0', '-', 'x', ' ', '\n', '\x01', '\xff'};
    for (size_t at = 0; at < sizeof description - 1; at++)
        for (size_t bend = 0; bend < sizeof bends; bend++) {
            memcpy(text, description, sizeof text);
            text[at] = bends[bend];
            why[0] = '\0';
            CHECK(description_read(text, &machine, why, sizeof why) || why[0] != '\0');
        }
    for (size_t length = 1; length < sizeof why; length++) /* a message is cut off, not run over */
        CHECK(!description_read("{\"gpus\": [{\"model\": \"none\"}]}", &machine, why, length) && strlen(why) < length);
}

static void check_handles(void)
{
    static struct machine machine;
    machine.cards_count = 2;
    struct gpu_instance *gi = &machine.cards[1].instances[3];
    *gi = (struct gpu_instance){.serial = 0x1000007, .id = 14};
    gi->computes[7] = (struct compute_instance){.serial = 0x1000009, .id = 7};
    const struct target target = {
        .slot = 1, .card = &machine.cards[1], .gpu_instance = gi, .compute_instance = &gi->computes[7]};
    static const enum kind kinds[] = {CARD, MIG, GPU_INSTANCE, COMPUTE_INSTANCE};
    for (size_t i = 0; i < 4; i++) {
        struct target read;
        CHECK(handle_read(handle_make(kinds[i], &target), &machine, &read));
        CHECK(read.kind == kinds[i] && read.slot == 1 && read.card == target.card);
        CHECK(kinds[i] == CARD || read.gpu_instance == gi);
    }
    const void *handle = handle_make(MIG, &target);
    gi->computes[7].serial++;
    struct target read;
    CHECK(!handle_read(handle, &machine, &read));
    for (unsigned int i = 0; i < 100000; i++) /* nothing that a handle may hold leads astray */
        handle_read((const void *)(uintptr_t)(UINT64_C(1) << 45 | (uint64_t)random_number(UINT32_MAX) << 13 |
                                              (uint64_t)random_number(64) << 7),
                    &machine, &read);
}

static void make_machine(const char *text)
{
    char path[128], command[128];
    snprintf(command, sizeof command, "rm -rf %s/machine", root);
    CHECK(system(command) == 0);
    snprintf(path, sizeof path, "%s/machine.json", root);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    setenv("GPUSIM_MACHINE", path, 1);
    snprintf(path, sizeof path, "%s/machine", root);
    setenv("GPUSIM_ROOT", path, 1);
    CHECK(nvmlInit_v2() == NVML_SUCCESS);
}

/* The text calls with every length a buffer may have, exactly so long. */
static void check_texts(nvmlDevice_t device)
{
    for (unsigned int length = 0; length < 100; length++) {
        char *buffer = malloc(length == 0 ? 1 : length);
        CHECK(buffer != NULL);
        const nvmlReturn_t named = nvmlDeviceGetName(device, buffer, length);
        CHECK(named == NVML_ERROR_INSUFFICIENT_SIZE || (named == NVML_SUCCESS && strlen(buffer) < length));
        const nvmlReturn_t told = nvmlDeviceGetUUID(device, buffer, length);
        CHECK(told == NVML_ERROR_INSUFFICIENT_SIZE || (told == NVML_SUCCESS && strlen(buffer) < length));
        free(buffer);
    }
    unsigned long set[1];
    CHECK(nvmlDeviceGetCpuAffinity(device, 1, set) == NVML_SUCCESS && set[0] == 15);
}

/* One instance more, or one less, at random; the state must then agree with what was answered. */
static void cut_at_random(const struct model *model, nvmlDevice_t device, unsigned int steps)
{
    nvmlGpuInstance_t made[MAX_GPU_INSTANCES];
    nvmlComputeInstance_t inside[MAX_GPU_INSTANCES];
    unsigned int count = 0;
    for (unsigned int step = 0; step < steps; step++) {
        const struct profile *profile = &model->profiles[random_number(model->profiles_count)];
        const nvmlGpuInstancePlacement_t place = {
            .start = profile->starts[random_number(profile->starts_count)], .size = profile->size};
        nvmlGpuInstance_t created;
        const nvmlReturn_t result = nvmlDeviceCreateGpuInstanceWithPlacement(device, profile->id, &place, &created);
        CHECK(result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_RESOURCES);
        if (result == NVML_SUCCESS) {
            CHECK(count < model->compute_slices);
            made[count] = created;
            CHECK(nvmlGpuInstanceCreateComputeInstance(created, 0, &inside[count++]) == NVML_SUCCESS);
            continue;
        }
        const unsigned int gone = random_number(count);
        nvmlDevice_t mig;
        CHECK(nvmlDeviceGetMigDeviceHandleByIndex(device, count - 1, &mig) == NVML_SUCCESS);
        CHECK(nvmlDeviceGetMigDeviceHandleByIndex(device, count, &mig) == NVML_ERROR_NOT_FOUND);
        CHECK(nvmlGpuInstanceDestroy(made[gone]) == NVML_ERROR_IN_USE);
        CHECK(nvmlComputeInstanceDestroy(inside[gone]) == NVML_SUCCESS);
        CHECK(nvmlGpuInstanceDestroy(made[gone]) == NVML_SUCCESS);
        CHECK(nvmlGpuInstanceDestroy(made[gone]) == NVML_ERROR_INVALID_ARGUMENT);
        made[gone] = made[--count];
        inside[gone] = inside[count];
    }
}

static void check_models(void)
{
    for (unsigned int i = 0; i < models_count; i++) {
        const struct model *model = &models[i];
        if (model->profiles_count == 0)
            continue;
        char text[256];
        snprintf(text, sizeof text, "{\"cpus\": \"0-3\", \"driver\": \"600.1\", \"gpus\": [{\"model\": \"%s\"}]}",
                 model->name);
        make_machine(text);
        nvmlDevice_t device;
        nvmlReturn_t activation;
        CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
        CHECK(nvmlDeviceSetMigMode(device, 1, &activation) == NVML_SUCCESS && activation == NVML_SUCCESS);
        cut_at_random(model, device, 40);
        check_texts(device);
        char *shown = gpusim_show();
        char why[128];
        struct json *json = json_read(shown, why, sizeof why);
        CHECK(json != NULL);
        json_free(json);
        gpusim_free(shown);
        CHECK(gpusim_reset(0) == NVML_SUCCESS && gpusim_reboot() == NVML_SUCCESS);
        CHECK(nvmlShutdown() == NVML_SUCCESS);
    }
}

typedef nvmlReturn_t anything(const void *, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* Names whose first argument is no handle, but memory of the caller's: for them only NULL is a lie they must see. */
static bool takes_memory(const char *name)
{
    static const char *const starts[] = {"nvmlSystem", "nvmlGet", "nvmlDeviceGetCount", "nvmlDeviceGetHandleBy",
                                         "nvmlEventSetCreate"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* Every name with this handle and nothing else: none may follow it, or write to where nothing is. */
static void call_all(const void *handle)
{
    for (const struct name *name = names; name->text != NULL; name++) {
        if (strncmp(name->text, "nvmlInit", 8) == 0 || strcmp(name->text, "nvmlShutdown") == 0 ||
            strcmp(name->text, "nvmlErrorString") == 0 || (handle != NULL && takes_memory(name->text)))
            continue;
        const nvmlReturn_t result = ((anything *)name->function)(handle, 0, 0, 0, 0, 0);
        if (nvmlShutdown() == NVML_SUCCESS)
            CHECK(nvmlInit_v2() == NVML_SUCCESS);
        else
            CHECK(result == NVML_ERROR_UNINITIALIZED);
    }
}

static void check_names(void)
{
    make_machine("{\"gpus\": [{\"model\": \"A100-SXM4-80GB\"}, {\"model\": \"T4\"}]}");
    nvmlDevice_t device, mig, other;
    nvmlReturn_t activation;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    const nvmlGpuInstancePlacement_t place = {.start = 0, .size = 4};
    CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
    CHECK(nvmlDeviceGetHandleByIndex_v2(1, &other) == NVML_SUCCESS);
    CHECK(nvmlDeviceSetMigMode(device, 1, &activation) == NVML_SUCCESS);
    CHECK(nvmlDeviceCreateGpuInstanceWithPlacement(device, 9, &place, &gi) == NVML_SUCCESS);
    CHECK(nvmlGpuInstanceCreateComputeInstance(gi, 0, &ci) == NVML_SUCCESS);
    CHECK(nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mig) == NVML_SUCCESS);
    const void *const handles[] = {NULL, device, other, mig, gi, ci, (const void *)(uintptr_t)0x1234567890,
                                   (const void *)(uintptr_t)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
        call_all(handles[i]);
    CHECK(nvmlShutdown() == NVML_SUCCESS);
    call_all(NULL);
}

/* A state that was cut off, or is not one at all, is refused and not believed. */
static void check_states(void)
{
    make_machine("{\"gpus\": [{\"model\": \"T4\"}]}");
    CHECK(nvmlShutdown() == NVML_SUCCESS);
    char path[128];
    snprintf(path, sizeof path, "%s/machine/gpusim.state", root);
    unsetenv("GPUSIM_MACHINE");
    for (long size = 4000; size >= 0; size -= 160) {
        CHECK(truncate(path, size) == 0);
        CHECK(nvmlInit_v2() == NVML_ERROR_LIB_RM_VERSION_MISMATCH);
    }
    CHECK(unlink(path) == 0 && nvmlInit_v2() == NVML_ERROR_DRIVER_NOT_LOADED);
}

int main(void)
{
    CHECK(mkdtemp(root) != NULL);
    check_cpulist();
    check_descriptions();
    check_handles();
    check_models();
    check_names();
    check_states();
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK(system(command) == 0);
    puts("the C code is clean");
    return 0;
}
