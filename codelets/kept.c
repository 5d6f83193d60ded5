#include "codelets/kept.h"

struct sl_kept_walk sl_kept_walk(const struct sl_sparse *x, int64_t block,
                                 const struct sl_dropout *drop, const uint32_t *vertex,
                                 int64_t from, int64_t to)
{
    return (struct sl_kept_walk){
        .x = x,
        .drop = drop,
        .vertex = vertex,
        .block = block,
        .row = from,
        .end = to,
        .entry = x->row_ptr[block * x->rows + from],
    };
}
