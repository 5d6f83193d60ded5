/* Read the members of a file's JSON object one at a time: only one member is in memory. */
#ifndef SL_DATA_FORMATS_JSON_MEMBERS_H
#define SL_DATA_FORMATS_JSON_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "data/block.h"

struct sl_json_members {
    const char *path;
    const char *bytes; // (size), mapped
    size_t size, at;
    int64_t count; /* members handed out */
    json_t *key;   /* key of the last member */
    json_t *value; /* value of the last member */
    struct sl_block *blocks;
};

/* Open a file. SL_ERR_DATA: no file, or an empty one. Call sl_json_members_close in either case. */
int sl_json_members_open(struct sl_json_members *members, const char *path);
void sl_json_members_close(struct sl_json_members *members);

/* Read the next member's `key` and `value`, valid until the next call. Return 1, 0 after the last
 * member, or SL_ERR_DATA with file and line. */
int sl_json_members_next(struct sl_json_members *members);

/* Return the key of the last member, or an empty text. */
const char *sl_json_members_key(const struct sl_json_members *members);

#endif
