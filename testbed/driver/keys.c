/* Keys, and the values that many of them have. */
#include "keys.h"

#include <stdio.h>
#include <string.h>

#include "cpulist.h"

bool keys_fail(const struct context *context, const struct json *at, const char *text)
{
    const char *key = at->key == NULL ? "value" : at->key;
    snprintf(context->why, context->length, "%u:%u: %s: %s", at->line, at->column, key, text);
    return false;
}

bool keys_copy(const struct context *context, const struct json *value, char *to, size_t length)
{
    if (value->text[0] == '\0' || strlen(value->text) >= length)
        return keys_fail(context, value, "is empty or too long");
    snprintf(to, length, "%s", value->text);
    return true;
}

bool keys_read(struct context *context, const struct json *object, const struct key *keys, struct card *card)
{
    if (object->kind != JSON_OBJECT)
        return keys_fail(context, object, "must be an object");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        const struct key *key = keys;
        while (key->name != NULL && strcmp(key->name, member->key) != 0)
            key++;
        if (key->name == NULL)
            return keys_fail(context, member, "there is no such key");
        const bool is_boolean = key->kind == JSON_TRUE && member->kind == JSON_FALSE;
        if (member->kind != key->kind && !is_boolean) {
            char text[64];
            snprintf(text, sizeof text, "must be %s",
                     key->kind == JSON_TRUE ? "true or false" : json_kind_name(key->kind));
            return keys_fail(context, member, text);
        }
        if (!key->read(context, member, card))
            return false;
    }
    return true;
}

bool keys_uuid(const char *text, unsigned char uuid[16])
{
    unsigned int digits = 0;
    for (; *text != '\0'; text++) {
        if (*text == '-')
            continue;
        const char *hex = "0123456789abcdef";
        const char *found = strchr(hex, *text);
        if (found == NULL || digits == 32)
            return false;
        const unsigned int value = (unsigned int)(found - hex);
        uuid[digits / 2] = (unsigned char)(digits % 2 == 0 ? value << 4 : uuid[digits / 2] | value);
        digits++;
    }
    return digits == 32;
}

/* Of the machine where there is no card. */
bool keys_cpus(struct context *context, const struct json *value, struct card *card)
{
    return cpulist_read(value->text, card == NULL ? context->cpus : card->cpus, MAX_CPUS) ||
           keys_fail(context, value, "is not a list of CPUs like 0-15,32-47");
}

const struct json *keys_member(const struct json *object, const char *key)
{
    for (const struct json *value = object->first; value != NULL; value = value->next)
        if (strcmp(value->key, key) == 0)
            return value;
    return NULL;
}

uint64_t keys_hash(const char *text, uint64_t seed)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (; *text != '\0'; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ value >> 27;
}
