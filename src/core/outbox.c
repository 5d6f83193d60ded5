#include "core/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static int no_memory(int64_t items)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %lld items for other ranks", (long long)items);
}

int sl_outbox_open(struct sl_outbox *box, int ranks, size_t size)
{
    *box = (struct sl_outbox){
        .ranks = ranks,
        .size = size,
        .first = calloc((size_t)ranks + 1, sizeof *box->first),
        .next = calloc((size_t)ranks + 1, sizeof *box->next),
    };
    return box->first && box->next ? 0 : no_memory(ranks);
}

void sl_outbox_count(struct sl_outbox *box, int rank, int64_t items)
{
    box->first[rank + 1] += items;
}

int sl_outbox_seal(struct sl_outbox *box)
{
    for (int r = 0; r < box->ranks; r++)
        box->first[r + 1] += box->first[r];
    memcpy(box->next, box->first, (size_t)box->ranks * sizeof *box->next);
    box->items = malloc((size_t)box->first[box->ranks] * box->size + 1);
    return box->items ? 0 : no_memory(box->first[box->ranks]);
}

void *sl_outbox_put(struct sl_outbox *box, int rank)
{
    return box->items + (size_t)box->next[rank]++ * box->size;
}

int sl_outbox_send(struct sl_runtime *rt, struct sl_outbox *box, int code, void **received,
                   int64_t *count)
{
    *received = NULL;
    *count = 0;
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = sl_runtime_exchange(rt, box->items, box->first, box->size, received, count);
    free(box->first);
    free(box->next);
    free(box->items);
    *box = (struct sl_outbox){0};
    return code;
}
