#include "graphs/partials.h"

#include <stdlib.h>

#include "core/error.h"
#include "graphs/distribution.h"

/* Row block i·L + l is layer l's part of row tile i. */
static int own_partial(const void *distribution, int block, int j)
{
    const struct sl_distribution *d = distribution;
    const struct sl_grid *grid = &d->grid;
    const int row = sl_grid_row(grid, sl_grid_whole_owner(d, block / grid->layers));
    return sl_grid_rank(grid, row, j, block % grid->layers);
}

/* Without rows where the layer has the row tile itself. */
static int64_t *cut_rows(const struct sl_distribution *d)
{
    const int layers = d->grid.layers;
    int64_t *cut = calloc((size_t)(d->tiles * layers) + 1, sizeof *cut);
    for (int b = 0; cut && b < d->tiles * layers; b++) {
        const int i = b / layers;
        const bool own = sl_grid_layer(&d->grid, sl_grid_whole_owner(d, i)) == b % layers;
        cut[b + 1] = cut[b] + (own ? 0 : d->row_cut[i + 1] - d->row_cut[i]);
    }
    return cut;
}

static struct sl_matrix *find(const struct sl_partials *partials, int64_t width)
{
    struct sl_sums *sums = partials->first;
    while (sums && sums->matrix.cols != width)
        sums = sums->next;
    return sums ? &sums->matrix : NULL;
}

static int create(struct sl_runtime *rt, const struct sl_distribution *d, int64_t width,
                  struct sl_matrix *matrix)
{
    int64_t *rows = cut_rows(d), *cols = sl_grid_cut(&d->grid, width);
    const int code = rows && cols
                         ? sl_matrix_create(rt, matrix, SL_FLOAT32, d->tiles * d->grid.layers, rows,
                                            d->grid.columns, cols, own_partial, d)
                         : sl_error(SL_ERR_SYSTEM, "no memory for the cut points of partial sums");
    free(rows);
    free(cols);
    return code;
}

int sl_partials_plan(struct sl_runtime *rt, const struct sl_distribution *d, int64_t width)
{
    struct sl_partials *partials = d->partials;
    const bool needed = d->grid.layers > 1 || (d->cut && d->ranks > 1);
    if (!needed || find(partials, width))
        return 0;
    struct sl_sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return sl_error(SL_ERR_SYSTEM, "no memory for partial sums");
    sums->next = partials->first;
    partials->first = sums;
    return d->cut ? sl_distribution_create_rows(rt, d, &sums->matrix, SL_FLOAT32, width)
                  : create(rt, d, width, &sums->matrix);
}

static struct sl_matrix *planned(const struct sl_distribution *d, int64_t width)
{
    struct sl_matrix *matrix = find(d->partials, width);
    if (!matrix)
        sl_fatal("no partial sums of width %lld were planned", (long long)width);
    return matrix;
}

struct sl_tile *sl_partials_tile(const struct sl_distribution *d, int64_t width, int i, int layer,
                                 int j)
{
    return sl_matrix_tile(planned(d, width), i * d->grid.layers + layer, j);
}

const struct sl_matrix *sl_partials_totals(const struct sl_distribution *d, int64_t width)
{
    return planned(d, width);
}

void sl_partials_free(struct sl_partials *partials)
{
    for (struct sl_sums *sums = partials->first, *next; sums; sums = next) {
        next = sums->next;
        sl_matrix_destroy(&sums->matrix);
        free(sums);
    }
    partials->first = NULL;
}
