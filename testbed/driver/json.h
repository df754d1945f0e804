/* Strict JSON, as far as a description of a machine needs it, with the line and column of each value.
 *
 * RFC 8259 with what it leaves open closed: no duplicate keys, no numbers but integers, no \u escapes, little depth. */
#ifndef GPUSIM_JSON_H
#define GPUSIM_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    unsigned int line, column;
    long long number;
    char *text;        /* of a string */
    char *key;         /* of a member of an object */
    struct json *first; /* of an array or object, in the order of the text */
    struct json *next;
};

/* Reads a whole text; NULL, with the place and the reason in `why`, where it is not what we take. */
struct json *json_read(const char *text, char *why, size_t length);
void json_free(struct json *value);
const char *json_kind_name(enum json_kind kind);

#endif
