/* Objects of a description, read key by key by a table that says what each key is; and what several keys share. */
#ifndef GPUSIM_KEYS_H
#define GPUSIM_KEYS_H

#include "json.h"
#include "machine.h"

struct context {
    struct machine *machine;
    char *why;
    size_t length;
    char name[64];
    uint64_t cpus[MAX_CPUS / 64];
};

/* How a key is read into what it belongs to. */
struct key {
    const char *name;
    enum json_kind kind;
    bool (*read)(struct context *context, const struct json *value, struct card *card);
};

/* Writes where and why a value cannot be taken; always false. */
bool keys_fail(const struct context *context, const struct json *at, const char *text);

/* Reads every member of an object by the table, which ends with a key without a name. */
bool keys_read(struct context *context, const struct json *object, const struct key *keys, struct card *card);
const struct json *keys_member(const struct json *object, const char *key);
bool keys_copy(const struct context *context, const struct json *value, char *to, size_t length);
bool keys_uuid(const char *text, unsigned char uuid[16]);
bool keys_cpus(struct context *context, const struct json *value, struct card *card);
/* A hash that gives a card the same UUID whenever the same description is read: FNV-1a, stirred. */
uint64_t keys_hash(const char *text, uint64_t seed);

#endif
