#include "data/formats/json_members.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"

int sl_json_members_open(struct sl_json_members *members, const char *path)
{
    *members = (struct sl_json_members){.path = path};
    void *bytes;
    const int code = sl_file_map(path, "a JSON object", &bytes, &members->size, NULL);
    if (code)
        return code;
    if (members->size == 0)
        return sl_error(SL_ERR_DATA, "%s: is empty (expected a JSON object)", path);
    members->bytes = bytes;
    if (members->size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        members->at = 3; /* past the byte order mark */
    return sl_block_adopt(&members->blocks, bytes, members->size, true);
}

void sl_json_members_close(struct sl_json_members *members)
{
    json_decref(members->key);
    json_decref(members->value);
    sl_block_free_all(&members->blocks);
    *members = (struct sl_json_members){0};
}

const char *sl_json_members_key(const struct sl_json_members *members)
{
    return members->key ? json_string_value(members->key) : "";
}

static int64_t find_line(const struct sl_json_members *members)
{
    int64_t line = 1;
    for (size_t k = 0; k < members->at; k++)
        line += members->bytes[k] == '\n';
    return line;
}

static void skip_blanks(struct sl_json_members *members)
{
    while (members->at < members->size && memchr(" \t\r\n", members->bytes[members->at], 4))
        members->at++;
}

/* Move past one character of the grammar. */
static int expect(struct sl_json_members *members, const char *either)
{
    skip_blanks(members);
    const char found = members->at < members->size ? members->bytes[members->at] : '\0';
    if (found != '\0' && strchr(either, found)) {
        members->at++;
        return found;
    }
    return sl_error(SL_ERR_DATA,
                    "%s: line %" PRId64 ": is no JSON after member %" PRId64
                    " \"%.40s\", expected %s%c%s",
                    members->path, find_line(members), members->count, sl_json_members_key(members),
                    either[1] ? "a comma or " : "", either[strlen(either) - 1],
                    members->at == members->size ? ", not the end" : "");
}

/* Load one value; jansson stops at its end. NULL: sl_error is set. */
static json_t *load(struct sl_json_members *members)
{
    json_error_t error;
    skip_blanks(members);
    json_t *value =
        sl_json_parse(members->bytes + members->at, members->size - members->at,
                      JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    if (value)
        members->at += (size_t)error.position;
    else if (json_error_code(&error) == json_error_out_of_memory)
        sl_error(SL_ERR_SYSTEM, "%s: %s", members->path, error.text);
    else
        sl_error(SL_ERR_DATA,
                 "%s: line %" PRId64 ": is no JSON after member %" PRId64 " \"%.40s\": %s",
                 members->path, find_line(members) + error.line - 1, members->count,
                 sl_json_members_key(members), error.text);
    return value;
}

static int load_member(struct sl_json_members *members)
{
    json_t *key = load(members);
    if (!key)
        return SL_ERR_DATA;
    json_decref(members->key);
    members->key = NULL;
    if (!json_is_string(key)) {
        json_decref(key);
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": member %" PRId64 " has no name, expected a string",
                        members->path, find_line(members), members->count + 1);
    }
    members->key = key;
    const int rc = expect(members, ":");
    json_decref(members->value);
    members->value = rc < 0 ? NULL : load(members);
    members->count++;
    return members->value ? 1 : (int)SL_ERR_DATA;
}

static int end(struct sl_json_members *members)
{
    skip_blanks(members);
    return members->at == members->size
               ? 0
               : sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": something after the JSON object",
                          members->path, find_line(members));
}

int sl_json_members_next(struct sl_json_members *members)
{
    const int found = members->at == 0 ? expect(members, "{") : expect(members, ",}");
    if (found < 0)
        return found;
    if (found == '}')
        return end(members);
    skip_blanks(members);
    const bool empty =
        found == '{' && members->at < members->size && members->bytes[members->at] == '}';
    if (!empty)
        return load_member(members);
    members->at++;
    return end(members);
}
