#include "core/temporary.h"

#include <starpu.h>

void sl_temporary_open_shared(struct sl_tile *tile, int64_t rows, int64_t cols, size_t element_size,
                              int owner, int64_t tag)
{
    *tile = (struct sl_tile){
        .rows = rows,
        .cols = cols,
        .ld = cols,
        .element_size = element_size,
        .tag = tag,
        .owner = owner,
    };
}

void sl_temporary_open(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols)
{
    /* Ranks need not make the same ones. */
    sl_temporary_open_shared(tile, rows, cols, sizeof(float), rt->rank, -1);
}

int64_t sl_temporary_tags(struct sl_runtime *rt, int64_t count)
{
    const int64_t first = rt->next_tag;
    rt->next_tag += count;
    return first;
}

void sl_temporary_empty(struct sl_tile *tile)
{
    if (tile->handle)
        starpu_data_invalidate_submit((starpu_data_handle_t)tile->handle);
}

void sl_temporary_close(struct sl_tile *tile)
{
    if (tile->handle)
        starpu_data_unregister_submit((starpu_data_handle_t)tile->handle);
    *tile = (struct sl_tile){0};
}
