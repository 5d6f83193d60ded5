#include "graphs/partials.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/distribution.h"

/* Return the owner of tile (block, j). Row block i·D + l is the part of row tile i at depth l. */
static int own_partial(const void *distribution, int block, int j)
{
    const struct sl_distribution *d = distribution;
    const struct sl_grid *grid = &d->grid;
    const int row = sl_grid_row(grid, sl_grid_whole_owner(d, block / grid->depth));
    return sl_grid_rank(grid, row, j, block % grid->depth);
}

/* Return the cuts of the row blocks. A block has no rows where its depth has the row tile itself.
 */
static int64_t *cut_rows(const struct sl_distribution *d)
{
    const int layers = d->grid.depth;
    int64_t *cut = calloc((size_t)(d->tiles * layers) + 1, sizeof *cut);
    for (int b = 0; cut && b < d->tiles * layers; b++) {
        const int i = b / layers;
        const bool own = sl_grid_depth_of(&d->grid, sl_grid_whole_owner(d, i)) == b % layers;
        cut[b + 1] = cut[b] + (own ? 0 : d->row_cut[i + 1] - d->row_cut[i]);
    }
    return cut;
}

static struct sl_matrix *find(const struct sl_distribution *d, enum sl_type type, int output,
                              const int64_t *cut)
{
    struct sl_sums *sums = d->partials->first;
    while (sums &&
           (memcmp(sums->matrix.col_cut, cut, (size_t)(d->grid.columns + 1) * sizeof *cut) != 0 ||
            sums->matrix.type != type || sums->output != output))
        sums = sums->next;
    return sums ? &sums->matrix : NULL;
}

static int create_partials(struct sl_runtime *rt, const struct sl_distribution *d,
                           enum sl_type type, const int64_t *cut, struct sl_matrix *matrix)
{
    int64_t *rows = cut_rows(d);
    const struct sl_cuts cuts = {
        d->tiles * d->grid.depth, d->grid.columns, rows, cut, own_partial, d};
    const int code = rows ? sl_matrix_create(rt, matrix, type, &cuts)
                          : sl_error(SL_ERR_SYSTEM, "no memory for the cut points of partial sums");
    free(rows);
    return code;
}

static int plan(struct sl_runtime *rt, const struct sl_distribution *d, enum sl_type type,
                int output, const int64_t *cut)
{
    struct sl_partials *partials = d->partials;
    if (find(d, type, output, cut))
        return 0;
    struct sl_sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return sl_error(SL_ERR_SYSTEM, "no memory for partial sums");
    sums->next = partials->first;
    sums->output = output;
    partials->first = sums;
    return d->kind->clones ? sl_distribution_create_cut(rt, d, &sums->matrix, type, cut)
                           : create_partials(rt, d, type, cut, &sums->matrix);
}

int sl_partials_plan(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_reducer *reducer, enum sl_type moved, const int64_t *cut)
{
    int code = 0;
    if (d->kind->clones)
        return d->ranks > 1 ? plan(rt, d, SL_FLOAT32, 0, cut) : 0; /* totals of gradients */
    for (int o = 0; !code && d->grid.depth > 1 && o < reducer->outputs; o++)
        code = plan(rt, d, sl_reducer_type(reducer, o, moved), o, cut);
    return code;
}

static struct sl_matrix *planned(const struct sl_distribution *d, enum sl_type type, int output,
                                 const int64_t *cut)
{
    struct sl_matrix *matrix = find(d, type, output, cut);
    if (!matrix)
        sl_fatal("no partial sums of width %lld were planned", (long long)cut[d->grid.columns]);
    return matrix;
}

const struct sl_matrix *sl_partials_of(const struct sl_distribution *d,
                                       const struct sl_reducer *reducer, enum sl_type moved,
                                       int output, const int64_t *cut)
{
    return planned(d, sl_reducer_type(reducer, output, moved), output, cut);
}

const struct sl_matrix *sl_partials_totals(const struct sl_distribution *d, int64_t width)
{
    const int64_t cut[] = {0, width}; /* a vertex-cut has one column of ranks */
    return planned(d, SL_FLOAT32, 0, cut);
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
