/* Numbers for strings, in order of first appearance. */
#ifndef SL_DATA_FORMATS_STRING_IDS_H
#define SL_DATA_FORMATS_STRING_IDS_H

#include <stddef.h>
#include <stdint.h>

/* An open-addressing hash table; all zero is empty. */
struct sl_string_ids {
    char *text; // (text_bytes) all strings, each with its NUL
    size_t text_bytes, text_capacity;
    struct sl_string_slot *slots; // (slot_count), a power of two
    int64_t slot_count, count;
};

/* Return the number of `string`; number a new string next. A negative code: out of memory. */
int64_t sl_string_ids_get(struct sl_string_ids *ids, const char *string);

/* Return the number of `string`, or -1 if it is unknown. */
int64_t sl_string_ids_find(const struct sl_string_ids *ids, const char *string);
void sl_string_ids_free(struct sl_string_ids *ids);

#endif
