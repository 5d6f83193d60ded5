#include "graphs/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "graphs/distribution.h"

/* ---- Ranks ---- */

int sl_grid_rank(const struct sl_grid *grid, int row, int column, int depth)
{
    return (row * grid->depth + depth) * grid->columns + column;
}

int sl_grid_row(const struct sl_grid *grid, int rank)
{
    return rank / (grid->depth * grid->columns);
}

int sl_grid_column(const struct sl_grid *grid, int rank)
{
    return rank % grid->columns;
}

int sl_grid_depth_of(const struct sl_grid *grid, int rank)
{
    return rank / grid->columns % grid->depth;
}

/* ---- Owners ---- */

/* Find the owner: ranks have runs of row tiles in order. Runs of equal length need no search. */
int sl_grid_whole_owner(const struct sl_distribution *d, int i)
{
    int rank = (int)((int64_t)i * d->ranks / d->tiles);
    while (i < d->rank_cut[rank])
        rank--;
    while (i >= d->rank_cut[rank + 1])
        rank++;
    return rank;
}

int sl_grid_dense_owner(const struct sl_distribution *d, int i, int j)
{
    const int whole = sl_grid_whole_owner(d, i);
    return whole - sl_grid_column(&d->grid, whole) + j;
}

int sl_grid_sparse_owner(const struct sl_distribution *d, int i, int k)
{
    const int columns = sl_grid_whole_owner(d, k);
    return sl_grid_rank(&d->grid, sl_grid_row(&d->grid, sl_grid_whole_owner(d, i)),
                        sl_grid_column(&d->grid, columns), sl_grid_depth_of(&d->grid, columns));
}

/* In the columns of its own panel, the dense tiles of a rank are neighbours in memory. So tiles of
 * row i from i on are one tile, and tiles before i are another. Sums begin at i, and joined tiles
 * do not change them. Where sums begin with all own tiles, these are one tile. */
int sl_grid_span(const struct sl_distribution *d, int i, int k)
{
    const int row = sl_grid_whole_owner(d, i), column = sl_grid_whole_owner(d, k);
    const int from = d->rank_cut[column];
    if (sl_grid_row(&d->grid, row) != sl_grid_row(&d->grid, column))
        return k;
    return !d->own_first && from < i && i <= k ? i : from;
}

bool sl_grid_keeps(const struct sl_distribution *d, int rank, int owner)
{
    return rank / d->grid.columns == owner / d->grid.columns;
}

static struct sl_tile_run run_of(const struct sl_distribution *d, int rank, int ranks)
{
    const int first = rank / ranks * ranks;
    return (struct sl_tile_run){d->rank_cut[first], d->rank_cut[first + ranks]};
}

struct sl_tile_run sl_grid_group(const struct sl_distribution *d, int rank)
{
    return run_of(d, rank, d->grid.columns);
}

struct sl_tile_run sl_grid_panel(const struct sl_distribution *d, int rank)
{
    return run_of(d, rank, d->grid.columns * d->grid.depth);
}

int64_t *sl_grid_cut(const struct sl_grid *grid, int64_t width)
{
    const int64_t unit = width / grid->columns >= SL_GRID_UNIT ? SL_GRID_UNIT : 1;
    int64_t *cut = malloc((size_t)(grid->columns + 1) * sizeof *cut);
    if (!cut) {
        sl_error(SL_ERR_SYSTEM, "no memory for %d cut points", grid->columns);
        return NULL;
    }
    for (int j = 0; j < grid->columns; j++)
        cut[j] = width * j / grid->columns / unit * unit;
    cut[grid->columns] = width;
    return cut;
}

/* ---- Shapes ---- */

/* Return the number whose power is `ranks`, or 0. */
static int root_of(int ranks, double power)
{
    const int root = (int)lround(pow((double)ranks, 1.0 / power));
    return lround(pow((double)root, power)) == ranks ? root : 0;
}

static int shape_1d(int ranks, int64_t replication, struct sl_grid *grid)
{
    (void)replication;
    *grid = (struct sl_grid){ranks, 1, 1};
    return 0;
}

static int shape_15d(int ranks, int64_t replication, struct sl_grid *grid)
{
    const int64_t depth = replication ? replication : 2;
    if (ranks % depth)
        return sl_error(SL_ERR_USAGE,
                        "--replication %lld: expected a number that divides the %d ranks",
                        (long long)depth, ranks);
    *grid = (struct sl_grid){(int)(ranks / depth), 1, (int)depth};
    return 0;
}

static int shape_2d(int ranks, int64_t replication, struct sl_grid *grid)
{
    (void)replication;
    const int side = root_of(ranks, 2.0);
    *grid = (struct sl_grid){side, side, 1};
    return side ? 0
                : sl_error(
                      SL_ERR_USAGE,
                      "--distribution 2d: %d ranks (expected a square; --grid RxCx1 takes other "
                      "numbers)",
                      ranks);
}

static int shape_3d(int ranks, int64_t replication, struct sl_grid *grid)
{
    (void)replication;
    const int side = root_of(ranks, 3.0);
    *grid = (struct sl_grid){side, side, side};
    return side ? 0
                : sl_error(SL_ERR_USAGE,
                           "--distribution 3d: %d ranks (expected a cube; --grid RxCxD takes other "
                           "numbers)",
                           ranks);
}

const char *sl_grid_name(const struct sl_grid *grid, char text[32])
{
    const int r = grid->rows, c = grid->columns, l = grid->depth;
    if (c == 1 && l == 1)
        return "1d";
    snprintf(text, 32, "%s%dx%dx%d",
             c == 1             ? "1.5d "
             : r == c && l == 1 ? "2d "
             : r == c && c == l ? "3d "
                                : "",
             r, c, l);
    return text;
}

#define ROW(id, name) {name, &sl_distribution_##id, false, false, shape_1d},
const struct sl_distribution_name sl_distribution_names[] = {
    {"1d", &sl_distribution_block, false, false, shape_1d},
    {"1.5d", &sl_distribution_block, true, false, shape_15d},
    {"2d", &sl_distribution_block, false, true, shape_2d},
    {"3d", &sl_distribution_block, false, true, shape_3d},
    SL_DISTRIBUTIONS(ROW){0},
};
#undef ROW

const struct sl_distribution_name *sl_distribution_name_of(const struct sl_distribution_kind *kind,
                                                           const struct sl_grid *grid)
{
    const bool deep = grid->depth > 1, cut = grid->columns > 1;
    const char *name = kind != &sl_distribution_block ? kind->name
                       : deep                         ? (cut ? "3d" : "1.5d")
                                                      : (cut ? "2d" : "1d");
    return sl_distribution_find(name);
}

static int check_shape(const struct sl_grid *grid, int ranks)
{
    const int64_t product = (int64_t)grid->rows * grid->columns * grid->depth;
    return product == ranks
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "--grid %dx%dx%d: these are %lld ranks (expected the %d that there are)",
                          grid->rows, grid->columns, grid->depth, (long long)product, ranks);
}

int sl_grid_choose(const struct sl_distribution_name *named, int64_t replication,
                   struct sl_grid shape, int ranks, struct sl_grid *grid)
{
    const bool given = shape.rows > 0;
    *grid = shape;
    if (replication && (given || !named || !named->replicates))
        return sl_error(SL_ERR_USAGE, "--replication %lld: expected --distribution 1.5d with it%s",
                        (long long)replication, given ? ", and no --grid" : "");
    if (given)
        return check_shape(grid, ranks);
    return named ? named->shape(ranks, replication, grid) : shape_1d(ranks, replication, grid);
}
