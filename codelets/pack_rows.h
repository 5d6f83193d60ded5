/* Copies of listed rows out of tiles, and into a tile. */
#ifndef SL_CODELETS_PACK_ROWS_H
#define SL_CODELETS_PACK_ROWS_H

#include "codelets/operation.h"

/* Y(r, :) = X(index[r], :), r < count, of one type. X (any, cols), Y (count, cols). */
void sl_kernel_pack_rows(int64_t count, int64_t cols, const uint32_t *index,
                         const struct sl_rows *x, const struct sl_rows *y);

/* Y(index[r], :) = X(r, :), or, accumulating, +=, r < count, of one type; no row of Y is listed
 * twice. X (count, cols). */
void sl_kernel_unpack_rows(int64_t count, int64_t cols, const uint32_t *index, bool accumulate,
                           const struct sl_rows *x, const struct sl_rows *y);

void sl_cuda_pack_rows(int64_t count, int64_t cols, const uint32_t *index, const struct sl_rows *x,
                       const struct sl_rows *y, struct sl_cuda_queue queue);
void sl_cuda_unpack_rows(int64_t count, int64_t cols, const uint32_t *index, bool accumulate,
                         const struct sl_rows *x, const struct sl_rows *y,
                         struct sl_cuda_queue queue);

/* Submit Y = listed rows of `count` tiles, one tile after the other. Y(r, :) = X(t)(index[r], :)
 * for r = first[t] … first[t + 1] - 1. index is (1, rows of Y) of uint32. */
struct sl_pack_tiles {
    struct sl_tile *index;
    int count;
    struct sl_tile *const *x; // (count)
    const int64_t *first;     // (count + 1), from 0 to the rows of Y
    struct sl_tile *y;
};
void sl_submit_pack_rows(struct sl_runtime *rt, const struct sl_pack_tiles *tiles);

/* Submit Y(index[r], :) = X(r, :), or +=, for r = first … first + rows - 1. No row of Y is listed
 * twice. index is (1, rows of X) of uint32. */
struct sl_unpack_tiles {
    struct sl_tile *index, *x;
    int64_t first, rows;
    bool accumulate;
    struct sl_tile *y;
};
void sl_submit_unpack_rows(struct sl_runtime *rt, const struct sl_unpack_tiles *tiles);

/* Argument of the task pack_rows. Rows first[t] … first[t + 1] - 1 of the list come from tile t. */
struct pack_argument {
    int tiles;
    int64_t first[]; // (tiles + 1)
};

/* Argument of the task unpack_rows. `first` and `count` are rows of the list. */
struct unpack_argument {
    int64_t first, count;
    bool accumulate;
};

#endif
