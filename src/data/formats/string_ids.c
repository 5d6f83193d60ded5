#include "data/formats/string_ids.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

struct sl_string_slot {
    uint64_t hash;
    size_t text; /* place in ids->text */
    int64_t id;  /* number of the string plus 1; 0: the slot is free */
};

/* Return the FNV-1a hash of a string. */
static uint64_t hash_string(const char *string)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *string; string++)
        hash = (hash ^ (unsigned char)*string) * 0x100000001B3u;
    return hash ^ hash >> 32;
}

/* Return the slot of the string or, if it is new, the free slot for it. */
static struct sl_string_slot *find(const struct sl_string_ids *ids, uint64_t hash,
                                   const char *string)
{
    const uint64_t mask = (uint64_t)ids->slot_count - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        struct sl_string_slot *slot = &ids->slots[at];
        if (slot->id == 0 || (slot->hash == hash && strcmp(ids->text + slot->text, string) == 0))
            return slot;
    }
}

static bool grow_slots(struct sl_string_ids *ids)
{
    struct sl_string_ids larger = *ids;
    larger.slot_count = ids->slot_count ? 2 * ids->slot_count : 1024;
    larger.slots = calloc((size_t)larger.slot_count, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (int64_t k = 0; k < ids->slot_count; k++)
        if (ids->slots[k].id != 0)
            *find(&larger, ids->slots[k].hash, ids->text + ids->slots[k].text) = ids->slots[k];
    free(ids->slots);
    *ids = larger;
    return true;
}

static bool grow_text(struct sl_string_ids *ids, size_t bytes)
{
    if (ids->text_capacity - ids->text_bytes >= bytes)
        return true;
    const size_t capacity = 2 * ids->text_capacity + bytes + 1024;
    char *text = realloc(ids->text, capacity);
    if (!text)
        return false;
    ids->text = text;
    ids->text_capacity = capacity;
    return true;
}

int64_t sl_string_ids_get(struct sl_string_ids *ids, const char *string)
{
    const size_t bytes = strlen(string) + 1;
    if ((2 * ids->count >= ids->slot_count && !grow_slots(ids)) || !grow_text(ids, bytes))
        return sl_error(SL_ERR_SYSTEM, "out of memory for vertex names");
    const uint64_t hash = hash_string(string);
    struct sl_string_slot *slot = find(ids, hash, string);
    if (slot->id == 0) {
        *slot = (struct sl_string_slot){hash, ids->text_bytes, ++ids->count};
        memcpy(ids->text + ids->text_bytes, string, bytes);
        ids->text_bytes += bytes;
    }
    return slot->id - 1;
}

int64_t sl_string_ids_find(const struct sl_string_ids *ids, const char *string)
{
    return ids->count ? find(ids, hash_string(string), string)->id - 1 : -1;
}

void sl_string_ids_free(struct sl_string_ids *ids)
{
    free(ids->text);
    free(ids->slots);
    *ids = (struct sl_string_ids){0};
}
