/* Count the messages of a walk of graphs/block.c, from the entries of the tiles alone. All ranks of
 * a group (r, l) have the same counts:
 *
 *     moved    H(k) of depth l and another grid row, if a row tile of r has entries in column k
 *     merged   sums of other depths with entries in row tile i of the group
 *     made     row tiles i of other depths where the group's depth has entries
 *     last     entries of the group's tiles (i, k), k < i, with other grid rows to meet before */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/distribution.h"

/* The place on the grid of a whole row tile's owner. */
struct place {
    int rank, row, column, layer;
};

struct counting {
    const struct sl_distribution *d;
    const struct sl_tile_counts *counts;
    const struct sl_counted_walk *walk;
    struct sl_walk_counts *rank; // (ranks)
    struct place *at;            // (tiles)
    int *seen;                   // (tiles): the last panel that met column k, plus one
    int *touched;                // (layers): the last row that layer l has part of, plus one
};

static int64_t rows_of(const struct counting *c, int i)
{
    return c->d->row_cut[i + 1] - c->d->row_cut[i];
}

/* Return the counts of a group's first rank, which stands for all its ranks. */
static struct sl_walk_counts *group(const struct counting *c, int row, int layer)
{
    return &c->rank[sl_grid_rank(&c->d->grid, row, 0, layer)];
}

/* Return whether row tile i is needed and H(k) is not 0. */
static bool is_wanted(const struct counting *c, int i, int k)
{
    return !c->d->hop || (c->d->hop[i] <= c->walk->to && c->d->hop[k] <= c->walk->from);
}

/* Count tile (i, k), which has `nnz` entries. */
static void meet(struct counting *c, int i, int k, int64_t nnz, bool new_piece)
{
    const struct place *row = &c->at[i], *column = &c->at[k];
    struct sl_walk_counts *here = group(c, row->row, column->layer);
    struct sl_walk_counts *holder =
        &c->rank[sl_grid_rank(&c->d->grid, row->row, column->column, column->layer)];
    const int64_t bytes = nnz * sl_counts_entry_bytes(rows_of(c, k), c->counts->numbers) +
                          (new_piece ? sl_counts_piece_bytes(rows_of(c, i)) : 0);
    const bool stays = column->layer == row->layer, comes = column->row != row->row;
    here->bytes += bytes;
    holder->own_bytes += bytes;
    holder->own_tiles += new_piece;
    if (!is_wanted(c, i, k))
        return;
    struct sl_met *met = stays ? &here->own : &here->others;
    *(comes ? &met->late : &met->early) += nnz;
    if (c->d->grid.rows > 1 && stays && !comes && k < i)
        here->own_last += nnz;
    here->tiles++;
    if (c->touched[column->layer] != i + 1) {
        c->touched[column->layer] = i + 1;
        here->row_tiles++;
        if (column->layer != row->layer) {
            struct sl_walk_counts *own = group(c, row->row, row->layer);
            own->merged.rows += (double)rows_of(c, i);
            own->merged.messages++;
            here->made.rows += (double)rows_of(c, i);
            here->made.messages++;
        }
    }
    if (column->row != row->row && c->seen[k] != row->row + 1) {
        c->seen[k] = row->row + 1;
        here->moved.rows += (double)rows_of(c, k);
        here->moved.messages++;
    }
}

/* Count the tiles of row i. In the columns of its own panel, neighbouring tiles of one rank are one
 * tile (sl_grid_span). */
static void meet_row(struct counting *c, int i)
{
    const bool transposed = c->walk->transposed;
    const int64_t *nnz_of = transposed && c->counts->back ? c->counts->back : c->counts->nnz;
    const bool flipped = transposed && !c->counts->back;
    const int64_t tiles = c->counts->tiles, first = flipped ? i : i * tiles;
    const int64_t step = flipped ? tiles : 1;
    const int *hop = c->d->hop;
    int piece = -1,
        at = 0; /* rank whose tiles, of one hop, currently join into one tile; its last tile */
    for (int k = 0; k < tiles; k++) {
        const int64_t nnz = nnz_of[first + k * step];
        const bool joins = c->at[k].row == c->at[i].row && !c->d->tiles_alone;
        if (k == i && !c->d->own_first)
            piece = -1;
        if (!nnz)
            continue;
        meet(c, i, k, nnz, !joins || piece != c->at[k].rank || (hop && hop[at] != hop[k]));
        piece = joins ? c->at[k].rank : -1;
        at = k;
    }
}

static void share_with_group(const struct counting *c)
{
    const int columns = c->d->grid.columns;
    for (int r = 0; r < c->d->ranks; r++) {
        struct sl_walk_counts *own = &c->rank[r];
        const struct sl_walk_counts *first = &c->rank[r - r % columns];
        own->moved = first->moved;
        own->merged = first->merged;
        own->made = first->made;
        own->own = first->own;
        own->others = first->others;
        own->own_last = first->own_last;
        own->tiles = first->tiles;
        own->row_tiles = first->row_tiles;
        own->bytes = first->bytes;
        own->table = (double)c->d->row_cut[c->d->tiles] / c->d->grid.depth;
    }
}

int sl_block_count(const struct sl_distribution *d, const struct sl_tile_counts *counts,
                   const struct sl_counted_walk *walk, struct sl_walk_counts *rank)
{
    struct counting c = {
        .d = d,
        .counts = counts,
        .walk = walk,
        .rank = rank,
        .at = malloc((size_t)counts->tiles * sizeof *c.at + 1),
        .seen = calloc((size_t)counts->tiles + 1, sizeof *c.seen),
        .touched = calloc((size_t)d->grid.depth, sizeof *c.touched),
    };
    const bool room = c.at && c.seen && c.touched;
    memset(rank, 0, (size_t)d->ranks * sizeof *rank);
    for (int i = 0; room && i < counts->tiles; i++) {
        const int owner = sl_grid_whole_owner(d, i);
        c.at[i] =
            (struct place){owner, sl_grid_row(&d->grid, owner), sl_grid_column(&d->grid, owner),
                           sl_grid_depth_of(&d->grid, owner)};
    }
    for (int i = 0; room && i < counts->tiles; i++)
        meet_row(&c, i);
    if (room)
        share_with_group(&c);
    free(c.at);
    free(c.seen);
    free(c.touched);
    return room ? 0
                : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %d tiles", counts->tiles);
}
