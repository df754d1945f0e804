/* The plan of faults: read, counted, carried out. */
#include "fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ENTRIES = 16, NAME_LENGTH = 64, HANG = -2, ENDLESS = 3600 };

struct entry {
    char function[NAME_LENGTH];
    unsigned long number, counted; /* number 0: each */
    int answer;                    /* an nvmlReturn_t, HANG, or an enum point for `change` */
};

/* The plan belongs to the process, as its counts do. */
static struct {
    pthread_mutex_t mutex;
    bool read;
    unsigned int count;
    struct entry entries[MAX_ENTRIES];
    enum point due;
} plan = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"UNINITIALIZED", NVML_ERROR_UNINITIALIZED},
    {"INVALID_ARGUMENT", NVML_ERROR_INVALID_ARGUMENT},
    {"NOT_SUPPORTED", NVML_ERROR_NOT_SUPPORTED},
    {"NO_PERMISSION", NVML_ERROR_NO_PERMISSION},
    {"NOT_FOUND", NVML_ERROR_NOT_FOUND},
    {"INSUFFICIENT_SIZE", NVML_ERROR_INSUFFICIENT_SIZE},
    {"INSUFFICIENT_POWER", NVML_ERROR_INSUFFICIENT_POWER},
    {"DRIVER_NOT_LOADED", NVML_ERROR_DRIVER_NOT_LOADED},
    {"TIMEOUT", NVML_ERROR_TIMEOUT},
    {"IRQ_ISSUE", NVML_ERROR_IRQ_ISSUE},
    {"LIBRARY_NOT_FOUND", NVML_ERROR_LIBRARY_NOT_FOUND},
    {"FUNCTION_NOT_FOUND", NVML_ERROR_FUNCTION_NOT_FOUND},
    {"CORRUPTED_INFOROM", NVML_ERROR_CORRUPTED_INFOROM},
    {"GPU_IS_LOST", NVML_ERROR_GPU_IS_LOST},
    {"RESET_REQUIRED", NVML_ERROR_RESET_REQUIRED},
    {"OPERATING_SYSTEM", NVML_ERROR_OPERATING_SYSTEM},
    {"LIB_RM_VERSION_MISMATCH", NVML_ERROR_LIB_RM_VERSION_MISMATCH},
    {"IN_USE", NVML_ERROR_IN_USE},
    {"MEMORY", NVML_ERROR_MEMORY},
    {"NO_DATA", NVML_ERROR_NO_DATA},
    {"INSUFFICIENT_RESOURCES", NVML_ERROR_INSUFFICIENT_RESOURCES},
    {"ARGUMENT_VERSION_MISMATCH", NVML_ERROR_ARGUMENT_VERSION_MISMATCH},
    {"NOT_READY", NVML_ERROR_NOT_READY},
    {"GPU_NOT_FOUND", NVML_ERROR_GPU_NOT_FOUND},
    {"INVALID_STATE", NVML_ERROR_INVALID_STATE},
    {"UNKNOWN", NVML_ERROR_UNKNOWN},
    {"HANG", HANG},
};

static const struct {
    const char *name;
    int point;
} points[] = {{"before", POINT_BEFORE_CHANGE}, {"half", POINT_HALF_WRITTEN}, {"after", POINT_AFTER_CHANGE}};

int fault_error(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strlen(errors[i].name) == length && strncmp(errors[i].name, name, length) == 0)
            return errors[i].number;
    return -1;
}

static int answer_of(const struct entry *entry, const char *word, size_t length)
{
    if (strcmp(entry->function, "change") != 0)
        return fault_error(word, length);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        if (strlen(points[i].name) == length && strncmp(points[i].name, word, length) == 0)
            return points[i].point;
    return -1;
}

/* Reads one entry of `length` characters. */
static bool read_entry(const char *text, size_t length, struct entry *entry)
{
    const char *at = memchr(text, '@', length);
    const char *equals = memchr(text, '=', length);
    if (at == NULL || equals == NULL || at > equals || (size_t)(at - text) >= NAME_LENGTH)
        return false;
    memset(entry, 0, sizeof *entry);
    memcpy(entry->function, text, (size_t)(at - text));
    char *end;
    entry->number = strtoul(at + 1, &end, 10);
    const bool each = at[1] == '*' && at + 2 == equals;
    if (!each && (end != equals || entry->number == 0))
        return false;
    entry->answer = answer_of(entry, equals + 1, length - (size_t)(equals + 1 - text));
    return entry->answer != -1;
}

static int read_plan(const char *text)
{
    plan.read = true;
    plan.count = 0;
    plan.due = POINT_NONE;
    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ",");
        if (plan.count == MAX_ENTRIES || !read_entry(text, length, &plan.entries[plan.count])) {
            fprintf(stderr, "gpusim: a fault plan is FUNCTION@N=ERROR,change@N=before|half|after: %s\n", text);
            plan.count = 0;
            return -1;
        }
        plan.count++;
        text += length + (text[length] == ',');
    }
    return 0;
}

int gpusim_faults(const char *text)
{
    pthread_mutex_lock(&plan.mutex);
    const int failed = read_plan(text);
    pthread_mutex_unlock(&plan.mutex);
    return failed;
}

/* What the plan says of one more occurrence of `what`: -1 nothing. */
static int count(const char *what, bool any_counts)
{
    int answer = -1;
    pthread_mutex_lock(&plan.mutex);
    if (!plan.read)
        read_plan(getenv("GPUSIM_FAULT"));
    for (unsigned int i = 0; i < plan.count; i++) {
        struct entry *entry = &plan.entries[i];
        const bool meant = strcmp(entry->function, what) == 0 || (any_counts && strcmp(entry->function, "*") == 0);
        if (meant && (++entry->counted == entry->number || entry->number == 0))
            answer = entry->answer;
    }
    pthread_mutex_unlock(&plan.mutex);
    return answer;
}

nvmlReturn_t fault_call(const char *function)
{
    const int answer = count(function, true);
    while (answer == HANG)
        sleep(ENDLESS);
    return answer == -1 ? NVML_SUCCESS : (nvmlReturn_t)answer;
}

void fault_count_change(void)
{
    const int point = count("change", false);
    plan.due = point == -1 ? POINT_NONE : (enum point)point;
}

void fault_point(enum point point)
{
    if (point != POINT_NONE && plan.due == point)
        kill(getpid(), SIGKILL);
}
