#include "codelets/gather.h"

enum { CACHED_BYTES = 512 * 1024 }; /* dense rows below this are in the L2 cache anyway */

struct sl_gather sl_gather_make(const struct sl_sparse *a, int64_t b, int64_t width,
                                const struct sl_rows *h, bool accumulate, const struct sl_rows *z)
{
    const uint32_t *row_ptr = a->row_ptr + b * a->rows;
    const int64_t size = (int64_t)sl_type_size(h->type);
    const bool cached = a->block_cols * h->ld * size <= CACHED_BYTES;
    return (struct sl_gather){
        .row_ptr = row_ptr,
        .col = a->col,
        .value = a->value,
        .narrow = a->narrow,
        .h = sl_rows_at(h, b * a->block_cols, 0),
        .z = z->data,
        .ldz = z->ld,
        .room = z->room,
        .width = width,
        .accumulate = accumulate,
        .last = row_ptr[a->rows] ? row_ptr[a->rows] - 1 : 0,
        .ahead = cached ? 0 : (uint32_t)sl_gather_ahead(width * size),
    };
}
