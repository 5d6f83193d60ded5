/* Items of one size for other ranks: they are counted first, then put, then exchanged. */
#ifndef SL_CORE_OUTBOX_H
#define SL_CORE_OUTBOX_H

#include "core/runtime.h"

struct sl_outbox {
    int ranks;
    size_t size;
    int64_t *first, *next; // (ranks + 1)
    char *items;
};

/* Allocate the box for items of `size` bytes; end the counting and make room for the items. Return
 * 0 or SL_ERR_SYSTEM; call sl_outbox_send in either case. */
int sl_outbox_open(struct sl_outbox *box, int ranks, size_t size);
int sl_outbox_seal(struct sl_outbox *box);

/* Count items for a rank, before the box is sealed. */
void sl_outbox_count(struct sl_outbox *box, int rank, int64_t items);

/* Return the place of the next item for a rank, after the box is sealed. */
void *sl_outbox_put(struct sl_outbox *box, int rank);

/* Exchange the items and free the box. Collective; `code` is this rank's code so far. Set *received
 * to the items from ranks 0, 1, …, each rank's in the order of its puts; the caller frees them.
 * Return the worst of all ranks' codes; with an error, *received is NULL. */
int sl_outbox_send(struct sl_runtime *rt, struct sl_outbox *box, int code, void **received,
                   int64_t *count);

#endif
