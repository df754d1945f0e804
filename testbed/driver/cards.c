/* What a description says of cards, and what follows where it says nothing: addresses, minors, UUIDs. */
#include "cards.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FIRST_BUS = 4, BUS_STEP = 7 };

static bool read_uuid(struct context *context, const struct json *value, struct card *card)
{
    unsigned char uuid[16];
    char text[37];
    if (strncmp(value->text, "GPU-", 4) != 0 || !keys_uuid(value->text + 4, uuid))
        return keys_fail(context, value, "is not GPU- and 32 lower-case hexadecimal digits");
    uuid_text(uuid, text);
    snprintf(card->uuid, sizeof card->uuid, "GPU-%s", text);
    return true;
}

static bool read_model(struct context *context, const struct json *value, struct card *card)
{
    for (unsigned int i = 0; i < models_count; i++)
        if (strcasecmp(models[i].name, value->text) == 0 || strcasecmp(models[i].driver_name, value->text) == 0) {
            card->model = i;
            return true;
        }
    return keys_fail(context, value, "no such model in hybridgpu's catalogue");
}

static bool read_serial(struct context *context, const struct json *value, struct card *card)
{
    return keys_copy(context, value, card->serial_number, sizeof card->serial_number);
}

static bool read_minor(struct context *context, const struct json *value, struct card *card)
{
    if (value->number < 0 || value->number >= MAX_CARDS)
        return keys_fail(context, value, "must be 0 to 31");
    card->minor = (uint32_t)value->number;
    return true;
}

static bool read_pci(struct context *context, const struct json *value, struct card *card)
{
    int end = 0;
    const bool is_plain = value->text[strspn(value->text, "0123456789abcdefABCDEF:.")] == '\0'; /* no sign, no 0x */
    if (is_plain && sscanf(value->text, "%8x:%2x:%2x.0%n", &card->domain, &card->bus, &card->device, &end) == 3 &&
        end > 0 && value->text[end] == '\0' && card->device < 32)
        return true;
    return keys_fail(context, value, "is not a PCI address like 0000:07:00.0");
}

static bool read_numa(struct context *context, const struct json *value, struct card *card)
{
    if (value->number < -1 || value->number >= 64)
        return keys_fail(context, value, "must be -1 to 63");
    card->numa = (int32_t)value->number;
    return true;
}

static bool read_links(struct context *context, const struct json *value, struct card *card)
{
    for (const struct json *link = value->first; link != NULL; link = link->next) {
        const bool is_switch = link->kind == JSON_STRING && strcmp(link->text, "switch") == 0;
        const bool is_card = link->kind == JSON_NUMBER && link->number >= 0 && link->number < MAX_CARDS;
        if (card->links_count == MAX_LINKS || (!is_switch && !is_card))
            return keys_fail(context, value, "must be up to 36 indices of GPUs, or \"switch\"");
        card->links[card->links_count++] = is_switch ? SWITCH : (int32_t)link->number;
    }
    return true;
}

static bool read_passthrough(struct context *context, const struct json *value, struct card *card)
{
    (void)context;
    card->passthrough = value->kind == JSON_TRUE;
    return true;
}

static bool read_numbers(const struct context *context, const struct json *value, uint32_t *to, uint32_t *count,
                         unsigned int limit)
{
    *count = 0;
    for (const struct json *number = value->first; number != NULL; number = number->next) {
        if (*count == limit || number->kind != JSON_NUMBER || number->number < 1 || number->number > 100000)
            return keys_fail(context, value, "must be a short list of MHz");
        to[(*count)++] = (uint32_t)number->number;
    }
    return true;
}

static bool read_memory_clocks(struct context *context, const struct json *value, struct card *card)
{
    return read_numbers(context, value, card->memory_clocks, &card->memory_clocks_count, MAX_MEMORY_CLOCKS);
}

static bool read_graphics_clocks(struct context *context, const struct json *value, struct card *card)
{
    uint32_t count;
    if (!read_numbers(context, value, card->graphics_clocks, &count, 3))
        return false;
    if (count != 3 || card->graphics_clocks[1] > card->graphics_clocks[0])
        return keys_fail(context, value, "must be the highest, the lowest and the step");
    return true;
}

/* Only judged here: add_cards goes by it, and judges it before. */
static bool read_count(struct context *context, const struct json *value, struct card *card)
{
    (void)card;
    return (value->number >= 1 && value->number <= MAX_CARDS) || keys_fail(context, value, "must be 1 to 32");
}

static const struct key card_keys[] = {
    {"model", JSON_STRING, read_model},
    {"count", JSON_NUMBER, read_count},
    {"uuid", JSON_STRING, read_uuid},
    {"serial", JSON_STRING, read_serial},
    {"minor", JSON_NUMBER, read_minor},
    {"pci", JSON_STRING, read_pci},
    {"numa", JSON_NUMBER, read_numa},
    {"cpus", JSON_STRING, keys_cpus},
    {"links", JSON_ARRAY, read_links},
    {"passthrough", JSON_TRUE, read_passthrough},
    {"memory_clocks", JSON_ARRAY, read_memory_clocks},
    {"graphics_clocks", JSON_ARRAY, read_graphics_clocks},
    {NULL, JSON_NULL, NULL},
};

static void name_card(const struct context *context, struct card *card, unsigned int slot)
{
    unsigned char uuid[16];
    char text[37];
    for (unsigned int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(keys_hash(context->name, slot + 1 + (i / 8) * 1000) >> i % 8 * 8);
    uuid_text(uuid, text);
    if (card->uuid[0] == '\0')
        snprintf(card->uuid, sizeof card->uuid, "GPU-%s", text);
    if (card->serial_number[0] == '\0')
        snprintf(card->serial_number, sizeof card->serial_number, "%013llu",
                 (unsigned long long)(keys_hash(context->name, slot + 5000) % UINT64_C(9999999999999)));
}

static bool add_cards(struct context *context, const struct json *value)
{
    if (value->kind != JSON_OBJECT)
        return keys_fail(context, value, "must be an object");
    const struct json *count = keys_member(value, "count");
    if (keys_member(value, "model") == NULL)
        return keys_fail(context, value, "needs a model");
    const bool is_one = keys_member(value, "uuid") || keys_member(value, "serial") || keys_member(value, "minor") ||
                        keys_member(value, "pci");
    if (count != NULL && count->kind == JSON_NUMBER && count->number != 1 && is_one)
        return keys_fail(context, count, "cannot stand beside uuid, serial, minor or pci, which are one card's");
    if (count != NULL && count->kind == JSON_NUMBER && !read_count(context, count, NULL))
        return false;
    for (long long i = 0; i < (count == NULL || count->kind != JSON_NUMBER ? 1 : count->number); i++) {
        const unsigned int slot = context->machine->cards_count;
        if (slot == MAX_CARDS)
            return keys_fail(context, value, "one card too many: 32 are taken");
        struct card *card = &context->machine->cards[slot];
        card->minor = slot;
        card->bus = FIRST_BUS + BUS_STEP * slot;
        memcpy(card->cpus, context->cpus, sizeof card->cpus);
        if (!keys_read(context, value, card_keys, card))
            return false;
        name_card(context, card, slot);
        context->machine->cards_count++;
    }
    return true;
}

bool cards_read(struct context *context, const struct json *gpus)
{
    for (const struct json *gpu = gpus->first; gpu != NULL; gpu = gpu->next)
        if (!add_cards(context, gpu))
            return false;
    return true;
}
