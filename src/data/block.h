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
    bool mapped; /* munmap instead of free */
};

/* A new heap block of `bytes` (at least 1, 64-byte aligned, not cleared) on the list, or NULL
 * (sl_error set). */
void *sl_block_alloc(struct sl_block **list, size_t bytes);

/* The same for `count` items of `size` bytes; a product that overflows is an error, too. */
void *sl_block_array(struct sl_block **list, int64_t count, size_t size);

/* A formatted string on the list, or NULL (sl_error set). */
char *sl_block_print(struct sl_block **list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts existing memory on the list, which then owns it. Returns 0, or SL_ERR_SYSTEM (memory is
 * released). */
int sl_block_adopt(struct sl_block **list, void *base, size_t bytes, bool mapped);

/* Puts the blocks of one list on another one. */
void sl_block_move(struct sl_block **to, struct sl_block **from);

/* Takes mapped files out of the process's resident memory; where they are touched again, they come
 * back. */
void sl_block_unload(const struct sl_block *list);

void sl_block_free_all(struct sl_block **list);

#endif
