#include "core/temporary.h"

#include <starpu.h>

void sl_temporary_open(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols)
{
    *tile = (struct sl_tile){
        .rows = rows,
        .cols = cols,
        .ld = cols,
        .element_size = sizeof(float),
        .tag = -1, /* ranks need not make the same ones */
        .owner = rt->rank,
    };
}

void sl_temporary_close(struct sl_tile *tile)
{
    if (tile->handle)
        starpu_data_unregister_submit((starpu_data_handle_t)tile->handle);
    *tile = (struct sl_tile){0};
}
