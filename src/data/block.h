/* Memory that a dataset owns: a list of heap or mapped blocks, freed together. */
#ifndef SL_DATA_BLOCK_H
#define SL_DATA_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_block {
    struct sl_block *next;
    void *base;
    size_t bytes;
    bool mapped; /* freed by munmap instead of free */
};

/* Add a heap block of `bytes` (at least 1, 64-byte aligned, not cleared) to the list and return its
 * memory, or NULL (sl_error set). */
void *sl_block_alloc(struct sl_block **list, size_t bytes);

/* Add a heap block for `count` items of `size` bytes and return its memory, or NULL (sl_error set),
 * also where the product overflows. */
void *sl_block_array(struct sl_block **list, int64_t count, size_t size);

/* Return a formatted string on the list, or NULL (sl_error set). */
char *sl_block_print(struct sl_block **list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Put existing memory on the list, which then owns it. Return 0, or SL_ERR_SYSTEM after releasing
 * the memory. */
int sl_block_adopt(struct sl_block **list, void *base, size_t bytes, bool mapped);

/* Move the blocks of one list to another. */
void sl_block_move(struct sl_block **to, struct sl_block **from);

/* Take mapped files out of the process's resident memory; pages come back when they are touched. */
void sl_block_unload(const struct sl_block *list);

void sl_block_free_all(struct sl_block **list);

#endif
