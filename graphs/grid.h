/* Grids of ranks: R rows x C columns x L layers. The row tiles are cut among the R·L groups (r, l)
 * of C ranks each, columns of dense matrices among the ranks of a group, and columns of the
 * adjacency among the layers: those of a group's tiles are its layer's. */
#ifndef SL_GRAPHS_GRID_H
#define SL_GRAPHS_GRID_H

#include <stdbool.h>
#include <stdint.h>

struct sl_grid {
    int rows, columns, layers;
};

struct sl_runtime;

struct sl_distribution;

/* The grid of `ranks` that the options ask for: `shape`, "RxCxL", or, where that is NULL, that of
 * the distribution of that name; `replication` is the number of layers of 1.5d, 0: 2; "auto", which
 * nobody has chosen for, is 1d. SL_ERR_USAGE: there is none. */
int sl_grid_choose(const char *distribution, int64_t replication, const char *shape, int ranks,
                   struct sl_grid *grid);

/* "1d", or "RxCxL" with the name of that distribution before it. */
const char *sl_grid_name(const struct sl_grid *grid, char text[32]);

/* Ranks are numbered along columns first, then along layers. */
int sl_grid_rank(const struct sl_grid *grid, int row, int column, int layer);
int sl_grid_row(const struct sl_grid *grid, int rank);
int sl_grid_column(const struct sl_grid *grid, int rank);
int sl_grid_layer(const struct sl_grid *grid, int rank);

/* Owner functions (graphs/distribution.h). */
int sl_grid_whole_owner(const struct sl_distribution *d, int i);
int sl_grid_dense_owner(const struct sl_distribution *d, int i, int j);
int sl_grid_sparse_owner(const struct sl_distribution *d, int i, int k);
int sl_grid_span(const struct sl_distribution *d, int i, int k);
bool sl_grid_keeps(const struct sl_distribution *d, int rank, int owner);

/* Where a matrix of that width is cut among the ranks of a group (columns + 1), which the caller
 * frees: evenly, at multiples of four, which the random numbers of dropout are made in, where there
 * are so many. NULL: no memory (sl_error set). */
int64_t *sl_grid_cut(const struct sl_grid *grid, int64_t width);

/* Row tiles from … to - 1. */
struct sl_tile_run {
    int from, to;
};

/* Those of the group that `rank` is in, and of all the groups of its row. */
struct sl_tile_run sl_grid_group(const struct sl_distribution *d, int rank);
struct sl_tile_run sl_grid_panel(const struct sl_distribution *d, int rank);

#endif
