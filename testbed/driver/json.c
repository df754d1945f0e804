/* The parser: recursive over one text, one allocation a value. */
#include "json.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

struct reader {
    const char *at;
    unsigned int line;
    const char *line_start;
    char *why;
    size_t why_length;
};

static struct json *read_value(struct reader *reader, unsigned int depth);

static unsigned int column(const struct reader *reader)
{
    return (unsigned int)(reader->at - reader->line_start) + 1;
}

__attribute__((format(printf, 2, 3))) static void *fail(struct reader *reader, const char *format, ...)
{
    if (reader->why[0] != '\0')
        return NULL;
    const int used = snprintf(reader->why, reader->why_length, "%u:%u: ", reader->line, column(reader));
    if (used > 0 && (size_t)used < reader->why_length) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(reader->why + used, reader->why_length - (size_t)used, format, arguments);
        va_end(arguments);
    }
    return NULL;
}

static void skip_space(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r' || *reader->at == '\n') {
        if (*reader->at++ == '\n') {
            reader->line++;
            reader->line_start = reader->at;
        }
    }
}

void json_free(struct json *value)
{
    while (value != NULL) {
        struct json *next = value->next;
        json_free(value->first);
        free(value->text);
        free(value->key);
        free(value);
        value = next;
    }
}

const char *json_kind_name(enum json_kind kind)
{
    static const char *const names[] = {"null", "false", "true", "an integer", "a string", "a list", "an object"};
    return names[kind];
}

static struct json *make(struct reader *reader, enum json_kind kind)
{
    struct json *value = calloc(1, sizeof *value);
    if (value == NULL)
        return fail(reader, "out of memory");
    value->kind = kind;
    value->line = reader->line;
    value->column = column(reader);
    return value;
}

/* One character of a string, after a backslash. */
static int unescape(char character)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = character == '\0' ? NULL : strchr(from, character);
    return found == NULL ? -1 : to[found - from];
}

/* The text of a string, which begins here; the caller frees it. */
static char *read_text(struct reader *reader)
{
    if (*reader->at != '"')
        return fail(reader, "expected a string");
    const char *end = ++reader->at;
    while (*end != '"' && *end != '\0')
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    char *text = malloc((size_t)(end - reader->at) + 1);
    if (text == NULL)
        return fail(reader, "out of memory");
    size_t length = 0;
    while (*reader->at != '"') {
        int character = (unsigned char)*reader->at;
        if (character == '\\')
            character = unescape(*++reader->at);
        else if (character < ' ')
            character = -1;
        if (character < 0) {
            free(text);
            return fail(reader, "a string does not end, or has a control character or an escape that is not taken");
        }
        text[length++] = (char)character;
        reader->at++;
    }
    reader->at++;
    text[length] = '\0';
    return text;
}

static struct json *read_string(struct reader *reader)
{
    struct json *value = make(reader, JSON_STRING);
    if (value == NULL)
        return NULL;
    value->text = read_text(reader);
    if (value->text != NULL)
        return value;
    json_free(value);
    return NULL;
}

static struct json *read_number(struct reader *reader)
{
    const char *digits = reader->at + (*reader->at == '-');
    char *end;
    const long long number = strtoll(reader->at, &end, 10);
    const bool leading_zero = digits[0] == '0' && isdigit((unsigned char)digits[1]);
    if (!isdigit((unsigned char)digits[0]) || leading_zero || end - digits > 18)
        return fail(reader, "expected a value");
    if (*end == '.' || *end == 'e' || *end == 'E')
        return fail(reader, "only integers are taken");
    struct json *value = make(reader, JSON_NUMBER);
    if (value != NULL)
        value->number = number;
    reader->at = end;
    return value;
}

static struct json *read_word(struct reader *reader)
{
    static const char *const words[] = {"null", "false", "true"};
    for (unsigned int i = 0; i < 3; i++)
        if (strncmp(reader->at, words[i], strlen(words[i])) == 0) {
            struct json *value = make(reader, (enum json_kind)i);
            reader->at += strlen(words[i]);
            return value;
        }
    return fail(reader, "expected a value");
}

static bool has_key(const struct json *object, const char *key)
{
    for (const struct json *member = object->first; member != NULL; member = member->next)
        if (strcmp(member->key, key) == 0)
            return true;
    return false;
}

/* A member of an object, or an element of an array. */
static struct json *read_member(struct reader *reader, const struct json *in, unsigned int depth)
{
    char *key = NULL;
    if (in->kind == JSON_OBJECT) {
        key = read_text(reader);
        if (key == NULL)
            return NULL;
        if (has_key(in, key)) {
            fail(reader, "the key \"%s\" is there twice", key);
            free(key);
            return NULL;
        }
        skip_space(reader);
        if (*reader->at != ':') {
            free(key);
            return fail(reader, "expected `:`");
        }
        reader->at++;
        skip_space(reader);
    }
    struct json *value = read_value(reader, depth);
    if (value != NULL)
        value->key = key;
    else
        free(key);
    return value;
}

static struct json *read_members(struct reader *reader, enum json_kind kind, unsigned int depth)
{
    const char end = kind == JSON_OBJECT ? '}' : ']';
    struct json *value = make(reader, kind);
    if (value == NULL)
        return NULL;
    struct json **last = &value->first;
    reader->at++;
    skip_space(reader);
    while (*reader->at != end) {
        *last = read_member(reader, value, depth);
        if (*last == NULL)
            break;
        last = &(*last)->next;
        skip_space(reader);
        if (*reader->at == end)
            break;
        if (*reader->at != ',') {
            fail(reader, "expected `,` or `%c`", end);
            break;
        }
        reader->at++;
        skip_space(reader);
        if (*reader->at == end)
            fail(reader, "nothing follows the comma");
    }
    if (reader->why[0] != '\0') {
        json_free(value);
        return NULL;
    }
    reader->at++;
    return value;
}

static struct json *read_value(struct reader *reader, unsigned int depth)
{
    if (depth == 0)
        return fail(reader, "too deep");
    switch (*reader->at) {
    case '{':
        return read_members(reader, JSON_OBJECT, depth - 1);
    case '[':
        return read_members(reader, JSON_ARRAY, depth - 1);
    case '"':
        return read_string(reader);
    case 'n':
    case 'f':
    case 't':
        return read_word(reader);
    default:
        return read_number(reader);
    }
}

struct json *json_read(const char *text, char *why, size_t length)
{
    why[0] = '\0';
    struct reader reader = {.at = text, .line = 1, .line_start = text, .why = why, .why_length = length};
    skip_space(&reader);
    struct json *value = read_value(&reader, MAX_DEPTH);
    skip_space(&reader);
    if (value != NULL && *reader.at != '\0') {
        fail(&reader, "something follows the value");
        json_free(value);
        return NULL;
    }
    return value;
}
