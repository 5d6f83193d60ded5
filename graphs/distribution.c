#include "graphs/distribution.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"

int sl_distribution_whole_owner(const void *distribution, int i, int j)
{
    (void)j;
    const struct sl_distribution *d = distribution;
    return d->kind->whole_owner(d, i);
}

int sl_distribution_dense_owner(const void *distribution, int i, int j)
{
    const struct sl_distribution *d = distribution;
    return d->kind->dense_owner(d, i, j);
}

int sl_distribution_sparse_owner(const void *distribution, int i, int k)
{
    const struct sl_distribution *d = distribution;
    return d->kind->sparse_owner(d, i, k);
}

int sl_distribution_span(const void *distribution, int i, int k)
{
    const struct sl_distribution *d = distribution;
    return d->tiles_alone ? k : d->kind->span(d, i, k);
}

int sl_distribution_create_rows(struct sl_runtime *rt, const struct sl_distribution *d,
                                struct sl_matrix *matrix, enum sl_type type, int64_t width)
{
    int64_t *cut = sl_grid_cut(&d->grid, width);
    const int code = cut ? sl_matrix_create(rt, matrix, type, d->tiles, d->row_cut, d->grid.columns,
                                            cut, sl_distribution_dense_owner, d)
                         : SL_ERR_SYSTEM;
    free(cut);
    matrix->row_order = d->row_order;
    return code;
}

int sl_distribution_create_whole(struct sl_runtime *rt, const struct sl_distribution *d,
                                 struct sl_matrix *matrix, enum sl_type type, int64_t width)
{
    const int code = sl_matrix_create(rt, matrix, type, d->tiles, d->row_cut, 1,
                                      (const int64_t[]){0, width}, sl_distribution_whole_owner, d);
    matrix->row_order = d->row_order;
    return code;
}

int64_t sl_distribution_taken(const struct sl_distribution *d, struct sl_tile_run run, int64_t row)
{
    int64_t bytes = 0;
    for (int i = run.from; i < run.to; i++)
        bytes += (int64_t)sl_memory_taken((size_t)((d->row_cut[i + 1] - d->row_cut[i]) * row));
    return bytes;
}
