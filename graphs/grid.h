/* Grids of ranks: R rows × C columns × D depths. The row tiles are cut among the R·D
 * groups (r, l) of C ranks each. The ranks of a group cut the columns of dense matrices. The depths
 * cut the columns of the adjacency: the depth of a group has the columns of the group's row tiles.
 */
#ifndef SL_GRAPHS_GRID_H
#define SL_GRAPHS_GRID_H

#include <stdbool.h>
#include <stdint.h>

struct sl_grid {
    int rows, columns, depth;
};

struct sl_runtime;

struct sl_distribution;
struct sl_distribution_name;

/* Choose the grid of `ranks` ranks that the options ask for: `shape`; where it has no rows, the
 * grid of the named distribution (NULL: 1d). `replication` is the depth of 1.5d; 0: 2. Return 0, or
 * SL_ERR_USAGE if there is no such grid. */
int sl_grid_choose(const struct sl_distribution_name *named, int64_t replication,
                   struct sl_grid shape, int ranks, struct sl_grid *grid);

/* Return "1d", or "RxCxD" after the name of its distribution. */
const char *sl_grid_name(const struct sl_grid *grid, char text[32]);

/* Return the rank at a place, and the place of a rank. Ranks are numbered along columns first, then
 * along the depth. */
int sl_grid_rank(const struct sl_grid *grid, int row, int column, int depth);
int sl_grid_row(const struct sl_grid *grid, int rank);
int sl_grid_column(const struct sl_grid *grid, int rank);
int sl_grid_depth_of(const struct sl_grid *grid, int rank);

/* Owner functions (graphs/distribution.h). */
int sl_grid_whole_owner(const struct sl_distribution *d, int i);
int sl_grid_dense_owner(const struct sl_distribution *d, int i, int j);
int sl_grid_sparse_owner(const struct sl_distribution *d, int i, int k);
int sl_grid_span(const struct sl_distribution *d, int i, int k);
bool sl_grid_keeps(const struct sl_distribution *d, int rank, int owner);

/* Return the column cuts (columns + 1) of a matrix of that width among the ranks of a group. The
 * caller frees them. Cuts are even. They are at multiples of four where each rank has four columns,
 * because random numbers of dropout come in fours. NULL: no memory (sl_error set). */
enum { SL_GRID_UNIT = 4 };
int64_t *sl_grid_cut(const struct sl_grid *grid, int64_t width);

/* Row tiles from … to - 1. */
struct sl_tile_run {
    int from, to;
};

/* Return the row tiles of `rank`'s group. */
struct sl_tile_run sl_grid_group(const struct sl_distribution *d, int rank);

/* Return the row tiles of all groups in `rank`'s row of the grid. */
struct sl_tile_run sl_grid_panel(const struct sl_distribution *d, int rank);

#endif
