/* A description, read strictly: a key that means nothing is an error with its line, never passed over. */
#include "description.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cards.h"
#include "cpulist.h"
#include "json.h"
#include "store.h"

enum { MAX_DESCRIPTION = 1 << 20 };

/* Of keys that are read at another time than the rest. */
static bool read_nothing(struct context *context, const struct json *value, struct card *card)
{
    (void)context, (void)value, (void)card;
    return true;
}

static bool read_driver(struct context *context, const struct json *value, struct card *card)
{
    (void)card;
    if (strspn(value->text, "0123456789.") != strlen(value->text) || strchr(value->text, '.') == NULL)
        return keys_fail(context, value, "is not a version like 550.54.15");
    return keys_copy(context, value, context->machine->driver, sizeof context->machine->driver);
}

static bool read_cuda(struct context *context, const struct json *value, struct card *card)
{
    (void)card;
    unsigned int major, minor;
    int end = 0;
    if (value->text[strspn(value->text, "0123456789.")] != '\0' ||
        sscanf(value->text, "%3u.%1u%n", &major, &minor, &end) != 2 || value->text[end] != '\0')
        return keys_fail(context, value, "is not a version like 12.4");
    context->machine->cuda = major * 1000 + minor * 10;
    return true;
}

static bool read_name(struct context *context, const struct json *value, struct card *card)
{
    (void)card;
    return keys_copy(context, value, context->name, sizeof context->name);
}

static bool read_addressing(struct context *context, const struct json *value, struct card *card)
{
    (void)card;
    static const char *const modes[] = {"none", "hmm", "ats"};
    for (unsigned int i = 0; i < 3; i++)
        if (strcmp(value->text, modes[i]) == 0) {
            context->machine->addressing = ADDRESSING_NONE + i;
            return true;
        }
    return keys_fail(context, value, "must be none, hmm or ats");
}

static bool read_cluster(struct context *context, const struct json *value, struct card *card)
{
    (void)card;
    return keys_uuid(value->text, context->machine->cluster) || keys_fail(context, value, "is not a UUID");
}

static bool read_clique(struct context *context, const struct json *value, struct card *card)
{
    (void)card;
    if (value->number < 0 || value->number > INT32_MAX)
        return keys_fail(context, value, "must be 0 or more");
    context->machine->clique = (uint32_t)value->number;
    return true;
}

static bool read_fabric(struct context *context, const struct json *value, struct card *card)
{
    static const struct key keys[] = {
        {"cluster", JSON_STRING, read_cluster}, {"clique", JSON_NUMBER, read_clique}, {NULL, JSON_NULL, NULL}};
    context->machine->fabric = 1;
    return keys_read(context, value, keys, card);
}

/* The cards come last, whatever the order of the text: they take what is said of the machine. */
static const struct key machine_keys[] = {
    {"name", JSON_STRING, read_name},     {"driver", JSON_STRING, read_driver},
    {"cuda", JSON_STRING, read_cuda},     {"addressing", JSON_STRING, read_addressing},
    {"cpus", JSON_STRING, keys_cpus},     {"fabric", JSON_OBJECT, read_fabric},
    {"gpus", JSON_ARRAY, read_nothing},   {NULL, JSON_NULL, NULL},
};

static bool agree(const struct context *context, const struct json *gpus)
{
    const struct machine *machine = context->machine;
    for (unsigned int i = 0; i < machine->cards_count; i++)
        for (unsigned int j = 0; j < i; j++) {
            const struct card *one = &machine->cards[i], *other = &machine->cards[j];
            if (one->minor == other->minor || strcmp(one->uuid, other->uuid) == 0)
                return keys_fail(context, gpus, "two cards have the same minor or UUID");
            const uint64_t place = (uint64_t)one->domain << 32 | one->bus << 8 | one->device;
            if (place <= ((uint64_t)other->domain << 32 | other->bus << 8 | other->device))
                return keys_fail(context, gpus, "cards must stand in the order of their PCI addresses, each its own");
        }
    for (unsigned int i = 0; i < machine->cards_count; i++)
        for (unsigned int link = 0; link < machine->cards[i].links_count; link++)
            if (machine->cards[i].links[link] >= (int32_t)machine->cards_count ||
                machine->cards[i].links[link] == (int32_t)i)
                return keys_fail(context, gpus, "a link leads to the card itself, or to none");
    return true;
}

static bool read_machine(struct context *context, struct json *value)
{
    const struct json *gpus = value->kind == JSON_OBJECT ? keys_member(value, "gpus") : NULL;
    if (gpus == NULL)
        return keys_fail(context, value, "must be an object with `gpus`");
    return keys_read(context, value, machine_keys, NULL) && cards_read(context, gpus) && agree(context, gpus);
}

bool description_read(const char *text, struct machine *machine, char *why, size_t length)
{
    memset(machine, 0, sizeof *machine);
    machine->magic = machine_magic();
    machine->size = sizeof *machine;
    machine->description = keys_hash(text, 0);
    machine->layout = machine->serials = machine->boots = 1;
    machine->cuda = 13000;
    snprintf(machine->driver, sizeof machine->driver, "580.95.05");
    struct context context = {.machine = machine, .why = why, .length = length, .name = "machine"};
    const unsigned int online = cpulist_online();
    for (unsigned int cpu = 0; cpu < online && cpu < MAX_CPUS; cpu++)
        context.cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
    struct json *value = json_read(text, why, length);
    const bool read = value != NULL && read_machine(&context, value);
    json_free(value);
    return read;
}

/* The whole of a file, to be freed; NULL and an errno where it cannot be had. */
static char *read_file(const char *path, size_t *size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    int failed = 0;
    char *text = calloc(1, MAX_DESCRIPTION + 2); /* a byte to see that it is too long, and the end */
    if (text == NULL)
        failed = ENOMEM;
    for (*size = 0; failed == 0;) {
        const ssize_t got = read(file, text + *size, MAX_DESCRIPTION + 1 - *size);
        if (got == 0)
            break;
        if (got > 0)
            *size += (size_t)got;
        else if (errno != EINTR)
            failed = errno;
        if (*size > MAX_DESCRIPTION)
            failed = EFBIG;
    }
    close(file);
    if (failed == 0)
        return text;
    free(text);
    errno = failed;
    return NULL;
}

int description_load(const char *root, const char *path, char *why, size_t length)
{
    size_t size;
    char *text = read_file(path, &size);
    if (text == NULL) {
        const int error = errno;
        snprintf(why, length, "%s: %s", path, strerror(error));
        return error;
    }
    if (strlen(text) != size) {
        snprintf(why, length, "%s: a zero byte is there, %zu bytes in", path, strlen(text));
        free(text);
        return EINVAL;
    }
    struct store there;
    int failed = store_read(root, &there);
    if (failed == 0) {
        if (there.machine->description != keys_hash(text, 0)) {
            snprintf(why, length, "%s: the state in %s was made from another description", path, root);
            failed = EINVAL;
        }
        store_close(&there);
        free(text);
        return failed;
    }
    struct machine *machine = malloc(sizeof *machine);
    char place[256];
    if (machine == NULL) {
        failed = ENOMEM;
    } else if (!description_read(text, machine, place, sizeof place)) {
        snprintf(why, length, "%s:%s", path, place);
        failed = EINVAL;
    } else {
        failed = mkdir(root, 0755) != 0 && errno != EEXIST ? errno : store_create(root, machine);
        failed = failed == EEXIST ? 0 : failed; /* another process was quicker */
        snprintf(why, length, "%s: %s", root, strerror(failed));
    }
    free(machine);
    free(text);
    return failed;
}
