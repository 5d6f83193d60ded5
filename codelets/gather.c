#include "codelets/gather.h"
#include "codelets/instructions.h"

enum { CACHED_BYTES = 512 * 1024 }; /* dense matrices below this size are in the L2 cache anyway */

/* Return whether kernels have the vectors of AVX-512. */
static bool is_wide(void)
{
#if defined(__AVX512F__) && !defined(SL_X86_LEVELS)
    return true;
#else
    return sl_instructions_get() >= SL_INSTRUCTIONS_V4;
#endif
}

int64_t sl_gather_ahead(int64_t row_bytes)
{
    enum { LEAST = 4, AHEAD_BYTES = 6 * 1024 };
    const int64_t rows = AHEAD_BYTES / (row_bytes + 1);
    return rows > SL_GATHER_MOST_AHEAD ? SL_GATHER_MOST_AHEAD : rows < LEAST ? LEAST : rows;
}

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

struct sl_gather sl_gather_columns(const struct sl_gather *g, int64_t first, int64_t width)
{
    struct sl_gather part = *g;
    part.h = sl_rows_at(&g->h, 0, first);
    part.z = g->z + first;
    part.room = g->room - first;
    part.width = width;
    return part;
}

int64_t sl_gather_slice(enum sl_type type, int64_t width)
{
    const bool short_sums = type == SL_BFLOAT16 && !is_wide();
    const int64_t bytes = short_sums ? SL_GATHER_SLICE_BYTES / 2 : SL_GATHER_SLICE_BYTES,
                  slice = bytes / (int64_t)sl_type_size(type);
    return width >= 2 * slice ? slice : width;
}

void sl_gather_slices(const struct sl_gather *g, int64_t rows)
{
    const int64_t slice = sl_gather_slice(g->h.type, g->width);
    for (int64_t first = 0; first < g->width; first += slice) {
        const int64_t left = g->width - first;
        const struct sl_gather part = sl_gather_columns(g, first, left < slice ? left : slice);
        sl_gather_rows(&part, 0, rows);
    }
}
